"""Which prediction came true: the gain that the replay of A promises for the fix that B has, and the gain of B."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct, to_builtins

from warpline.api_names import ALLOCATION, EMPTY_CACHE_FREE, GRAPH_LAUNCH, LAUNCH
from warpline.compare.counts import waits
from warpline.compare.typical_step import TypicalStep
from warpline.errors import WarplineError
from warpline.estimate import WIDE, Estimate
from warpline.findings.diagnosis import MOST_CALLS
from warpline.findings.fix_table import fix_table, whatif
from warpline.fixes.registry import all_fixes
from warpline.fixes.step_contents import StepContents
from warpline.intervals import Spans
from warpline.replay.cold_steps import find_cold_steps
from warpline.sources.local_record import append
from warpline.trace.arrays import Bools, Int64s, combinations
from warpline.trace.schema import Gpu
from warpline.trace.table import filled
from warpline.trace.trace import Trace
from warpline.units import speedup

MAX_FIXES = 2
"""A mixture of more fixes is not named."""
CALLS = {
    "launches": LAUNCH,
    "graph_launches": GRAPH_LAUNCH,
    "allocations": ALLOCATION,
    "frees": EMPTY_CACHE_FREE,
}


class Outcome(Struct, frozen=True):
    """A prediction that met a measurement. The predicted gain is of the step without a profiler."""

    fixes: tuple[str, ...]
    """What B has and A has not, read off the contents of their steps."""
    predicted: Estimate | None
    """The gain that the replay of A gives these fixes; None if it gives none."""
    measured: float | None
    """Bare step of A over that of B; None if one of them cannot be replayed."""
    timed: bool
    """Whether both bare steps were timed by `warpline run`; else the profiler's cost was estimated and taken out."""
    recorded: float
    """Recorded step of A over that of B, with the profiler's cost in both."""
    spread: float = 1.0
    """High over low of the replay itself."""
    is_open: bool = False
    """Whether the times leave open which side is faster."""

    @property
    def is_within_range(self) -> bool | None:
        """Whether the gain is within the predicted range; None if the profiler's cost decides that."""
        if self.predicted is None or self.measured is None:
            return None
        seen = {self.measured} if self.timed else {self.measured, self.recorded}
        within = {self.predicted.low <= gain <= self.predicted.high for gain in seen}
        return within.pop() if len(within) == 1 else None

    @property
    def sentence(self) -> str:
        """The outcome in words."""
        return self.sentence_of("B")

    def sentence_of(self, subject: str) -> str:
        """The outcome in words, of what has the fix. One gain is named: the timed one, else that of the recordings."""
        named = f"{subject} has {' and '.join(self.fixes)}"
        if self.predicted is None or self.measured is None:
            return f"{named}; the replay makes no prediction for it."
        gain = self.predicted
        promise = f"predicted {speedup(gain.expected)} ({speedup(gain.low)} to {speedup(gain.high)})"
        seen = f"timed {speedup(self.measured)}" if self.timed else f"recorded {speedup(self.recorded)}"
        return f"{named}: {promise}, {seen}: {self._judged(gain)}."

    def _judged(self, predicted: Estimate) -> str:
        if self.is_within_range is None:
            return "the profiler's cost is in that; the step timed without it (warpline run) would tell"
        if not self.is_within_range:
            return "outside the predicted range"
        if predicted.is_wide:
            return f"within a range wider than {WIDE:g}×, which proves little"
        return "within the range, but no proof of a gain: runs may differ as much" if self.is_open else "as predicted"

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "fixes": list(self.fixes),
            "predicted": to_builtins(self.predicted.rounded(4)) if self.predicted else None,
            "measured": round(self.measured, 4) if self.measured else None,
            "recorded": round(self.recorded, 4),
            "timed": self.timed,
            "held": self.is_within_range,
            "sentence": self.sentence,
        }


