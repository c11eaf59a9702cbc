"""How close a matmul comes to peak throughput, by its time at peak.

Measured on an H200 with square matmuls of 256 to 8,192 (torch 2.11, CUDA 13.0; benchmarks/replay_constants.py). A
small matmul is far from peak because starting its waves, filling its pipelines and writing its result take a fixed
time. The share of peak therefore depends on the time at peak, and applies to other chips as well.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from warpline.trace.arrays import Floats

SIZES = np.array([256, 512, 1024, 2048, 4096, 8192], np.float64)


EXTRAPOLATION_FACTOR = 1e6
"""Beyond the measured matmuls, on either side, the share of peak stays constant over this factor in time."""


class Efficiency(Struct, frozen=True, eq=False):
    """Times of matmuls in one precision, from small to large, and the peak throughput."""

    sizes: Floats
    times_ns: Floats
    roof_flops_per_s: float

    @property
    def floors_ns(self) -> Floats:
        """The time of each measured matmul at peak."""
        result: Floats = 2 * self.sizes**3 / self.roof_flops_per_s * 1e9
        return result

    def time_ns(self, floor_ns: Floats) -> Floats:
        """The time of a matmul, from its time at peak."""
        return _between(floor_ns, self.floors_ns, self.times_ns)

    def floor_ns(self, time_ns: Floats) -> Floats:
        """The time at peak of a matmul that takes this long: the inverse."""
        return _between(time_ns, self.times_ns, self.floors_ns)


def _between(values: Floats, known: Floats, wanted: Floats) -> Floats:
    """Interpolates on logarithmic axes."""
    ends = np.array([1 / EXTRAPOLATION_FACTOR, EXTRAPOLATION_FACTOR])
    known = np.concatenate([known[:1] * ends[0], known, known[-1:] * ends[1]])
    wanted = np.concatenate([wanted[:1] * ends[0], wanted, wanted[-1:] * ends[1]])
    result: Floats = np.exp(np.interp(np.log(np.maximum(values, 1e-3)), np.log(known), np.log(wanted)))
    return result


def _measured(*times_ns: float) -> Efficiency:
    """Times of all sizes; the throughput of the largest is the peak."""
    times = np.array(times_ns, np.float64)
    return Efficiency(SIZES, times, float(2 * SIZES[-1] ** 3 / times[-1] * 1e9))


PRODUCTS = {
    "fp32": _measured(8_336, 14_528, 56_742, 350_970, 2_668_957, 21_438_272),
    "tf32": _measured(5_578, 7_923, 14_534, 50_934, 349_184, 2_726_202),
    "bf16": _measured(3_798, 4_387, 6_474, 24_970, 177_082, 1_417_930),
}
PRODUCTS["fp16"] = PRODUCTS["bf16"]
ODD = Efficiency(
    SIZES[1:],
    np.array([12_653, 26_394, 109_331, 903_005, 7_342_176], np.float64),
    PRODUCTS["bf16"].roof_flops_per_s,
)
"""BF16 matmuls of 511, 1,023, … 8,191: with an odd size, tensor cores cannot use vectorised loads."""
