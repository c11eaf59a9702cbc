"""What `warpline try` found: the baseline, a row for each fix, and the best combination."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from warpline.capture.trial.use import ProgramUse
from warpline.estimate import Estimate
from warpline.trial.judge import Verdict
from warpline.trial.sameness import Sameness

SCHEMA = "warpline.try/1"
NS_PER_S = 1e9
NOT_TRIED = "not tried: the trial ended before"


class MemoryPeak(Struct, frozen=True):
    """Peak memory in bytes: of tensors on the GPU, or of the process if it uses none."""

    before: int
    after: int


class LaterLoss(Struct, frozen=True):
    """The loss after some steps, of the baseline and of the variant."""

    steps: int
    before: float
    after: float


class TriedFix(Struct, frozen=True):
    """One fix or combination: what was measured, or why it was not."""

    name: str
    """The change's name, or several joined by +."""
    does: str
    lines: str
    """What to write into the program."""
    fix: str | None = None
    """The fix that predicts it."""
    applied: bool = False
    why_not: str = ""
    predicted: Estimate | None = None
    """The predicted speed-up."""
    gain: Estimate | None = None
    verdict: Verdict | None = None
    confirmed: bool = False
    """Whether fresh processes gave it again."""
    is_bound: bool = False
    """Whether the changed program is not the same program: the gain bounds what the fix can give."""
    sameness: Sameness | None = None
    proof: tuple[str, ...] = ()
    """What was changed."""
    memory: MemoryPeak | None = None
    later_start_s: float | None = None
    """Seconds by which it is ready later than the baseline."""
    pays_after_steps: int | None = None
    """Steps after which the later start is made up for; None if it is not later or not faster."""
    loss: LaterLoss | None = None
    processes: int = 0
    note: str = ""

    @property
    def is_open(self) -> bool:
        """Whether more time may give a verdict, or another one."""
        return self.verdict == "inconclusive" or self.why_not == NOT_TRIED

    @property
    def prediction_held(self) -> bool | None:
        """Whether the measured gain lies in the predicted range; None without a prediction or a measurement."""
        if self.predicted is None or self.gain is None:
            return None
        return self.predicted.low <= self.gain.expected <= self.predicted.high


class TrialAnswer(Struct, frozen=True):
    """The whole answer."""

    command: tuple[str, ...]
    step: str
    """What a step is: `AdamW.step()`."""
    baseline_s: Estimate | None
    """Seconds of a step of the program as it is."""
    baseline_processes: int
    windows: int
    steps_per_window: int
    tries: tuple[TriedFix, ...]
    best: tuple[str, ...]
    """Names of the fixes of the best combination."""
    use: ProgramUse
    """What the program uses, as the first run saw it."""
    seconds: float
    stopped: str = ""
    """Why it ended early; empty if it did not."""

    def row(self, name: str) -> TriedFix | None:
        """The row of a fix or combination."""
        return next((row for row in self.tries if row.name == name), None)

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "schema": SCHEMA,
            "command": list(self.command),
            "step": self.step,
            "baseline": {
                "step_ns": _ns(self.baseline_s, lambda second: second),
                "processes": self.baseline_processes,
                "windows": self.windows,
                "steps_per_window": self.steps_per_window,
            },
            "tries": [self._row(row) for row in self.tries],
            "best": list(self.best),
            "writes": list(self.use.writes),
            "seconds": round(self.seconds, 1),
            "stopped": self.stopped or None,
        }

    def _row(self, row: TriedFix) -> dict[str, Any]:
        base = self.baseline_s.expected if self.baseline_s is not None else 0.0
        same = row.sameness
        return {
            "fix": row.name,
            "applied": row.applied,
            "why_not": row.why_not or None,
            "predicted_ns": _ns(row.predicted, lambda gain: base / gain),
            "measured_ns": _ns(row.gain, lambda gain: base / gain),
            "predicted_gain": row.predicted.rounded(4).to_dict() if row.predicted else None,
            "gain": row.gain.rounded(4).to_dict() if row.gain else None,
            "verdict": row.verdict,
            "confirmed": row.confirmed,
            "is_bound": row.is_bound,
            "prediction_held": row.prediction_held,
            "same_result": same.same if same else None,
            "largest_difference": same.largest_difference if same else None,
            "result": same.sentence if same else None,
            "changed": list(row.proof),
            "memory_bytes": {"before": row.memory.before, "after": row.memory.after} if row.memory else None,
            "later_start_s": row.later_start_s,
            "pays_after_steps": row.pays_after_steps,
            "loss": {"steps": row.loss.steps, "before": row.loss.before, "after": row.loss.after} if row.loss else None,
            "processes": row.processes,
            "does": row.does,
            "lines": row.lines,
            "note": row.note or None,
        }


def _ns(estimate: Estimate | None, of: Any) -> dict[str, int] | None:
    """A range of seconds in nanoseconds; `of` may turn it round."""
    if estimate is None:
        return None
    expected = round(of(estimate.expected) * NS_PER_S)
    low, high = sorted(round(of(end) * NS_PER_S) for end in (estimate.low, estimate.high))
    return {"low": low, "expected": expected, "high": high}
