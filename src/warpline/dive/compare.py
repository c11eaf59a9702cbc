"""Two reports, before and after: kernels aligned, metrics that changed, and which change explains the time."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, Literal

from msgspec import Struct

from warpline.dive.kernel_metrics import KernelMetrics
from warpline.dive.metrics import METRICS, STALLS
from warpline.dive.model import KernelDive
from warpline.dive.tree import explain
from warpline.dive.utilisation import UNIT_WORDS, utilisation_of
from warpline.estimate import LEAST_EFFECT
from warpline.sources.ncu.model import KernelReport, NcuReport

SCHEMA = "warpline.dive_comparison/1"
MIN_CHANGE = 0.1
MAX_CHANGE = 20.0
"""Stands for the size of a change from or to zero."""


class Quantity(Struct, frozen=True):
    """Something to compare: the sum of some metrics, or a value worked out from them."""

    words: str
    value: Callable[[KernelMetrics], float | None]
    metric: str
    more_is: Literal["slower", "faster", "either"] = "slower"
    """What more of it means for the time, if anything."""
    unit: str = ""


def _sum(words: str, *keys: str) -> Quantity:
    names = " + ".join(METRICS[key].names[0] for key in keys)
    return Quantity(words, lambda metrics: metrics.total(*keys), names)


def _state(words: str, key: str, more_is: Literal["slower", "faster", "either"], unit: str = "") -> Quantity:
    return Quantity(words, lambda metrics: metrics.get(key), METRICS[key].names[0], more_is, unit)


def _waits(state: str) -> Callable[[KernelMetrics], float | None]:
    """Cycles in a state; zero where other states are recorded and no warp was in this one."""
    return lambda metrics: metrics.stalls.get(state, 0.0) if metrics.stalls else None


QUANTITIES: dict[str, Quantity] = {
    "instructions": _sum("warp instructions", "instructions"),
    "dram": _sum("bytes of DRAM traffic", "dram_read", "dram_write"),
    "l2": _sum("sectors between L1 and L2", "l2_read_sectors", "l2_write_sectors"),
    "l1": _sum("global sectors through L1", "load_sectors", "store_sectors"),
    "shared": _sum("shared-memory wavefronts", "shared_wavefronts"),
    "conflicts": _sum("bank conflicts", "shared_conflicts"),
    "local": _sum("local loads and stores", "local_load_instructions", "local_store_instructions"),
    "atomics": _sum("global atomics", "atomic_requests", "reduction_requests"),
    "fp64": _state("FP64 pipe busy", "fp64", "slower", "%"),
    "tensor": _state("tensor cores busy", "tensor", "faster", "%"),
    "threads": _state("threads per instruction", "threads_per_instruction", "faster"),
    "balance": Quantity(
        "mean over longest active time of the SMs", lambda metrics: metrics.activity,
        "sm__cycles_active.avg over sm__cycles_active.max", "faster",
    ),
    "occupancy": _state("achieved occupancy", "occupancy", "faster", "%"),
    "blocks": _state("blocks", "grid", "either"),
    "waves": _state("waves", "waves", "either"),
    "memory_wait": Quantity(
        "cycles that a warp waits for memory per instruction", _waits("long_scoreboard"),
        STALLS.format("long_scoreboard"),
    ),
    "barrier_wait": Quantity(
        "cycles that a warp waits at barriers per instruction", _waits("barrier"),
        STALLS.format("barrier"),
    ),
    "l1_hits": _state("L1 hit rate", "l1_hits", "faster", "%"),
    "l2_hits": _state("L2 hit rate", "l2_hits", "faster", "%"),
    "clock": _state("SM clock", "sm_clock", "faster"),
    "registers": _state("registers per thread", "registers", "either"),
}  # fmt: skip
EXPLAINED_BY: dict[str, tuple[str, ...]] = {
    "uncoalesced": ("l2", "l1", "dram"),
    "bank_conflicts": ("shared", "conflicts"),
    "spills": ("local", "l2"),
    "atomics": ("atomics",),
    "fp64": ("fp64", "instructions"),
    "divergence": ("threads", "instructions"),
    "low_occupancy": ("occupancy",),
    "small_grid": ("blocks", "waves"),
    "tail": ("balance",),
    "imbalance": ("balance",),
    "l2_misses": ("dram", "l2_hits"),
    "tensor_cores_unused": ("tensor", "instructions"),
    "instruction_bound": ("instructions",),
    "latency": ("memory_wait", "barrier_wait"),
    "memory_bandwidth": ("dram", "l2", "l1"),
    "compute_peak": ("instructions",),
}
"""What changes when a reason goes away."""
ANYWHERE = ("instructions", "dram", "l2", "l1", "shared", "local", "atomics", "balance", "occupancy", "clock")
"""Where the reason's own quantities did not change."""
Verdict = Literal["faster", "slower", "same", "unknown"]


