"""Cold steps of two programs, beside the same steps of each other.

A comparison is one of warm steps. What a program takes once, while it loads, compiles or tunes, is compared by itself:
the steps that are cold on a side, as one span, with those at the same places on the other side.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from warpline.compare.measurement import run_time
from warpline.compare.parts import StepPart, explain
from warpline.compare.spread import Difference, difference
from warpline.compare.typical_step import TypicalStep, typical_step, whole_span
from warpline.compare.words import in_words
from warpline.replay.cold_steps import find_cold_steps
from warpline.trace.steps.choice import ColdSteps
from warpline.trace.trace import Trace
from warpline.units import duration, several

MAX_LISTED_OPS = 3
"""Ops that are named."""
VAGUE_CAUSES = ("dispatch", "launch_latency", "unknown")
"""Causes of idle time that say no more than that the CPU is not done; beyond a warm step they are the cold start."""


class ColdStartChange(Struct, frozen=True):
    """The cold steps of a side and the same ones of the other, as one span."""

    first: int
    """Place of the first of these steps in the recordings, from 0."""
    count: int
    cold_in: tuple[str, ...]
    """`a`, `b` or both."""
    difference: Difference
    a_ns: int
    b_ns: int
    parts: tuple[StepPart, ...]
    """What differs, the largest first; the changes and `unexplained_ns` sum to the change of the span."""
    unexplained_ns: int
    ops: tuple[tuple[str, int], ...]
    """Outermost ops, or calls, of the longer side that take longest beyond a warm step, with that time."""

    @property
    def sentence(self) -> str:
        """The answer in one sentence."""
        times = f"{duration(self.a_ns)} → {duration(self.b_ns)}, {in_words(self.difference.ratio)}"
        verdict = self.difference.verdict
        answer = {"same": "B is as fast as A", "inconclusive": "inconclusive"}.get(verdict, f"B is {verdict} than A")
        return f"Cold start, {self.which}: {answer}, {times}."

    @property
    def which(self) -> str:
        """The steps in words."""
        if self.first:
            return f"step {self.first + 1}" + (f" to {self.first + self.count}" if self.count > 1 else "")
        return "the first step" if self.count == 1 else f"the first {several(self.count, 'step')}"

    @property
    def remarks(self) -> tuple[str, ...]:
        """Where the time goes, and what a reader should know."""
        longer = "A" if self.a_ns > self.b_ns else "B"
        ops = ", ".join(f"{name} {duration(time)}" for name, time in self.ops)
        remarks = [f"Longest in {longer} beyond a warm step: {ops}."] if ops else []
        if len(self.cold_in) == 1:
            warm = "B" if self.cold_in == ("a",) else "A"
            remarks.append(f"In {warm} these steps are not cold: it has no cold start, or it was recorded after one.")
        return tuple(remarks)

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "verdict": self.difference.verdict,
            "first": self.first,
            "count": self.count,
            "cold_in": list(self.cold_in),
            "a_ns": self.a_ns,
            "b_ns": self.b_ns,
            "change_ns": self.b_ns - self.a_ns,
            "ratio": to_builtins(self.difference.ratio.rounded(5)),
            "more_runs": self.difference.more_runs,
            "parts": [part.to_dict() for part in self.parts],
            "unexplained_ns": self.unexplained_ns,
            "ops": [{"name": name, "ns": time} for name, time in self.ops],
        }


def cold_start(a: Sequence[Trace], b: Sequence[Trace], least_effect: float) -> ColdStartChange | None:
    """The cold steps; None if no run has any, or a run does not reach as far."""
    sides = {
        "a": [(trace, trace.once(find_cold_steps)) for trace in a],
        "b": [(trace, trace.once(find_cold_steps)) for trace in b],
    }
    known = [cold for runs in sides.values() for _, cold in runs if cold is not None]
    if not known:
        return None
    first, stop = min(cold.first for cold in known), max(cold.first + cold.count for cold in known)
    if any(len(trace.steps_in_view) < stop for runs in sides.values() for trace, _ in runs):
        return None
    spans_a, spans_b = ([_span(trace, cold, first, stop) for trace, cold in runs] for runs in sides.values())
    span_a, span_b = (sorted(some, key=lambda span: span.step_ns)[(len(some) - 1) // 2] for some in (spans_a, spans_b))
    explained = explain(span_a, span_b)
    longer = sides["a" if span_a.step_ns > span_b.step_ns else "b"]
    return ColdStartChange(
        first,
        stop - first,
        tuple(side for side, runs in sides.items() if any(cold is not None for _, cold in runs)),
        difference(tuple(map(run_time, spans_a)), tuple(map(run_time, spans_b)), least_effect),
        round(span_a.step_ns),
        round(span_b.step_ns),
        explained.parts,
        explained.unexplained_ns,
        next((cold.ops[:MAX_LISTED_OPS] for _, cold in longer if cold is not None), ()),
    )


def _span(trace: Trace, cold: ColdSteps | None, first: int, stop: int) -> TypicalStep:
    """The steps as one span; in a cold one, idle time beyond that of warm steps is named for what it is."""
    span = whole_span(trace, first, stop)
    if cold is None:
        return span
    warm, idle = typical_step(trace), dict(span.idle_ns)
    for cause in VAGUE_CAUSES:
        once = max(idle[cause] - (stop - first) * warm.idle_ns[cause], 0.0)
        idle[cause] -= once
        idle["cold_start"] += once
    return replace(span, idle_ns=idle)
