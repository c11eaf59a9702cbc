"""How close a matrix product comes to the roof, by how long it would take there.

Measured on an H200 with square products of 256 to 8,192 (torch 2.11, CUDA 13.0; benchmarks/replay_constants.py). A
small product is far from the roof because starting its waves, filling its pipelines and writing its result take a fixed
time. So the share that it reaches depends on its time at the roof, and holds for another chip's roof as well.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warpline.trace.columns import Floats

SIZES = np.array([256, 512, 1024, 2048, 4096, 8192], np.float64)


FAR = 1e6
"""Beyond the measured products, on either side, the share of the roof stays what it is at the last one."""


@dataclass(frozen=True, slots=True, eq=False)
class Efficiency:
    """Times of products in one precision, from small to large, against a roof."""

    sizes: Floats
    times_ns: Floats
    roof_flops_per_s: float

    @property
    def floors_ns(self) -> Floats:
        """The time of each measured product at the roof."""
        result: Floats = 2 * self.sizes**3 / self.roof_flops_per_s * 1e9
        return result

    def time_ns(self, floor_ns: Floats) -> Floats:
        """What a product takes that needs this time at the roof."""
        return _between(floor_ns, self.floors_ns, self.times_ns)

    def floor_ns(self, time_ns: Floats) -> Floats:
        """The time at the roof of a product that takes this long: the inverse."""
        return _between(time_ns, self.times_ns, self.floors_ns)


def _between(values: Floats, known: Floats, wanted: Floats) -> Floats:
    """Interpolates between the logarithms of both."""
    ends = np.array([1 / FAR, FAR])
    known = np.concatenate([known[:1] * ends[0], known, known[-1:] * ends[1]])
    wanted = np.concatenate([wanted[:1] * ends[0], wanted, wanted[-1:] * ends[1]])
    result: Floats = np.exp(np.interp(np.log(np.maximum(values, 1e-3)), np.log(known), np.log(wanted)))
    return result


def _measured(*times_ns: float) -> Efficiency:
    """Times of all sizes; the rate of the largest is the roof."""
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
"""bf16 products of 511, 1,023, … 8,191: an odd size keeps tensor cores from loading whole vectors."""
