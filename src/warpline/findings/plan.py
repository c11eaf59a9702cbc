"""The plan: the order in which fixes are best made, each replayed on top of the ones before it.

Of the first fix, what it saves with a probability of 80 % counts: of two that are expected to save about the same, the
surer one is named. A fix of less effort comes first where it saves at least half as much. A fix that can be made only
in part until another one is made comes after it. Nothing else is preferred.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, get_args

from msgspec import Struct
from msgspec.structs import replace

from warpline.estimate import CLEAR_GAIN, NOTICEABLE_GAIN, SHOWN_GAIN, Estimate
from warpline.findings.model import Finding
from warpline.fixes.claim import CAUSES, Cause, Confidence, Effort
from warpline.fixes.evidence import Evidence
from warpline.fixes.model import Fix, Rule
from warpline.fixes.registry import all_fixes
from warpline.replay.bounds import DeviceWork
from warpline.replay.ranges import ranges_of
from warpline.units import duration, speedup

MIN_GAIN: dict[Confidence, float] = {"high": CLEAR_GAIN, "medium": CLEAR_GAIN, "low": 1.6}
"""A plan starts with a fix that gains this much. Fixes of low confidence are taken only where no other is worth making;
libraries reach 60 to 95 % of the roofline, so that kernels closer to it than 1.6× are no fault."""
MIN_LIKELY_GAIN = 1.1
"""A fix that might gain nothing is worth naming from here on: of eight that were timed, seven gained."""
MOST_STEPS = 5
MIN_REPLAYS, MAX_REPLAYS, MAX_NODES = 5, 12, 150_000
"""A plan takes at most so many replays, and no more than replay so many graph nodes in all (about 0.1 s)."""
MOST_OF_DEVICE = 0.5
"""Share of the device's time that a fix touches if most of what the device does is what it changes."""
ENOUGH = 0.5
"""A fix of less effort comes first if it saves this share of the largest saving."""
SAME = 0.02
"""Savings that differ by less than this share of the step are equal."""
EFFORTS = get_args(Effort)
EFFORT_WORDS: dict[Effort, str] = {
    "setting": "is one line",
    "few_lines": "takes a few lines",
    "rewrite": "is a rewrite",
}


class PlanStep(Struct, frozen=True):
    """One fix of the plan, made after the ones before it."""

    fix: str
    new_step_ns: Estimate
    """The step with this fix and all before it, without a profiler."""
    gain: Estimate
    """Speed-up by this fix and all before it."""
    why: str | None = None
    """Why it comes now, where another fix saves more."""
    effort: Effort = "few_lines"
    """What it takes in this program."""
    is_vague: bool = False
    """Whether nobody knows how much this fix or one before it gains."""

    @property
    def known_step_ns(self) -> float:
        """The step that a reader is told: the expected one, or the longest where nobody knows how much it gains."""
        return self.new_step_ns.high if self.is_vague else self.new_step_ns.expected

    @property
    def new_step_words(self) -> str:
        """The step, with no more than the trace can tell."""
        return f"≤ {duration(self.known_step_ns)}" if self.is_vague else duration(self.known_step_ns)

    @property
    def gain_words(self) -> str:
        """The gain, with no more than the trace can tell."""
        return f"≥ {speedup(self.gain.low)}" if self.is_vague else speedup(self.gain.expected)

    def to_dict(self) -> dict[str, Any]:
        """The step as JSON."""
        return {"fix": self.fix, "new_step_ns": self.new_step_ns.to_dict(), "gain": self.gain.to_dict()}


Adds = Callable[[str, str], float]
"""What a second fix gains on top of a first one."""


