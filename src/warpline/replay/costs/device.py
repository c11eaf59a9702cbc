"""Costs of one GPU: rates from its roofline, and small constants from the chip on which they were measured.

Rates (memory, arithmetic, host copies) are the chip's own: measured ceilings, else the data sheet. Other
constants were measured on an H200; for another chip they are scaled if there is a reason to, and the range is wider.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from warpline.hardware import Roof
from warpline.hardware.chips import DRAM, TENSOR, VECTOR, CitedFigure
from warpline.replay.costs.cost import Cost
from warpline.trace.arrays import Floats

MEASURED_CHIP = "H200-SXM"
MEASURED = "measured on an H200"
MEASURED_MEMORY = 4.26e12
"""Bytes per second of a copy within the memory of that H200."""
DEFAULT_LINK = CitedFigure(31.5e9, "guess: PCIe 4, 16 lanes")
"""For an unknown device."""
DEFAULT_MEMORY_BYTE = Cost(1 / 4_000, 1 / 1_000, 1 / 250, "guess: 250 GB/s to 4 TB/s")
"""Memory of an unknown device."""
OTHER_CHIP = 1.8
"""The range of a constant is wider by this factor on another chip: a guess, because no other chip was measured."""
REACHED = (0.95, 0.87, 0.7)
"""Share of a link's nominal bandwidth that a large pinned copy reaches: 0.88 of PCIe 5 on the host of an H200."""
SUSTAINED = (1.0, 0.85, 0.7)
"""Share of a data sheet's memory bandwidth or arithmetic peak that a good kernel reaches: on an H200 0.89 of the
memory's, 0.76 to 0.82 of the tensor cores' and 0.77 of the CUDA cores'."""

BLOCK = Cost(0.6, 0.62, 0.68, MEASURED)
"""Time between the starts of two blocks: no kernel of more than 20,000 blocks took less; gathers and fills, with little
work per block, took 0.60 to 0.67."""
ADDITION = Cost(0.0067, 0.007, 0.0075, MEASURED)
"""Time per value that index_add_ adds to memory: 0.0067 to 0.0075 with 8 to 17 million values."""
LAUNCH_TO_START = Cost(1_200, 1_700, 2_500, MEASURED)
"""From a launch's return to the kernel's start on an idle stream: 1.7 µs; the range is a guess."""
KERNEL_GAP = Cost(900, 1_350, 1_600, MEASURED)
"""Between two queued kernels of a stream (`device measure`: 1.35 µs); the range is a guess."""
GRAPH_GAP = Cost(0, 150, 600, MEASURED)
"""Between two nodes of a CUDA graph, beyond their recorded times: 0 to 500 ns in graphs of 31 to 813 small kernels."""
SMALLEST_KERNEL = Cost(1_000, 1_500, 3_000, MEASURED)
"""Time of a small kernel: 1.0 to 1.7 µs."""
DOUBLE_TO_TF32 = Cost(0.15, 0.18, 0.25, MEASURED)
"""Matmuls in TF32 relative to FP64: 0.148 by the ceilings, 0.165 to 0.19 for two matmuls of 1.1 ms."""
OVER_THE_ROOFS = (1.0, 1.2, 1.7)
"""The same relative to the ratio of the two peaks."""
SMALLEST_COPY = Cost(1_500, 2_000, 3_000, MEASURED)
"""Minimum device time of a copy between host and device."""


MATMUL_SIZES = np.array([256, 512, 1024, 2048, 4096, 8192], np.float64)
"""Square matmuls measured on an H200 (torch 2.11, CUDA 13.0; benchmarks/replay_constants.py)."""
EXTRAPOLATION_FACTOR = 1e6
"""Beyond the measured matmuls, on either side, the share of peak stays constant over this factor in time."""


