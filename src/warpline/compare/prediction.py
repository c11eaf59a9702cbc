"""Which prediction came true: the gain that the replay of A promises for the fix that B has, and the gain of B."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import Struct

from warpline.compare.applied_fix import applied_fixes
from warpline.compare.structure import structure_of
from warpline.compare.typical_step import TypicalStep
from warpline.errors import WarplineError
from warpline.estimate import Estimate
from warpline.findings.diagnosis import MOST_CALLS
from warpline.fixes.whatif import question_about, whatif
from warpline.replay.representative_steps import steps_to_judge
from warpline.sources.local_record import append
from warpline.trace.trace import Trace
from warpline.units import speedup


class Outcome(Struct, frozen=True):
    """A prediction that met a measurement. Gains are of the step without a profiler."""

    fixes: tuple[str, ...]
    """What B has and A has not, read off the structure of their steps."""
    predicted: Estimate | None
    """The gain that the replay of A gives these fixes; None if it gives none."""
    measured: float | None
    """Bare step of A over that of B; None if one of them cannot be replayed."""
    timed: bool
    """Whether both bare steps were timed by `warpline run`; else the profiler's cost was estimated and taken out."""
    spread: float = 1.0
    """High over low of the replay itself."""

    @property
    def held(self) -> bool | None:
        """Whether the measured gain is within the predicted range."""
        if self.predicted is None or self.measured is None:
            return None
        return self.predicted.low <= self.measured <= self.predicted.high

    @property
    def sentence(self) -> str:
        """The outcome in words."""
        named = f"B has {' and '.join(self.fixes)}"
        if self.predicted is None or self.measured is None:
            return f"{named}; the replay of A makes no prediction for it."
        told = self.predicted
        promise = f"predicted {speedup(told.expected)} ({speedup(told.low)} to {speedup(told.high)})"
        how = "timed" if self.timed else "without the profiler's estimated cost"
        result = "as predicted" if self.held else "outside the predicted range"
        return f"{named}: {promise}, measured {speedup(self.measured)} ({how}): {result}."

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "fixes": list(self.fixes),
            "predicted": self.predicted.rounded(4).to_dict() if self.predicted else None,
            "measured": round(self.measured, 4) if self.measured else None,
            "timed": self.timed,
            "held": self.held,
            "sentence": self.sentence,
        }


def outcome(a: Trace, b: Trace, step_a: TypicalStep, step_b: TypicalStep) -> Outcome | None:
    """What came of the fix that B has; None if the structure does not tell which it is."""
    fixes = applied_fixes(structure_of(a, step_a), structure_of(b, step_b))
    if not fixes:
        return None
    unknown = Outcome(fixes, None, None, timed=False)
    if any(len(trace.api) > MOST_CALLS * max(len(trace.steps_in_view), 1) for trace in (a, b)):
        return unknown
    try:
        predicted = whatif(a, list(fixes))
        after = question_about(steps_to_judge(b))
    except WarplineError:
        return unknown
    measured = predicted.old_step_ns.expected / after.bare_step_ns.expected
    timed = not predicted.bare_is_estimated and after.bare_step_from == "measured"
    return Outcome(fixes, predicted.gain, measured, timed, predicted.spread)


def remember_outcome(path: Path, a: Trace, b: Trace, found: Outcome) -> None:
    """Append to the local record; the same two recordings count once."""
    if found.predicted is None or found.measured is None:
        return
    append(
        path,
        "insert or ignore into outcomes"
        " (at, a, b, fix, predicted_low, predicted, predicted_high, spread, measured, timed)"
        " values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            datetime.now(UTC).isoformat(timespec="seconds"),
            *(f"{trace.path.name} {trace.window.length_ns}" for trace in (a, b)),
            "+".join(found.fixes),
            found.predicted.low,
            found.predicted.expected,
            found.predicted.high,
            found.spread,
            found.measured,
            int(found.timed),
        ),
    )