class Option(Struct, frozen=True):
    """A fix that could come next."""

    fix: Fix
    gain: float
    """Of this fix on top of the ones before it."""
    place: int
    """Position of its cause among equal gains."""
    needs: Effort | None = None
    """Effort in this program, if it is not that of the fix."""
    explained: float = 1.0
    """Share of the step that it can save by what its cause explains."""
    least: float | None = None
    """The least gain, where the expected one is not known."""
    certain: float = 1.0
    """Part of the expected saving that it has with a probability of 80 %."""

    @property
    def expected(self) -> float:
        """Share of the step that it is expected to save, as far as its cause explains it: a fix that makes the CPU free
        for what the GPU really waits for comes after the one for that."""
        return min(1 - 1 / max(self.gain, 1.0), self.explained)

    @property
    def saved(self) -> float:
        """The part of it that counts beside others."""
        return self.certain * self.expected

    @property
    def effort(self) -> int:
        """Rank of its effort, the least first."""
        return EFFORTS.index(self.kind)

    @property
    def words(self) -> str:
        """Its gain in a sentence."""
        if self.least is None:
            return speedup(self.gain)
        return f"{speedup(self.least)} or more" if self.least >= NOTICEABLE_GAIN else "an unknown gain"

    @property
    def kind(self) -> Effort:
        """Its effort."""
        return self.needs or self.fix.effort


def next_fix(
    options: Sequence[Option], doubtful: Sequence[Option] = (), adds: Adds | None = None
) -> tuple[Option, str | None]:
    """The fix to make next, and why if another one saves more; a doubtful one only where the next fix needs it, and
    would still leave it something to gain."""
    largest = max(options, key=lambda option: option.saved)
    equal = [option for option in options if option.saved >= largest.saved - SAME]
    chosen = min(equal, key=lambda option: (option.effort, option.place))
    easier = [one for one in options if one.effort < chosen.effort and one.saved >= ENOUGH * largest.saved]
    if easier:
        chosen = min(easier, key=lambda option: (option.effort, -option.saved))
    needed = _needed(chosen, options) or [
        one
        for one in _needed(chosen, doubtful)
        if one.gain >= MIN_LIKELY_GAIN and (adds is None or adds(chosen.fix.name, one.fix.name) >= MIN_GAIN["high"])
    ]
    if needed:
        before, after = max(needed, key=lambda option: option.saved), chosen
        return before, None if before.gain >= largest.gain else _because(before, largest, f"{after.fix.words} needs it")
    if chosen is largest:
        more = max(options, key=lambda option: option.gain)
        is_more = more.gain > chosen.gain and more.expected < chosen.expected
        return chosen, _because(chosen, more, "the GPU waits for it") if is_more else None
    if chosen.gain >= largest.gain:
        return chosen, None
    if chosen.effort < largest.effort:
        return chosen, _because(chosen, largest, f"it {EFFORT_WORDS[chosen.kind]}")
    return chosen, _because(chosen, largest, "the difference is too small to count")


def _needed(chosen: Option, among: Sequence[Option]) -> list[Option]:
    """Those without which the chosen fix can be made only in part."""
    return [option for option in among if option.fix.name in chosen.fix.first]


def _because(chosen: Option, largest: Option, reason: str) -> str:
    return f"first, because {reason}: {chosen.words}; {largest.fix.words} would give {largest.words}"


def make_plan(findings: Sequence[Finding], evidence: Evidence, work: DeviceWork, *, waits: bool) -> list[PlanStep]:
    """The plan for these findings; empty if no fix is worth making. `waits`: whether the device certainly waits."""
    step, plan = first_step(findings, waits=waits, adds=_added_by(evidence)), list[PlanStep]()
    later = Later(findings, evidence, work) if step else None
    while step is not None and later is not None:
        plan.append(step)
        step = later.best_after(plan) if len(plan) < MOST_STEPS else None
    return plan


def _added_by(evidence: Evidence) -> Adds:
    return lambda first, second: evidence.trial(first).step_ns / evidence.trial(first, second).step_ns


