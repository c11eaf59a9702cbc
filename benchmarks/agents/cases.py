"""Twelve slow programs with known fixes, and how an answer about one is graded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faults.recorded import FIXED, RecordedCase, recorded_cases

SUITE = "held_out"
CAUSES = ("dispatch", "sync", "kernel", "transfer", "input", "memory")
EACH = 2
"""The first so many cases of each cause, in the order of the suite: nobody picked them."""


@dataclass(frozen=True)
class Case:
    """A slow program: its recording, one of the fixed program, and what the stopwatch showed."""

    name: str
    before: Path
    after: Path
    cause: str
    fixes: tuple[str, ...]
    """The planted fault's fix, and others that the stopwatch found to help."""
    gains: Mapping[str, float]
    """By fix: the step without a profiler before, over the step after."""


@dataclass(frozen=True)
class Grade:
    """What of an answer is right."""

    cause: bool
    fix: bool
    gain_in_range: bool
    """Whether the range that was given for the fix holds what the stopwatch showed."""
    verdict: bool
    """Whether the comparison says that the fixed program is faster."""

    @property
    def points(self) -> int:
        """Of four."""
        return sum((self.cause, self.fix, self.gain_in_range, self.verdict))


def cases() -> list[Case]:
    """The twelve."""
    found: dict[str, list[Case]] = defaultdict(list)
    for one in recorded_cases(SUITE):
        cause = one.entry["cause"]
        if cause in CAUSES and len(found[cause]) < EACH:
            found[cause].append(_case(one))
    return [case for cause in CAUSES for case in found[cause]]


def _case(one: RecordedCase) -> Case:
    before_ns = one.entry["bare_step_ns"]["faulty"]["step_ns"]
    gains = {fix: before_ns / time["step_ns"] for fix, time in one.timed_fixes.items()}
    helping = tuple(fix for fix, gain in gains.items() if gain > 1.05)
    before, after = one.recording(one.scored_variant), one.recording(FIXED)
    return Case(one.name, before, after, one.entry["cause"], helping, gains)


def grade(case: Case, answer: Mapping[str, Any]) -> Grade:
    """Grade `{"cause", "fix", "gain": {"low", "high"}, "verdict"}`; what is missing is wrong."""
    fix, gain = answer.get("fix"), answer.get("gain")
    measured = case.gains.get(str(fix))
    holds = (
        isinstance(gain, Mapping)
        and measured is not None
        and isinstance(gain.get("low"), (int, float))
        and isinstance(gain.get("high"), (int, float))
        and gain["low"] <= measured <= gain["high"]
    )
    return Grade(answer.get("cause") == case.cause, fix in case.fixes, holds, answer.get("verdict") == "faster")
