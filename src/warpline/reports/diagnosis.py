"""The diagnosis as a report: a first screen that fits a small terminal, and all other sections with -v."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from warpline.analyses.platform import platform_of
from warpline.estimate import SHOWN_GAIN
from warpline.findings.cost import DailyCost
from warpline.findings.diagnosis import Diagnosis
from warpline.findings.doubts import why_unclear
from warpline.findings.judge import Judgement
from warpline.findings.model import Finding
from warpline.findings.verdict import MIN_PART
from warpline.fixes.registry import all_fixes
from warpline.hardware.vocabulary import in_words_of
from warpline.reports import cpu_time, findings
from warpline.reports import diagnosis_tables as tables
from warpline.reports import plan as plans
from warpline.reports.cost import cost_section
from warpline.reports.device_time import (
    device_bar,
    device_section,
    differ,
    gap_sentences,
    of_several,
    outside_steps,
    rank_waits,
)
from warpline.reports.sections import Command, Content, Report, Section, Text, health_notes, next_section
from warpline.reports.serving import serving_section
from warpline.reports.title import NO_GPU, UNNAMED, joined
from warpline.sources.health import HealthEntry
from warpline.sources.registry import profiler_name
from warpline.sources.stdin import as_shell_word
from warpline.units import duration, several

BRIEF_NOTES = 2
BRIEF_KERNELS = 3
BRIEF_PLAN = 2
"""Fixes of the plan on the first screen."""
BRIEF_PARTS = 6
ALL_PARTS = 40
DISTORTION = "profiler-distortion"
"""The health entry that contains both step times, with and without the profiler."""


def report(
    diagnosis: Diagnosis,
    verbose: bool = False,
    top: int = 10,
    again: str = "",
    cost: DailyCost | None = None,
    chosen: Sequence[str] = (),
) -> Report:
    """The report of `warpline diagnose`; `again` is the command that repeats it, built from the path if empty, and
    `chosen` the options that choose its steps."""
    again = again or f"warpline diagnose {_quoted(diagnosis)}"
    sections = list(_everything(diagnosis, top) if verbose else _first_screen(diagnosis))
    if cost is not None and diagnosis.judgement is not None:
        sections.append(cost_section(diagnosis.judgement, cost, brief=not verbose))
    following = next_section(_next(diagnosis, verbose, again, chosen), is_lead=not verbose)
    said = in_words_of(platform_of(diagnosis.trace), tuple(sections))
    return Report(_title(diagnosis, verbose), (*said, following))


def _first_screen(diagnosis: Diagnosis) -> Iterator[Section]:
    notes = _brief_health(diagnosis)
    if notes:
        yield Section("health", "Profile health", notes, is_lead=True)
    judgement = diagnosis.judgement
    if judgement is not None:
        yield Section(
            "verdict", "Verdict", (*_verdict(judgement), *plans.brief(judgement.plan, BRIEF_PLAN)), is_lead=True
        )
    elif diagnosis.verdict is not None:
        yield Section("verdict", "Verdict", (Text(diagnosis.verdict.sentence, "strong"),), is_lead=True)
    if diagnosis.devices:
        calls = diagnosis.step_loops.calls
        what = [Text(f"A step is {calls}.", "quiet")] if calls else []
        what += rank_waits(diagnosis)
        places = [*outside_steps(diagnosis), *gap_sentences(diagnosis, is_brief=True)]
        yield Section("time", "Where the time goes", (device_bar(diagnosis), *what, *places[:1]), is_lead=True)
        if diagnosis.serving is not None:
            yield serving_section(diagnosis.serving)
    elif diagnosis.cpu is not None:
        yield cpu_time.section(diagnosis.cpu, BRIEF_PARTS)
    else:
        yield Section("time", "Where the time goes", (Text("The trace has no GPU activity."),), is_lead=True)
    if judgement is None and len(diagnosis.kernels):
        yield tables.kernels(diagnosis, BRIEF_KERNELS)
    if judgement is not None and (fixes := tuple(_brief_fixes(judgement))):
        yield Section("fixes", "Best fixes", fixes, is_lead=True)


def _everything(diagnosis: Diagnosis, top: int) -> Iterator[Section]:
    if diagnosis.health:
        yield Section("health", "Profile health", (health_notes(diagnosis.health),))
    judgement = diagnosis.judgement
    if judgement is not None:
        yield Section("verdict", "Verdict", tuple(_verdict(judgement)))
        noun = judgement.state.noun
        limits = findings.limits(judgement.limits, judgement.evidence.step_ns, noun)
        small = findings.small_limits(
            judgement.limits,
            judgement.evidence.step_ns,
            noun,
            has_collectives=bool(judgement.evidence.labelled.kernels("comm").any()),
        )
        waits = findings.more_than_its_time(judgement.limits, judgement.evidence.step_ns)
        words = (Text(text, "quiet") for text in (waits, small) if text)
        content = (*((limits,) if limits.rows else ()), *words)
        if content:
            yield Section("limits", f"Limits: {noun.one('the')} if one thing were free", content)
        if judgement.plan:
            plan = plans.table(judgement.plan, noun)
            yield Section("plan", "Plan, each fix on top of the last", (plan,))
        found = findings.in_order(judgement.findings, judgement.verdict)
        fixes = (*((findings.all_fixes(found, noun),) if found else ()), Text(findings.fixes_without(found), "quiet"))
        yield Section("fixes", "Fixes, each replayed alone", fixes)
    elif diagnosis.verdict is not None:
        yield Section("verdict", "Verdict", (Text(diagnosis.verdict.sentence, "strong"),))
    if diagnosis.cpu is not None:
        yield cpu_time.section(diagnosis.cpu, ALL_PARTS, verbose=True)
    most_used = diagnosis.shown.busiest[0] if diagnosis.devices else None
    for device, gaps in zip(diagnosis.shown.devices, diagnosis.shown.gaps, strict=True):
        yield device_section(diagnosis, device, gaps, with_places=device is most_used)
    if diagnosis.serving is not None:
        yield serving_section(diagnosis.serving)
    if judgement is not None and judgement.findings:
        yield Section("findings", "Findings", (findings.explained(found),))
    if diagnosis.audit:
        yield Section("audit", "Withdrawn or downgraded by the audit", (plans.objections(diagnosis.audit),))
    yield from tables.sections(diagnosis, top)


def _verdict(judgement: Judgement) -> Iterator[Text]:
    yield Text(judgement.verdict.sentence, "strong")
    yield from plans.why(judgement.verdict.why)
    limits = findings.brief_limits(judgement.limits)
    if limits and judgement.verdict.cause != "unclear":
        yield Text(f"{judgement.state.noun.one('the').capitalize()} with {limits}.")


def _title(diagnosis: Diagnosis, verbose: bool) -> str:
    trace = diagnosis.trace
    source = [profiler_name(trace.source)] if verbose else []
    words = [*source, diagnosis.device_name or (UNNAMED if diagnosis.devices else NO_GPU)]
    number = diagnosis.cpu.steps if diagnosis.cpu is not None else len(diagnosis.steps)
    step, recorded = _step_times(diagnosis, verbose)
    if step is not None:
        length = (
            f"{several(number, 'step')}{_cold_ones(diagnosis)} of {step}"
            if number
            else f"no steps found: {_recording(diagnosis)}, {step}"
        )
        length += of_several(diagnosis) if number > 1 else ""
        words.append(f"{length} ({recorded} recorded)" if recorded else length)
    return joined(trace.file, *words)


def _recording(diagnosis: Diagnosis) -> str:
    """What the length is of where no steps were found."""
    judgement = diagnosis.judgement
    is_part = judgement is not None and judgement.state.share_of_recording < MIN_PART
    return "the part of the recording that uses the GPU" if is_part else "the whole recording"


def _cold_ones(diagnosis: Diagnosis) -> str:
    cold = diagnosis.judgement.evidence.trace.cold if diagnosis.judgement else None
    return f" ({cold.count} cold)" if cold else ""


def _step_times(diagnosis: Diagnosis, verbose: bool) -> tuple[str | None, str | None]:
    """The step without the profiler, and as recorded if that differs and no health entry shows it."""
    if diagnosis.cpu is not None:
        return (duration(diagnosis.cpu.step_ns) if diagnosis.cpu.has_steps else None), None
    step, recorded = diagnosis.step_ns, diagnosis.recorded_step_ns
    if step is None or recorded is None:
        return None, None
    said = any(entry.code == DISTORTION for entry in (diagnosis.health if verbose else _brief_notes(diagnosis)))
    return duration(step.expected), duration(recorded) if differ(recorded, step.expected) and not said else None


def _brief_notes(diagnosis: Diagnosis) -> list[HealthEntry]:
    """The doubts that the first screen shows."""
    doubts = [entry for entry in diagnosis.health if entry.severity != "info"]
    return [entry for place, entry in enumerate(doubts) if place < BRIEF_NOTES or entry.severity == "error"]


def _brief_health(diagnosis: Diagnosis) -> tuple[Content, ...]:
    doubts = [entry for entry in diagnosis.health if entry.severity != "info"]
    shown = _brief_notes(diagnosis)
    hidden = len(diagnosis.health) - len(shown)
    content: list[Content] = []
    if shown:
        content.append(health_notes(shown))
    if len(doubts) > len(shown):
        content.append(Text(f"({several(hidden, 'more note')} on the profile's health: -v)", "quiet"))
    return tuple(content)


def _brief_fixes(judgement: Judgement) -> Iterator[Content]:
    if why_unclear(judgement.state) is not None:
        return  # the verdict says why no gain can be given
    found, shown = judgement.findings, _best_fixes(judgement)
    if not shown and not found and judgement.verdict.cause == "unclear":
        return
    if not shown:
        small = f"; {several(len(found), 'smaller one')} with -v" if found else ""
        after = " in the warm steps" if judgement.is_past_the_steps else ""
        yield Text(f"No fix gains {100 * (SHOWN_GAIN - 1):.0f} % or more{after}{small}.", "quiet")
        return
    table = findings.best_fixes(shown, found, judgement.state.noun)
    # The plan says what comes next, and the last line how to see the others.
    yield replace(table, hidden_note="") if len(judgement.plan) > 1 else table
    if shown[0].how and shown[0].fix == judgement.verdict.fix:
        yield Text(f"{shown[0].fix}: {findings.brief_advice(shown[0].how)}", "advice")


def _best_fixes(judgement: Judgement) -> list[Finding]:
    """The fixes of the first screen's table: those that the verdict and the plan name, then the largest gain. What
    gains most is among them, also where the plan leaves it for later or out (a larger batch)."""
    named = [*_named_fixes(judgement), *(finding.fix for finding in _changes(judgement)[:1])]
    found = findings.in_order(judgement.findings, judgement.verdict)
    ordered = sorted(found, key=lambda finding: named.index(finding.fix) if finding.fix in named else len(named))
    worth = findings.worth_showing(ordered)
    if len(judgement.plan) > 1:  # it says what comes next
        return [finding for finding in worth if finding.fix in named]
    return worth[: findings.BEST_FIXES]


def _changes(judgement: Judgement) -> list[Finding]:
    """Findings of changes that can be made, not of a limit, the largest gain first."""
    changes = [finding for finding in judgement.findings if not all_fixes()[finding.fix].is_limit]
    return sorted(changes, key=lambda finding: -finding.gain.expected)


def _to_try(diagnosis: Diagnosis, judgement: Judgement) -> list[str]:
    """Of the fixes in the first screen's table those that may gain nothing, and that `warpline try` can make."""
    if why_unclear(judgement.state) is not None or judgement.state.framework != "pytorch":
        return []
    if diagnosis.serving is not None:
        return []  # an engine has options of its own
    return [
        finding.fix for finding in _best_fixes(judgement) if finding.gain.low < 1.0 and all_fixes()[finding.fix].tried
    ]


