"""The plan: the order in which fixes are best made, each replayed on top of the ones before it.

The fix that is expected to save most comes next; of those that save within a tenth of that, the one whose gain is most
certain. One of less effort comes before it where it saves at least half as much, and so does what it needs (a CUDA
graph needs a step without waits); it follows at once then. What changes the result (a larger batch) comes last. A plan
never goes up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from msgspec import Struct
from msgspec.structs import replace

from warpline.estimate import CLEAR_GAIN, SHOWN_GAIN, Estimate
from warpline.findings.audit import Objection
from warpline.findings.fix_table import FixTable
from warpline.findings.limits import TOGETHER
from warpline.findings.model import MEASURE_IT, Finding
from warpline.fixes.claim import Effort
from warpline.fixes.model import Fix
from warpline.fixes.registry import all_fixes
from warpline.units import duration, speedup

MOST_STEPS = 5
HALF = 0.5
"""A fix of less effort comes first if it saves this share of the largest saving."""
MIN_REPLAYS, MAX_REPLAYS, MAX_NODES = 5, 12, 150_000
"""A plan takes at most so many replays, and no more than replay so many graph nodes in all (about 0.1 s)."""
EFFORTS = get_args(Effort)
EFFORT_WORDS: dict[Effort, str] = {
    "setting": "is one line",
    "few_lines": "takes a few lines",
    "rewrite": "is a rewrite",
}


class PlanStep(Struct, frozen=True):
    """One fix of the plan, made after the ones before it."""

    fix: str
    words: str
    """What the fix is called in a sentence about this program."""
    new_step_ns: Estimate
    """The step with this fix and all before it, without a profiler."""
    gain: Estimate
    """Speed-up by this fix and all before it."""
    why: str | None = None
    """Why it comes now, where another fix saves more …"""
    larger: str | None = None
    """… and the name of that fix."""
    is_needed: bool = False
    """Whether it comes now because that fix needs it: both are one change."""
    effort: Effort = "few_lines"
    """What it takes in this program."""

    def to_dict(self) -> dict[str, Any]:
        """The step as JSON."""
        return {"fix": self.fix, "new_step_ns": self.new_step_ns.to_dict(), "gain": self.gain.to_dict()}


class Option(Struct, frozen=True):
    """A fix that could come next, and, where it does, why."""

    fix: Fix
    words: str
    """As of a step of the plan."""
    gain: Estimate
    """Of this fix on top of the ones before it."""
    effort: Effort
    why: str | None = None
    """As of a step of the plan, likewise the two below."""
    larger: str | None = None
    is_needed: bool = False

    @property
    def gain_words(self) -> str:
        """The gain, or its range where that is to be measured."""
        return f"{self.gain.speedups}, {MEASURE_IT}" if self.gain.is_wide else speedup(self.gain.expected)

    @property
    def saved(self) -> float:
        """Share of the step that it is expected to save."""
        return 1 - 1 / max(self.gain.expected, 1.0)

    @property
    def effort_rank(self) -> int:
        """The least effort first."""
        return EFFORTS.index(self.effort)


def next_fix(options: Sequence[Option], needed: Sequence[Option] = ()) -> Option:
    """The fix to make next; `needed` are fixes that are made only where another one needs them."""
    same = [one for one in options if one.fix.keeps_result] or options
    largest = max(same, key=lambda option: option.saved)
    safest = max((one for one in same if one.saved >= TOGETHER * largest.saved), key=lambda option: option.gain.low)
    enough = [one for one in same if one.saved >= HALF * largest.saved]
    easiest = min(enough, key=lambda option: (option.effort_rank, -option.saved))
    chosen = easiest if easiest.effort_rank < safest.effort_rank else safest
    before = [one for one in (*same, *needed) if one.fix.name in chosen.fix.first and one is not chosen]
    if before:
        needed_first = max(before, key=lambda option: option.saved)
        reason = f"first because {chosen.words} ({chosen.gain_words}) needs it"
        return replace(needed_first, why=reason, larger=chosen.fix.name, is_needed=True)
    if chosen is not largest:
        is_easier = chosen.effort_rank < largest.effort_rank
        return _rather(
            chosen, f"it {EFFORT_WORDS[chosen.effort]}" if is_easier else "its gain is more certain", largest
        )
    other = max(options, key=lambda option: option.saved)
    if other.saved > chosen.saved:
        return _rather(chosen, "it leaves the batch as it is", other)
    return chosen


def _rather(chosen: Option, reason: str, larger: Option) -> Option:
    gains = "may gain" if larger.gain.is_wide else "would gain"
    why = f"first because {reason}; {larger.words} {gains} {larger.gain_words}"
    return replace(chosen, why=why, larger=larger.fix.name)


def make_plan(fixes: FixTable) -> list[PlanStep]:
    """The plan for the findings of the table; empty if no fix is worth making."""
    first = first_step(fixes.findings)
    if first is None:
        return []
    plan, later = [first], LaterFixes(fixes)
    while len(plan) < MOST_STEPS and (step := later.best_after(plan)):
        plan.append(step)
    return plan


def first_step(findings: Sequence[Finding]) -> PlanStep | None:
    """The fix to make first; None if none is expected to gain 5 %. A limit is no change that can be made."""
    changes = {one.fix: one for one in findings if not all_fixes()[one.fix].is_limit}
    worth = [_option(one) for one in changes.values() if one.gain.expected >= CLEAR_GAIN]
    if not worth:
        return None
    small = [_option(one) for one in changes.values() if SHOWN_GAIN <= one.gain.expected < CLEAR_GAIN]
    chosen = next_fix(worth, small)
    new_step_ns = changes[chosen.fix.name].new_step_ns
    return PlanStep(
        chosen.fix.name,
        chosen.words,
        new_step_ns,
        chosen.gain,
        chosen.why,
        chosen.larger,
        chosen.is_needed,
        chosen.effort,
    )


def _option(finding: Finding) -> Option:
    return Option(all_fixes()[finding.fix], finding.words, finding.gain, finding.effort)


class LaterFixes:
    """The fixes that may come later in a plan: those of findings, and those that gain nothing alone because something
    else takes longer. Replays are the cost of a plan, so a fix that cannot save enough is not replayed."""

    def __init__(self, fixes: FixTable) -> None:
        evidence, work = fixes.evidence, fixes.work
        self._fixes, self._evidence, self._work = fixes, evidence, work
        self._replays_left = min(max(MAX_NODES // len(evidence.labelled.graph), MIN_REPLAYS), MAX_REPLAYS)
        self._found: Mapping[str, Finding] = {finding.fix: finding for finding in fixes.findings}
        self._candidates = [
            name for name, fix in all_fixes().items() if not fix.is_limit and any(evidence.trial(name).changed)
        ]
        self._most = {name: work.most_saved(evidence.trial(name)) for name in self._candidates}

    def best_after(self, plan: Sequence[PlanStep]) -> PlanStep | None:
        """The next step of the plan; None if no fix gains enough."""
        names = [step.fix for step in plan]
        last, now = plan[-1], plan[-1].new_step_ns.expected
        needing = self._option(names, last.larger, now) if last.is_needed and last.larger else None
        if needing is not None:
            return self._step(names, next_fix([needing], self._needed_by(needing.fix, names, now)))
        options = self._options(names, now)
        while options:
            chosen = next_fix(options)
            if self._fixes.has_evidence(chosen.fix.name):
                return self._step(names, chosen)
            options = [one for one in options if one.fix is not chosen.fix]
            self._candidates.remove(chosen.fix.name)
        return None

    def _needed_by(self, fix: Fix, names: list[str], now: float) -> list[Option]:
        """What else it needs."""
        needed = [name for name in self._candidates if name in fix.first and name not in names]
        options = [self._option(names, name, now) for name in needed if self._fixes.has_evidence(name)]
        return [option for option in options if option is not None]

    def _options(self, names: list[str], now: float) -> list[Option]:
        """What could come next. The fix that could save most is replayed first; one that cannot save half as much as
        another does cannot be the next."""
        device = self._work.least_after(self._evidence.trial(*names)).expected_ns
        most = {name: self._most_saved(name, now - device) for name in self._candidates if name not in names}
        options: list[Option] = []
        for name in sorted(most, key=lambda one: (not all_fixes()[one].keeps_result, -most[one])):
            best = max((option.saved for option in options), default=0.0) * now
            if most[name] < max((1 - 1 / SHOWN_GAIN) * now, HALF * best) or not self._replays_left:
                break
            if (option := self._option(names, name, now)) is not None:
                options.append(option)
        return options

    def _option(self, names: list[str], name: str, now: float) -> Option | None:
        """This fix on top of the ones before it; None if it gains too little."""
        after = self._step_with(*names, name)
        if now / after < SHOWN_GAIN:
            return None
        effort = self._found[name].effort if name in self._found else all_fixes()[name].effort
        return Option(all_fixes()[name], self._fixes.words_of(name), Estimate.exactly(now / after), effort)

    def _most_saved(self, name: str, idle_ns: float) -> float:
        most = self._most[name]
        return min(most.in_all_ns, most.of_device_ns + idle_ns)

    def _step_with(self, *names: str) -> float:
        self._replays_left -= 1
        trial = self._evidence.trial(*names)
        return max(trial.step_ns, self._work.least_after(trial).expected_ns)

    def _step(self, names: Sequence[str], chosen: Option) -> PlanStep:
        """The row of the table for all fixes so far."""
        known = self._fixes.row(*names, chosen.fix.name)
        step_ns, gain = known.new_step_ns.rounded(), known.gain.rounded(4)
        needing = chosen.larger if chosen.is_needed else None
        return PlanStep(
            chosen.fix.name,
            chosen.words,
            step_ns,
            gain,
            larger=needing,
            is_needed=chosen.is_needed,
            effort=chosen.effort,
        )


def audit_plan(plan: Sequence[PlanStep]) -> tuple[list[PlanStep], list[Objection]]:
    """The plan up to the first step that would not shorten the step before it."""
    for position in range(1, len(plan)):
        before, after = plan[position - 1].new_step_ns.expected, plan[position].new_step_ns.expected
        if after >= before:
            message = f"{plan[position].fix} leaves the step at {duration(after)}: the plan ends before it"
            return list(plan[:position]), [Objection("plan-without-gain", None, message)]
    return list(plan), []