class MetricChange(Struct, frozen=True):
    """One metric before and after."""

    words: str
    metric: str
    before: float
    after: float
    unit: str = ""

    @property
    def ratio(self) -> float | None:
        """After over before; None from zero."""
        return self.after / self.before if self.before else None

    @property
    def size(self) -> float:
        """How large the change is, on a logarithmic scale that treats up and down alike."""
        if self.before == self.after:
            return 0.0
        if self.before <= 0 or self.after <= 0:
            return math.inf
        return abs(math.log(self.after / self.before))


class ComparedKernel(Struct, frozen=True):
    """One kernel in both reports."""

    before: KernelDive
    after: KernelDive
    changes: tuple[MetricChange, ...]
    verdict: Verdict
    explained_by: MetricChange | None
    sentence: str

    @property
    def gain(self) -> float | None:
        """Old time over new time."""
        old, new = KernelMetrics(self.before.kernel).duration_ns, KernelMetrics(self.after.kernel).duration_ns
        return old / new if old and new else None

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "name": self.after.kernel.name,
            "a": _side(self.before),
            "b": _side(self.after),
            "verdict": self.verdict,
            "gain": self.gain,
            "explained_by": None if self.explained_by is None else self.explained_by.metric,
            "sentence": self.sentence,
            "changes": [
                {
                    "metric": change.metric,
                    "words": change.words,
                    "a": change.before,
                    "b": change.after,
                    "ratio": change.ratio,
                }
                for change in self.changes
            ],
        }


def _side(dive: KernelDive) -> dict[str, Any]:
    return {
        "launch": dive.kernel.launch,
        "duration_ns": dive.kernel.duration_ns,
        "bound": dive.bound,
        "limiter": dive.limiter,
        "reason": dive.reason,
    }


class DiveComparison(Struct, frozen=True):
    """Two reports compared."""

    a: str
    b: str
    kernels: tuple[ComparedKernel, ...]
    only_a: tuple[KernelReport, ...]
    only_b: tuple[KernelReport, ...]

    def to_dict(self) -> dict[str, Any]:
        """The document of schema `warpline.dive_comparison/1`."""
        return {
            "schema": SCHEMA,
            "a": self.a,
            "b": self.b,
            "kernels": [kernel.to_dict() for kernel in self.kernels],
            "only_a": [kernel.name for kernel in self.only_a],
            "only_b": [kernel.name for kernel in self.only_b],
        }


def compare(a: NcuReport, b: NcuReport) -> DiveComparison:
    """Align the kernels of two reports, and explain each one's change."""
    found = align(a.kernels, b.kernels)
    kernels = tuple(_compared(one, other) for one, other in found.pairs)
    return DiveComparison(str(a.path), str(b.path), kernels, found.only_a, found.only_b)


class AlignedKernels(Struct, frozen=True):
    """The launches of two reports."""

    pairs: tuple[tuple[KernelReport, KernelReport], ...]
    only_a: tuple[KernelReport, ...]
    only_b: tuple[KernelReport, ...]


def align(a: Sequence[KernelReport], b: Sequence[KernelReport]) -> AlignedKernels:
    """Pairs of launches: the same function in the same order; where each report has one function, whatever its name."""
    one_each = len({kernel.function for kernel in a}) == len({kernel.function for kernel in b}) == 1
    waiting: dict[str, list[KernelReport]] = defaultdict(list)
    for kernel in b:
        waiting["" if one_each else kernel.function].append(kernel)
    pairs, only_a = [], []
    for kernel in a:
        others = waiting["" if one_each else kernel.function]
        same = next((other for other in others if other.grid == kernel.grid and other.block == kernel.block), None)
        other = same or (others[0] if others else None)
        if other is None:
            only_a.append(kernel)
            continue
        others.remove(other)
        pairs.append((kernel, other))
    paired = {id(other) for _, other in pairs}
    return AlignedKernels(tuple(pairs), tuple(only_a), tuple(kernel for kernel in b if id(kernel) not in paired))