def outcome(a: Trace, b: Trace, step_a: TypicalStep, step_b: TypicalStep) -> Outcome | None:
    """What came of the fix that B has; None if the steps do not tell which it is."""
    fixes = applied_fixes(contents_of(a, step_a), contents_of(b, step_b))
    if not fixes:
        return None
    recorded = step_a.step_ns / step_b.step_ns
    unknown = Outcome(fixes, None, None, timed=False, recorded=recorded)
    if any(len(trace.api) > MOST_CALLS * max(len(trace.steps_in_view), 1) for trace in (a, b)):
        return unknown
    try:
        predicted = whatif(a, list(fixes))
        after = fix_table(b).evidence.question
    except WarplineError:
        return unknown
    measured = predicted.old_step_ns.expected / after.bare.step_ns.expected
    timed = not predicted.bare_is_estimated and after.bare.step_from == "measured"
    return Outcome(fixes, predicted.gain, measured, timed, recorded, predicted.spread)


def applied_fixes(a: StepContents, b: StepContents) -> tuple[str, ...]:
    """The fixes that were made between A and B, or none if that is unknown.

    What several fixes could have changed is not named, and neither is a mixture of many.
    """
    found = [fix for fix in all_fixes().values() if fix.was_made is not None and fix.was_made(a, b)]
    implied = {name for fix in found for name in fix.implies}
    names = tuple(fix.name for fix in found if fix.name not in implied)
    return names if len(names) <= MAX_FIXES else ()


def replaces_all_kernels(a: StepContents, b: StepContents) -> bool:
    """Whether a fix was made between A and B after which no kernel need be the same."""
    return any(all_fixes()[name].replaces_kernels for name in applied_fixes(a, b))


def contents_of(trace: Trace, step: TypicalStep) -> StepContents:
    """What a step of a run contains: kernels of the typical one, calls and copies over all steps."""
    steps = step.spans
    api, gpu = trace.api[_within(trace.api.start_ns, steps)], trace.gpu[_within(trace.gpu.start_ns, steps)]
    cold = trace.once(find_cold_steps)
    return StepContents(
        kernels=Counter(one.name for one in step.operations if one.kind == "kernel"),
        step_ns=step.step_ns,
        copy_ns=sum(
            float(time) for one, time in zip(step.operations, step.exposed_ns, strict=True) if one.kind == "memcpy"
        ),
        calls={kind: int(api.name.like(pattern).sum()) / len(steps) for kind, pattern in CALLS.items()}
        | {"waits": int(waits(api).sum()) / len(steps)},
        copies=_copies(gpu[gpu.kind.equal("memcpy")], len(steps)),
        streams=len(np.unique(gpu.stream[gpu.kind.equal("kernel")])),
        idle_ns=dict(step.idle_ns),
        cold_steps=cold.count if cold is not None else 0,
    )


def _within(moments: Int64s, steps: Spans) -> Bools:
    return (moments >= steps.starts[0]) & (moments < steps.ends[-1])


def _copies(copies: Gpu, steps: int) -> dict[tuple[str, str, str], tuple[float, float]]:
    """Number and bytes per step, by direction and memory at both ends."""
    ends = (copies.copy_kind, copies.source_memory, copies.target_memory)
    one_of_each, which = combinations(*(names.codes for names in ends))
    counts, sizes = np.bincount(which), np.bincount(which, filled(copies.bytes, 0))
    keys = zip(*(names[one_of_each].texts for names in ends), strict=True)
    return dict(zip(keys, zip(counts / steps, sizes / steps, strict=True), strict=True))


def remember_outcome(path: Path, a: Trace, b: Trace, found: Outcome) -> None:
    """Append a prediction and its measurement to the local record; the same two recordings count once."""
    runs = f"{a.file.name} {a.window.length_ns}", f"{b.file.name} {b.window.length_ns}"
    remember_runs(path, runs, found)


def remember_runs(path: Path, runs: tuple[str, str], found: Outcome) -> None:
    """The same of two runs that were not both recorded, by their names."""
    if found.predicted is None or found.measured is None:
        return
    append(
        path,
        "insert or ignore into outcomes"
        " (at, a, b, fix, predicted_low, predicted, predicted_high, spread, measured, timed)"
        " values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            datetime.now(UTC).isoformat(timespec="seconds"),
            *runs,
            "+".join(found.fixes),
            found.predicted.low,
            found.predicted.expected,
            found.predicted.high,
            found.spread,
            found.measured,
            int(found.timed),
        ),
    )