def _named_fixes(judgement: Judgement) -> list[str]:
    """The fixes that the verdict and the plan name on the first screen."""
    plan = judgement.plan[:BRIEF_PLAN]
    return list(dict.fromkeys(fix for step in plan for fix in (step.fix, step.larger) if fix is not None))


def _next(diagnosis: Diagnosis, verbose: bool, again: str, chosen: Sequence[str]) -> Iterator[Command]:
    file, judgement = _quoted(diagnosis), diagnosis.judgement
    if judgement is None:
        if len(diagnosis.kernels) and len(diagnosis.trace.api):
            yield Command(f"{again} --why", "replay it for a verdict and fixes")
    elif not judgement.is_past_the_steps:
        fixes = _to_try(diagnosis, judgement)
        if fixes:
            options = " ".join(f"--fix {fix}" for fix in fixes)
            yield Command(f"warpline try {options} -- PROGRAM", "measures what may gain nothing")
        if judgement.verdict.fix and (verbose or not fixes):
            steps = f" {shlex.join(chosen)}" if chosen else ""
            yield Command(f"warpline whatif {file} --fix {judgement.verdict.fix}{steps}", "what this fix assumes")
    if not verbose:
        more = _more(diagnosis)
        yield (
            Command(f"{again} -v", more)
            if more
            else Command(f"warpline doctor {file}", "how to record what is missing")
        )
        return
    if any(entry.severity == "error" for entry in diagnosis.health):
        yield Command(f"warpline doctor {file}", "how to record what is missing")
    if len(diagnosis.kernels):
        yield Command(f"warpline stats {file} -r cuda_gpu_kern_sum", "all kernels with their times")
    if any(tool.tool == "ncu" for tool in diagnosis.next_tools):
        yield Command(f"warpline dive {file} --print", "the commands of Nsight Compute for those kernels")
    yield Command(f"warpline sql {file}", "query the tables behind this")


def _more(diagnosis: Diagnosis) -> str:
    """What -v adds."""
    if diagnosis.devices:
        return "all findings, idle causes, kernels, copies"
    has_more_parts = diagnosis.cpu is not None and len(diagnosis.cpu.parts) > BRIEF_PARTS
    hides_notes = any(entry.severity == "info" for entry in diagnosis.health) or len(diagnosis.health) > BRIEF_NOTES
    parts = (
        (has_more_parts, "all parts of the CPU's time"),
        (len(diagnosis.steps) > 0, "steps"),
        (hides_notes, "all notes on the profile's health"),
    )
    return ", ".join(what for is_there, what in parts if is_there)


def _quoted(diagnosis: Diagnosis) -> str:
    return as_shell_word(diagnosis.trace.file)