class MatmulTimes(Struct, frozen=True, eq=False):
    """Times of matmuls in one precision, from small to large, and the peak throughput.

    A small matmul is far from peak because starting its waves, filling its pipelines and writing its result take a
    fixed time. The share of peak therefore depends on the time at peak, and applies to other chips as well.
    """

    sizes: Floats
    times_ns: Floats
    roof_flops_per_s: float

    @property
    def floors_ns(self) -> Floats:
        """The time of each measured matmul at peak."""
        return 2 * self.sizes**3 / self.roof_flops_per_s * 1e9

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
    return np.exp(np.interp(np.log(np.maximum(values, 1e-3)), np.log(known), np.log(wanted)))


def _measured(*times_ns: float) -> MatmulTimes:
    """Times of all sizes; the throughput of the largest is the peak."""
    times = np.array(times_ns, np.float64)
    return MatmulTimes(MATMUL_SIZES, times, float(2 * MATMUL_SIZES[-1] ** 3 / times[-1] * 1e9))


MATMULS = {
    "fp32": _measured(8_336, 14_528, 56_742, 350_970, 2_668_957, 21_438_272),
    "tf32": _measured(5_578, 7_923, 14_534, 50_934, 349_184, 2_726_202),
    "bf16": _measured(3_798, 4_387, 6_474, 24_970, 177_082, 1_417_930),
}
MATMULS["fp16"] = MATMULS["bf16"]
ODD_MATMULS = MatmulTimes(
    MATMUL_SIZES[1:],
    np.array([12_653, 26_394, 109_331, 903_005, 7_342_176], np.float64),
    MATMULS["bf16"].roof_flops_per_s,
)
"""BF16 matmuls of 511, 1,023, … 8,191: with an odd size, tensor cores cannot use vectorised loads."""


class DeviceCosts(Struct, frozen=True):
    """Costs of one GPU, in nanoseconds."""

    chip: str
    memory_byte: Cost | None
    """A byte read from or written to device memory; None if the bandwidth is unknown."""
    pinned_byte: Cost
    """A byte copied between pinned host memory and the device."""
    block: Cost
    """The start of one more thread block."""
    addition: Cost
    """A value added to memory by an atomic."""
    launch_to_start: Cost
    kernel_gap: Cost
    graph_gap: Cost
    smallest_kernel: Cost
    smallest_copy: Cost
    double_to_tf32: Cost
    """Time of a matmul in TF32 relative to FP64."""
    roof: Roof | None = None
    peers: tuple[Roof, ...] = ()
    """For an unknown device, the known chips of its architecture and kind."""

    def flop(self, dtype: str, unit: str = TENSOR) -> Cost | None:
        """One floating-point operation on a unit in a data type; None if the peak is unknown."""
        return _per_unit(self.roof.compute(dtype, unit), SUSTAINED) if self.roof else None

    @property
    def some_memory_byte(self) -> Cost:
        """A byte of device memory; for an unknown device a guess with a wide range."""
        return self.memory_byte or DEFAULT_MEMORY_BYTE

    def product_ns(self, floor_ns: Floats, dtype: str) -> Floats:
        """The time of a matmul, from its time at peak: small ones are far from peak."""
        return MATMULS[dtype].time_ns(floor_ns)

    def converted_ns(self, time_ns: Floats, before: str, after: str) -> Floats:
        """The time in another precision of a matmul that takes this long; the same if the chip lacks one of them."""
        faster = self._faster(before, after)
        if faster is None:
            return time_ns.copy()
        floor = MATMULS[before].floor_ns(time_ns) / faster
        return np.minimum(time_ns, MATMULS[after].time_ns(floor))

    def aligned_ns(self, time_ns: Floats) -> Floats:
        """The time of an unaligned half-precision matmul if its sizes are padded to multiples of 8."""
        return np.minimum(time_ns, MATMULS["bf16"].time_ns(ODD_MATMULS.floor_ns(time_ns)))

    def _faster(self, before: str, after: str) -> float | None:
        """How much faster matmuls are in another precision, at peak; None if the chip lacks one of them. For an unknown
        device as on the chips like it, else as on the measured chip."""
        if self.roof is None and not self.peers:
            return MATMULS[after].roof_flops_per_s / MATMULS[before].roof_flops_per_s
        ratios = [
            fast.value / slow.value
            for roof in ([self.roof] if self.roof else self.peers)
            if (slow := _matmul_rate(roof, before)) and (fast := _matmul_rate(roof, after))
        ]
        return float(np.median(ratios)) if ratios else None