def first_step(findings: Sequence[Finding], *, waits: bool, adds: Adds | None = None) -> PlanStep | None:
    """The fix to make first; None if none is worth making."""
    worth = [one for one in findings if one.gain.expected >= MIN_GAIN[one.confidence]]
    options = _worth_first(worth) or (_possible(worth) if waits else [])
    if not options:
        return None
    doubtful = [one for one in worth if one.confidence != "low" and one not in options]
    chosen, why = next_fix(_options(options), _options(doubtful), adds)
    found = next(finding for finding in findings if finding.fix == chosen.fix.name)
    why = why or _larger_doubt(found, findings)
    return PlanStep(found.fix, found.new_step_ns, found.gain, why, found.effort, found.is_vague)


def _worth_first(worth: Sequence[Finding]) -> list[Finding]:
    """Those that probably gain, and of them those of low confidence only where there are no others, or where it is low
    for the width of the range, which the probable gain counts already; else those that change most of what the device
    does; else limits, which are no change that can be made."""
    likely = [one for one in worth if one.is_likely]
    changes = [one for one in likely if not all_fixes()[one.fix].is_limit]
    sure = [one for one in changes if one.confidence != "low"]
    wide = [one for one in changes if one.confidence == "low" and one.cannot_tell]
    return [*sure, *wide] if sure else changes or _large(worth) or likely


def _large(worth: Sequence[Finding]) -> list[Finding]:
    """Those that change most of what the device does and gain more than libraries leave."""
    return [
        one
        for one in worth
        if one.gain.expected >= MIN_GAIN["low"]
        and one.device_share >= MOST_OF_DEVICE
        and not all_fixes()[one.fix].is_limit
    ]


def _possible(worth: Sequence[Finding]) -> list[Finding]:
    """Those that might gain nothing but are expected to gain. They are for a device that waits for long: such a step is
    no healthy one, so that what probably mends it is worth more than no answer."""
    return [
        one
        for one in worth
        if one.confidence != "low" and one.known_gain >= MIN_LIKELY_GAIN and not all_fixes()[one.fix].is_limit
    ]


def _options(findings: Iterable[Finding]) -> list[Option]:
    causes = list(CAUSES)
    return [
        Option(
            fix=all_fixes()[one.fix],
            gain=one.known_gain,
            place=causes.index(one.cause),
            needs=one.effort,
            explained=one.explained_share,
            least=one.gain.low if one.is_vague else None,
            certain=one.certain_part,
        )
        for one in findings
    ]


def _larger_doubt(chosen: Finding, findings: Iterable[Finding]) -> str | None:
    """Why a larger gain does not come first: it is not certain enough to be worth making."""
    others = [one for one in findings if one.confidence != "low" and one.gain.expected > chosen.gain.expected]
    if chosen.confidence == "low" or not others:
        return None
    largest = max(others, key=lambda one: one.gain.expected)
    spread = f"{speedup(largest.gain.low).removesuffix('×')}–{speedup(largest.gain.high)}"
    is_easy = chosen.effort == "setting" != largest.effort
    return (
        f"first, because it is {'one line' if is_easy else 'more certain'}: "
        f"{all_fixes()[largest.fix].words} would give {speedup(largest.gain.expected)} ({spread})"
    )


