"""Two reports, before and after: kernels aligned, metrics that changed, and which change explains the time."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from warpline.dive.load import WORDS, load_of
from warpline.dive.measured import Measured
from warpline.dive.model import KernelDive
from warpline.dive.tree import explain
from warpline.sources.ncu.model import KernelReport, NcuReport

SCHEMA = "warpline.dive_comparison/1"
SAME = 0.03
"""Times closer than this are the same: launches of one kernel differ by some percent."""
SHOWN = 8
MIN_CHANGE = 0.1
WORK = {
    "instructions": "warp instructions",
    "dram_read": "bytes read from DRAM",
    "dram_write": "bytes written to DRAM",
    "l2_read_sectors": "sectors read from L2",
    "l2_write_sectors": "sectors written to L2",
    "load_sectors": "sectors loaded through L1",
    "store_sectors": "sectors stored through L1",
    "shared_wavefronts": "shared-memory wavefronts",
    "shared_conflicts": "bank conflicts",
    "local_load_sectors": "local sectors loaded",
    "local_store_sectors": "local sectors stored",
    "reduction_requests": "atomic reductions",
    "atomic_requests": "atomics",
}
"""Counts of work: where the busiest unit has less of it, that explains a shorter time."""
STATE = {
    "occupancy": "achieved occupancy",
    "occupancy_possible": "theoretical occupancy",
    "issue_active": "issue slots in use",
    "threads_per_instruction": "threads per instruction",
    "l1_hits": "L1 hit rate",
    "l2_hits": "L2 hit rate",
    "grid": "blocks",
    "block": "threads per block",
    "registers": "registers per thread",
    "waves": "waves",
    "sm_clock": "SM clock",
}
UNIT_WORK = {
    "dram": ("dram_read", "dram_write"),
    "l2": ("l2_read_sectors", "l2_write_sectors", "reduction_requests", "atomic_requests"),
    "l1": ("shared_wavefronts", "load_sectors", "store_sectors", "local_load_sectors", "local_store_sectors"),
}
"""The work of each memory unit; compute units work on instructions."""
Verdict = Literal["faster", "slower", "same", "unknown"]


@dataclass(frozen=True, slots=True)
class Change:
    """One metric before and after."""

    words: str
    metric: str
    before: float
    after: float

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


@dataclass(frozen=True, slots=True)
class ComparedKernel:
    """One kernel in both reports."""

    before: KernelDive
    after: KernelDive
    changes: tuple[Change, ...]
    verdict: Verdict
    explained_by: Change | None
    sentence: str

    @property
    def gain(self) -> float | None:
        """Old time over new time."""
        old, new = self.before.kernel.duration_ns, self.after.kernel.duration_ns
        return old / new if old and new else None

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "name": self.after.kernel.name,
            "a": {"launch": self.before.kernel.launch, "duration_ns": self.before.kernel.duration_ns,
                  "bound": self.before.bound, "limiter": self.before.limiter, "reason": self.before.reason},
            "b": {"launch": self.after.kernel.launch, "duration_ns": self.after.kernel.duration_ns,
                  "bound": self.after.bound, "limiter": self.after.limiter, "reason": self.after.reason},
            "verdict": self.verdict,
            "gain": self.gain,
            "explained_by": None if self.explained_by is None else self.explained_by.metric,
            "sentence": self.sentence,
            "changes": [
                {"metric": change.metric, "words": change.words, "a": change.before, "b": change.after,
                 "ratio": change.ratio}
                for change in self.changes
            ],
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class DiveComparison:
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
    pairs, only_a, only_b = aligned(a.kernels, b.kernels)
    return DiveComparison(
        str(a.path), str(b.path), tuple(_compared(one, other) for one, other in pairs), only_a, only_b
    )


def aligned(
    a: Sequence[KernelReport], b: Sequence[KernelReport]
) -> tuple[list[tuple[KernelReport, KernelReport]], tuple[KernelReport, ...], tuple[KernelReport, ...]]:
    """Pairs of launches: the same function in the same order; one single kernel each is a pair whatever its name."""
    if len(a) == 1 and len(b) == 1:
        return [(a[0], b[0])], (), ()
    waiting: dict[str, list[KernelReport]] = defaultdict(list)
    for kernel in b:
        waiting[kernel.function].append(kernel)
    pairs, only_a = [], []
    for kernel in a:
        others = waiting[kernel.function]
        same = next((other for other in others if other.grid == kernel.grid and other.block == kernel.block), None)
        other = same or (others[0] if others else None)
        if other is None:
            only_a.append(kernel)
            continue
        others.remove(other)
        pairs.append((kernel, other))
    taken = {id(other) for _, other in pairs}
    return pairs, tuple(only_a), tuple(kernel for kernel in b if id(kernel) not in taken)


def _compared(one: KernelReport, other: KernelReport) -> ComparedKernel:
    before, after = explain(one), explain(other)
    changes = _changes(Measured(one), Measured(other))
    gain = one.duration_ns / other.duration_ns if one.duration_ns and other.duration_ns else None
    verdict = _verdict(gain)
    cause = _explaining(Measured(one), Measured(other), changes, gain) if verdict in {"faster", "slower"} else None
    return ComparedKernel(before, after, changes, verdict, cause, _sentence(before, after, verdict, gain, cause))


def _verdict(gain: float | None) -> Verdict:
    if gain is None:
        return "unknown"
    return "same" if abs(math.log(gain)) < SAME else "faster" if gain > 1 else "slower"


def _changes(a: Measured, b: Measured) -> tuple[Change, ...]:
    """The metrics that changed by a tenth or more, the largest change first."""
    found = []
    for key, words in (WORK | STATE).items():
        before, after = a.get(key), b.get(key)
        if before is not None and after is not None:
            found.append(Change(words, a.name(key), before, after))
    for unit, share in load_of(a).shares.items():
        later = load_of(b).shares.get(unit)
        if later is not None and max(share, later) >= MIN_CHANGE:
            found.append(Change(f"{WORDS[unit]} busy", f"utilisation of {unit}", 100 * share, 100 * later))
    changed = [change for change in found if change.size >= math.log(1 + MIN_CHANGE)]
    return tuple(sorted(changed, key=lambda change: -change.size))


def _explaining(a: Measured, b: Measured, changes: Sequence[Change], gain: float | None) -> Change | None:
    """The change nearest in size to that of the time: first in the work of the unit that limits, then elsewhere."""
    assert gain is not None
    load = load_of(a if gain > 1 else b)  # of the slower one
    by_name = {change.metric: change for change in changes}
    unit = max(load.shares, key=lambda name: load.shares[name], default="")
    first = [a.name(key) for key in UNIT_WORK.get(unit, ("instructions",))]
    for names in (first, [a.name(key) for key in WORK], [a.name(key) for key in STATE]):
        usable = [by_name[name] for name in names if name in by_name and _fits(by_name[name], gain, name, a)]
        if usable:
            return min(usable, key=lambda change: abs(min(change.size, 20.0) - abs(math.log(gain))))
    return None


def _fits(change: Change, gain: float, name: str, measured: Measured) -> bool:
    """Whether a change goes the way of the time: less work or more occupancy for a shorter one."""
    is_work = name in {measured.name(key) for key in WORK}
    less = change.after < change.before
    if is_work:
        return less == (gain > 1)
    if name in {measured.name(key) for key in ("registers", "block", "grid", "waves")}:
        return True
    return less != (gain > 1)


def _sentence(before: KernelDive, after: KernelDive, verdict: Verdict, gain: float | None, cause: Change | None) -> str:
    if gain is None:
        return "The reports do not have both durations, so that the times cannot be compared."
    if verdict == "same":
        return "The time is the same within 3 %."
    times = f"{gain:.2f}× faster" if gain > 1 else f"{1 / gain:.2f}× slower"
    reason = "" if before.reason == after.reason else f"; the reason was {before.reason} and is {after.reason}"
    if cause is None:
        return f"It is {times}; no recorded metric explains it{reason}."
    ratio = "" if cause.ratio is None or cause.ratio == 0 else f" ({cause.ratio:.2f}×)"
    return f"It is {times}: {cause.words} went from {cause.before:,.4g} to {cause.after:,.4g}{ratio}{reason}."