def _matmul_rate(roof: Roof, dtype: str) -> CitedFigure | None:
    """FLOP/s of matmuls in a precision: AMD matrix cores support FP32, NVIDIA tensor cores do not."""
    return roof.compute(dtype, TENSOR) or (roof.compute(dtype, VECTOR) if dtype == "fp32" else None)


def device_costs(roof: Roof | None, host_link: CitedFigure | None = None, peers: tuple[Roof, ...] = ()) -> DeviceCosts:
    """The costs of the device with this roofline; for an unknown device those of an H200, with wide ranges. `host_link`
    is the link of its architecture, for a chip without a figure of its own; `peers` are the known
    chips like an unknown one."""
    own = roof is not None and roof.chip.name == MEASURED_CHIP
    memory = roof.bandwidth(DRAM) if roof else None

    def constant(cost: Cost, factor: float = 1.0, why: str = "not scaled to this chip") -> Cost:
        if own:
            return cost
        return cost.times(factor).widened(OTHER_CHIP).from_(f"{cost.source}; {why}")

    # Atomics run in the L2 cache, whose number of slices grows with the number of memory channels.
    faster = memory.value / MEASURED_MEMORY if memory else 1.0
    return DeviceCosts(
        chip=roof.chip.name if roof else "unknown device",
        memory_byte=_per_unit(memory, SUSTAINED),
        pinned_byte=_pinned(roof, host_link),
        block=constant(BLOCK),
        addition=constant(ADDITION, 1 / faster, "scaled by memory bandwidth"),
        launch_to_start=constant(LAUNCH_TO_START),
        kernel_gap=constant(KERNEL_GAP),
        graph_gap=constant(GRAPH_GAP),
        smallest_kernel=constant(SMALLEST_KERNEL),
        smallest_copy=constant(SMALLEST_COPY),
        double_to_tf32=_double_to_tf32(roof),
        roof=roof,
        peers=peers,
    )


def _pinned(roof: Roof | None, host_link: CitedFigure | None) -> Cost:
    link = (roof.bandwidth("h2d") if roof else None) or host_link
    cost = _per_unit(link or DEFAULT_LINK, REACHED)
    assert cost is not None
    return cost if link else cost.widened(2.0)


def _double_to_tf32(roof: Roof | None) -> Cost:
    double = roof and (roof.compute("fp64", TENSOR) or roof.compute("fp64", VECTOR))
    single = roof and (roof.compute("tf32", TENSOR) or roof.compute("fp32", VECTOR))
    if not double or not single:
        return DOUBLE_TO_TF32 if roof and roof.chip.name == MEASURED_CHIP else DOUBLE_TO_TF32.widened(OTHER_CHIP)
    low, middle, high = (min(1.0, times * double.value / single.value) for times in OVER_THE_ROOFS)
    return Cost(low, middle, high, f"{double.source}; {single.source}")


def _per_unit(rate: CitedFigure | None, reached: tuple[float, float, float]) -> Cost | None:
    """Nanoseconds per unit at a rate per second: a measured rate is reached, of a nominal rate only a share."""
    if rate is None:
        return None
    best, usual, worst = (1.02, 1.0, 0.85) if rate.measured else reached
    return Cost(1e9 / (rate.value * best), 1e9 / (rate.value * usual), 1e9 / (rate.value * worst), rate.source)