class Later:
    """The fixes that may come later in a plan: those of findings, and those that gain nothing alone because something
    else takes longer. Replays are the cost of a plan, so a fix that cannot save enough is not replayed."""

    def __init__(self, findings: Sequence[Finding], evidence: Evidence, work: DeviceWork) -> None:
        self._evidence, self._work = evidence, work
        self._replays_left = min(max(MAX_NODES // len(evidence.labelled.graph), MIN_REPLAYS), MAX_REPLAYS)
        self._found = {finding.fix: finding for finding in findings}
        self._can_be_low = all(one.confidence == "low" for one in findings if one.gain.expected >= MIN_GAIN["high"])
        self._causes = {name: cause for name in all_fixes() if (cause := self._cause_of(name)) is not None}
        self._most = {name: work.most_saved(evidence.trial(name)) for name in self._causes}

    def _cause_of(self, name: str) -> Cause | None:
        """The cause that a fix is to mend; None if it is not to be planned."""
        found = self._found.get(name)
        rules = [rule for rule in all_fixes()[name].findings if rule.most != "low"]
        if not rules or not any(self._evidence.trial(name).changed):
            return None
        is_doubtful = found is not None and found.confidence == "low" and found.gain.expected >= MIN_GAIN["high"]
        if is_doubtful and not self._can_be_low:
            return None
        return found.cause if found else rules[0].cause

    def best_after(self, plan: Sequence[PlanStep]) -> PlanStep | None:
        """The next step of the plan; None if no fix gains enough."""
        names = [step.fix for step in plan]
        now = plan[-1].new_step_ns.expected
        options = self._options(names, now)
        while options:
            chosen, _ = next_fix(options)
            if self._stands(chosen.fix):
                step = self._step(plan, chosen, now / chosen.gain)
                # A bound above the step before it says nothing about what the fix adds.
                if not step.is_vague or step.known_step_ns < plan[-1].known_step_ns:
                    return step
            options.remove(chosen)
            del self._causes[chosen.fix.name]
        return None

    def _options(self, names: list[str], now: float) -> list[Option]:
        """What could come next. The fix that could save most is replayed first; one that cannot save half as much as
        another does cannot be the next."""
        device = self._work.least_after(self._evidence.trial(*names)).expected_ns
        most = {name: self._most_saved(name, now - device) for name in self._causes if name not in names}
        options: list[Option] = []
        for name in sorted(most, key=lambda one: -most[one]):
            best = max((option.saved for option in options), default=0.0) * now
            if most[name] < max((1 - 1 / SHOWN_GAIN) * now, ENOUGH * best) or not self._replays_left:
                break
            after = self._step_with(*names, name)
            if now / after >= SHOWN_GAIN:
                effort = self._found[name].effort if name in self._found else None
                place = list(CAUSES).index(self._causes[name])
                options.append(Option(all_fixes()[name], now / after, place, effort))
        return options

    def _most_saved(self, name: str, idle_ns: float) -> float:
        most = self._most[name]
        return min(most.in_all_ns, most.of_device_ns + idle_ns)

    def _step_with(self, *names: str) -> float:
        self._replays_left -= 1
        trial = self._evidence.trial(*names)
        return max(trial.step_ns, self._work.least_after(trial).expected_ns)

    def _stands(self, fix: Fix) -> bool:
        """Whether the trace supports what one of the fix's rules claims, and there is advice for the program."""
        return fix.name in self._found or any(self._claims(rule, fix) for rule in fix.findings)

    def _claims(self, rule: Rule, fix: Fix) -> bool:
        has_advice = rule.most != "low" and rule.advice.to(self._evidence.framework) is not None
        return has_advice and rule.look(self._evidence, self._evidence.ask(fix.name)) is not None

    def _step(self, plan: Sequence[PlanStep], chosen: Option, after: float) -> PlanStep:
        """The step with its range; the replay's spread is that of all its fixes, as independent doubts add up."""
        names = [*(step.fix for step in plan), chosen.fix.name]
        spread = math.exp(math.hypot(*(math.log(self._evidence.ask(name).spread) for name in names)))
        trial, question = self._evidence.trial(*names), self._evidence.question
        least = self._work.least_after(trial).lowest_ns
        known = ranges_of(
            names,
            question.bare_step_ns,
            after,
            spread=spread,
            idle=question.idle_shares(trial),
            least_ns=least,
            calm=question.calm(trial),
        )
        found = self._found.get(chosen.fix.name)
        is_vague = plan[-1].is_vague or (found is not None and found.is_vague)
        step_ns, gain = known.step_ns.rounded(), known.gain.rounded(4)
        if self._evidence.trial(chosen.fix.name).may_do_nothing:
            before = plan[-1]
            step_ns = replace(step_ns, high=max(step_ns.high, before.new_step_ns.high))
            gain = replace(gain, low=min(gain.low, before.gain.low))
        return PlanStep(chosen.fix.name, step_ns, gain, effort=chosen.kind, is_vague=is_vague)
