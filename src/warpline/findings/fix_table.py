"""The one table of fixes of a trace: what each fix gains, alone and together with others.

Every number about a fix is made here, once for a trace: `diagnose`, `whatif`, the plan, `budget`, the page, notebooks
and files show these rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from warpline.errors import CannotAnswer
from warpline.estimate import NOTICEABLE_GAIN, Estimate
from warpline.findings.audit import Objection, audit_coverage, audit_finding, audit_step, held_by_steps
from warpline.findings.confidence import confidence_of, least
from warpline.findings.model import MEASURE_IT, Finding, how_to_measure
from warpline.findings.state import State, state_of
from warpline.fixes.claim import Claim
from warpline.fixes.engine_advice import engine_advice
from warpline.fixes.evidence import Evidence
from warpline.fixes.model import Rule
from warpline.fixes.registry import all_fixes, fix_of, rules
from warpline.hardware.vocabulary import in_words_of
from warpline.replay.bounds import DeviceWork, bounded
from warpline.replay.fix import chosen_fixes
from warpline.replay.graph_edit import Effect
from warpline.replay.ranges import is_host_paced
from warpline.replay.representative_steps import steps_to_judge
from warpline.replay.whatif import Prediction
from warpline.trace.trace import Trace
from warpline.units import speedup

ANY_GAIN = 0.0


def fix_table(trace: Trace) -> FixTable:
    """The table of a trace; every caller gets the same one."""
    return trace.once(FixTable)


def whatif(trace: Trace, fixes: Sequence[str]) -> Prediction:
    """The row of these fixes together; a fix that no finding names gets a warning.

    >>> whatif(warpline.open("trace.json.gz"), ["cuda_graph", "tf32"]).gain
    """
    table = fix_table(trace)
    prediction = table.row(*fixes)
    if not prediction.applies:
        hidden = [name for name in fixes if all_fixes()[name].is_hidden(table.evidence)]
        if hidden:
            raise CannotAnswer(
                "no-ops",
                f"{' or '.join(hidden)} cannot be seen in this file: it shows in ops (aten::…), and there are none",
                "record with torch.profiler (`warpline run`)",
            )
        reasons = "; ".join(all_fixes()[name].reason_for_nothing(table.evidence) for name in fixes)
        raise CannotAnswer(
            "nothing-to-fix",
            f"{' or '.join(fixes)} would change nothing in the selected steps: {reasons}",
            "`warpline diagnose` shows what costs time",
        )
    return prediction


def every_fix(trace: Trace) -> list[Prediction]:
    """The row of each fix alone, if it changes something, the largest gain first."""
    return fix_table(trace).alone


class FixTable:
    """The fixes of the judged steps of a trace; a row is made when it is first asked for."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self.evidence = Evidence(steps_to_judge(trace), all_fixes(), len(trace.steps_in_view))
        """Every row is of its base step."""
        self.work = DeviceWork(self.evidence.question)
        self._audited: dict[str, tuple[Finding | None, list[Objection]]] = {}
        self._rows: dict[tuple[str, ...], Prediction] = {}
        self._rules: dict[str, Rule | None] = {}

    @cached_property
    def state(self) -> State:
        """Whether the judged steps stand for the recording."""
        return state_of(self._trace, self.evidence, self.work)

    @cached_property
    def findings(self) -> list[Finding]:
        """What costs time, audited, the largest gain first."""
        found = (self._finding(rule) for rule in rules())
        return sorted((one for one in found if one is not None), key=lambda finding: -finding.gain.expected)

    @property
    def objections(self) -> list[Objection]:
        """What the audit withdrew or changed, and why."""
        self.findings  # noqa: B018 - the audit is made with the findings
        of_findings = [one for rule in rules() for one in self._audited[rule.name][1]]
        return [*audit_step(self.evidence, self.work), *of_findings, *audit_coverage(self.state)]

    @cached_property
    def alone(self) -> list[Prediction]:
        """Each fix alone, if it changes something, the largest gain first."""
        names = [name for name in all_fixes() if any(self.evidence.trial(name).changed)]
        return sorted((self.row(name) for name in names), key=lambda one: (-one.gain.expected, one.fixes[0].name))

    def row(self, *names: str) -> Prediction:
        """The step with these fixes together; no shorter than what the devices must still do."""
        ordered = tuple(fix.name for fix in chosen_fixes(all_fixes(), names))
        if ordered not in self._rows:
            self._rows[ordered] = self._alone(*ordered) if len(ordered) == 1 else self._together(ordered)
        return self._rows[ordered]

    def has_evidence(self, name: str) -> bool:
        """Whether a rule of the fix finds its fault in the trace, even if it gains only together with another fix."""
        return self._rule_with_evidence(name) is not None

    def words_of(self, name: str) -> str:
        """What the fix is called in a sentence about this program."""
        return all_fixes()[name].subject(self.evidence.framework, self._rule_with_evidence(name))

    def _rule_with_evidence(self, name: str) -> Rule | None:
        if name not in self._rules:
            found = (rule for rule in all_fixes()[name].findings if _proposal(rule, name, self.evidence, ANY_GAIN))
            self._rules[name] = next(found, None)
        return self._rules[name]

    def _alone(self, name: str) -> Prediction:
        found = next((one for rule in all_fixes()[name].findings if (one := self._finding(rule)) is not None), None)
        if found is not None:
            return replace(self.evidence.ask(name), new_step_ns=found.new_step_ns, gain=found.gain)
        prediction = self._bounded((name,))
        return prediction.without_finding([name]) if prediction.applies else prediction

    def _together(self, names: tuple[str, ...]) -> Prediction:
        prediction = self._bounded(names)
        for name in names:
            if self.evidence.trial(name).effect is Effect.DOUBTFUL:
                prediction = _or_without(prediction, self.row(*(other for other in names if other != name)))
        unnamed = [fix.name for fix in prediction.fixes if fix.changed and not self.has_evidence(fix.name)]
        return prediction.without_finding(unnamed) if unnamed else prediction

    def _bounded(self, names: tuple[str, ...]) -> Prediction:
        same_work = all(all_fixes()[name].same_work for name in names)
        least = self.work.least_after(self.evidence.trial(*names), same_work=same_work)
        return bounded(self.evidence.question.ask(*names), least)

    def _finding(self, rule: Rule) -> Finding | None:
        """What a rule says, audited."""
        if rule.name not in self._audited:
            said = self._said(rule)
            held, objections = audit_finding(said, self.evidence, self.work) if said else (None, [])
            kept = held_by_steps(held, self.state) if held else None
            self._audited[rule.name] = (self._with_verification(kept) if kept else None), objections
        return self._audited[rule.name][0]

    def _said(self, rule: Rule) -> Finding | None:
        evidence, fix = self.evidence, fix_of(rule.name).name
        found = _proposal(rule, fix, evidence, rule.least_gain)
        if found is None:
            return None
        prediction, claim = found.prediction, found.claim
        gain, after = prediction.gain, prediction.new_step_ns
        # A smaller gain is listed too, so that users see it was checked; it is not worth the effort.
        helps = gain.expected >= NOTICEABLE_GAIN
        alone = "" if helps or claim.once_ns else " Fixing this alone would not help."
        touched_ns = evidence.time_per_step(evidence.changed(fix).work)
        finding = Finding(
            rule=rule.name,
            cause=rule.cause,
            fix=fix,
            words=all_fixes()[fix].subject(evidence.framework, rule),
            claim=claim.sentence + alone,
            lost_ns=max(0, round(prediction.old_step_ns.expected - after.expected)),
            evidence_ns=round(self.work.touched_ns(evidence.trial(fix))),
            gain=gain.rounded(4),
            new_step_ns=after.rounded(),
            confidence=least(confidence_of(prediction, evidence.recorded_steps), rule.most, claim.most),
            where=claim.places,
            how=found.how,
            device_share=round(min(touched_ns / max(self.work.busy_ns, 1.0), 1.0), 3),
            effort=claim.effort or all_fixes()[fix].effort,
            once_ns=0 if helps else claim.once_ns,
        )
        return in_words_of(evidence.platform, finding)

    def _with_verification(self, finding: Finding) -> Finding:
        """The finding with how to verify its fix, of which the audit may have changed the gain."""
        if finding.once_ns:
            return replace(finding, verify="record again with the fix: no step should be cold")
        if finding.gain.is_wide:
            spread = f"{speedup(finding.gain.low)} to {speedup(finding.gain.high)}"
            return replace(finding, verify=f"{MEASURE_IT} ({spread}): {how_to_measure(finding.fix)}")
        calm = " on a calm host" if is_host_paced(self.evidence.bare.idle_share) else ""
        how = f"record again with the fix, then compare the step: predicted {finding.new_step_words}{calm}"
        return replace(finding, verify=how)


class _Proposal(Struct, frozen=True):
    """What a rule says about a trace."""

    claim: Claim
    prediction: Prediction
    how: str
    """What to write or to type."""


def _proposal(rule: Rule, fix: str, evidence: Evidence, least_gain: float) -> _Proposal | None:
    """The rule's claim, advice and prediction of this fix; None if it gains less than `least_gain`, does not apply, or
    the evidence is missing."""
    if not evidence.gains(fix, least_gain):
        return None
    prediction, advice = evidence.ask(fix), rule.advice.to(evidence.framework)
    claim = rule.look(evidence, prediction) if advice else None
    if claim is None or advice is None:
        return None
    own = claim.how if claim.how and evidence.framework == "pytorch" else advice
    return _Proposal(claim, prediction, engine_advice(fix, evidence.engine, evidence.trace) or own)


def _or_without(prediction: Prediction, without: Prediction) -> Prediction:
    """The prediction with a range that reaches what it is without a fix that may do nothing."""
    new, gain = prediction.new_step_ns, prediction.gain
    return replace(
        prediction,
        new_step_ns=Estimate(new.low, new.expected, max(new.high, without.new_step_ns.high)),
        gain=Estimate(min(gain.low, without.gain.low), gain.expected, gain.high),
    )