def _compared(one: KernelReport, other: KernelReport) -> ComparedKernel:
    before, after = explain(one), explain(other)
    changes = _changes(KernelMetrics(one), KernelMetrics(other))
    old, new = KernelMetrics(one).duration_ns, KernelMetrics(other).duration_ns
    gain = old / new if old and new else None
    verdict = _verdict(gain)
    cause = _explaining(before, after, gain) if gain is not None and verdict in {"faster", "slower"} else None
    return ComparedKernel(before, after, changes, verdict, cause, _sentence(before, after, verdict, gain, cause))


def _verdict(gain: float | None) -> Verdict:
    if gain is None:
        return "unknown"
    return "same" if abs(math.log(gain)) < LEAST_EFFECT else "faster" if gain > 1 else "slower"


def _changes(a: KernelMetrics, b: KernelMetrics) -> tuple[MetricChange, ...]:
    """The quantities that changed by a tenth or more, the largest change first."""
    found = [change for name in QUANTITIES if (change := _change(name, a, b)) is not None]
    shares, later = utilisation_of(a).shares, utilisation_of(b).shares
    for unit, share in shares.items():
        if unit in later and max(share, later[unit]) >= MIN_CHANGE:
            found.append(
                MetricChange(f"{UNIT_WORDS[unit]} busy", f"utilisation of {unit}", 100 * share, 100 * later[unit], "%")
            )
    changed = [change for change in found if change.size >= math.log(1 + MIN_CHANGE)]
    return tuple(sorted(changed, key=lambda change: -change.size))


def _change(name: str, a: KernelMetrics, b: KernelMetrics) -> MetricChange | None:
    quantity = QUANTITIES[name]
    before, after = quantity.value(a), quantity.value(b)
    return (
        None
        if before is None or after is None
        else MetricChange(quantity.words, quantity.metric, before, after, quantity.unit)
    )


def _explaining(before: KernelDive, after: KernelDive, gain: float) -> MetricChange | None:
    """The change that goes the way of the time: of what the slower one's reason is about, else the nearest in size."""
    a, b = KernelMetrics(before.kernel), KernelMetrics(after.kernel)
    slower = before if gain > 1 else after
    for name in EXPLAINED_BY.get(slower.reason, ()):
        change = _change(name, a, b)
        if change is not None and _fits(QUANTITIES[name], change, gain):
            return change
    usable = [
        change
        for name in ANYWHERE
        if (change := _change(name, a, b)) is not None and _fits(QUANTITIES[name], change, gain)
    ]
    return min(usable, key=lambda change: abs(min(change.size, MAX_CHANGE) - abs(math.log(gain))), default=None)


def _fits(quantity: Quantity, change: MetricChange, gain: float) -> bool:
    """Whether a change is large enough to count, and goes the way of the time."""
    if change.size < math.log(1 + MIN_CHANGE):
        return False
    if quantity.more_is == "either":
        return True
    return (change.after > change.before) == ((gain > 1) == (quantity.more_is == "faster"))


def _sentence(
    before: KernelDive, after: KernelDive, verdict: Verdict, gain: float | None, cause: MetricChange | None
) -> str:
    if gain is None:
        return "The reports do not have both durations, so that the times cannot be compared."
    if verdict == "same":
        return f"The time is the same within {100 * LEAST_EFFECT:g} %."
    times = f"{gain:.2f}× faster" if gain > 1 else f"{1 / gain:.2f}× slower"
    reason = "" if before.reason == after.reason else f"; the reason was {before.reason} and is {after.reason}"
    if cause is None:
        return f"It is {times}; no recorded metric explains it{reason}."
    ratio = f", {cause.ratio:.2f}×" if cause.ratio and cause.ratio >= 0.005 and cause.unit != "%" else ""
    went = f"{cause.words} went from {_number(cause.before)} to {_number(cause.after)}{_unit(cause)}{ratio}"
    return f"It is {times}: {went}{reason}."


def _unit(change: MetricChange) -> str:
    return f" {change.unit}" if change.unit else ""


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.2f}"
