"""The summary of a diagnosis as sections, with which its page begins and which a notebook shows as a card."""

from __future__ import annotations

from collections.abc import Iterator

from warpline.analyses.platform import platform_of
from warpline.findings.cost import DailyCost
from warpline.findings.diagnosis import Diagnosis
from warpline.findings.model import Finding
from warpline.fixes.words import StepNoun
from warpline.hardware.vocabulary import in_words_of
from warpline.reports.cost import saved_words
from warpline.reports.device_time import BUSY, rank_waits, shown_window
from warpline.reports.diagnosis import report
from warpline.reports.findings import gains, in_order, places
from warpline.reports.plan import without_article
from warpline.reports.sections import (
    Bar,
    Content,
    Explained,
    Fact,
    Facts,
    Findings,
    Part,
    Report,
    Section,
    Text,
)
from warpline.reports.values import shown
from warpline.units import duration, share

SUMMARISED = {"verdict", "cpu", "plan", "health", "fixes", "findings"}
"""Sections of the full report that the summary replaces."""
STEP = StepNoun("step")
ANSWER = ("verdict", "health", "time")
"""Sections of the summary that come before a timeline."""


def summary(diagnosis: Diagnosis, full: Report | None = None, cost: DailyCost | None = None) -> Report:
    """Verdict, time, plan, health and findings; `full` is the full report, if there is one already."""
    full = full or report(diagnosis, verbose=True, cost=cost)
    return Report(full.title, in_words_of(platform_of(diagnosis.trace), tuple(_sections(diagnosis, full, cost))))


def _sections(diagnosis: Diagnosis, full: Report, cost: DailyCost | None) -> Iterator[Section]:
    known = {section.name: section for section in full.sections}
    yield _verdict(diagnosis, known)
    if "health" in known:
        yield known["health"]
    if diagnosis.devices:
        yield Section("time", "Where the time goes", (_time(diagnosis), *rank_waits(diagnosis)))
    if "cpu" in known:
        parts = known["cpu"].content
        yield Section("time", known["cpu"].title, tuple(part for part in parts if isinstance(part, Bar)))
        yield Section("cpu", "The CPU's time in parts", tuple(part for part in parts if not isinstance(part, Bar)))
    if "plan" in known:
        yield known["plan"]
    judgement = diagnosis.judgement
    if judgement is not None and judgement.findings:
        found = in_order(judgement.findings, judgement.verdict)
        yield Section(
            "findings", "Findings", (Findings(tuple(explained(one, cost, judgement.state.noun) for one in found)),)
        )


def _verdict(diagnosis: Diagnosis, known: dict[str, Section]) -> Section:
    """The verdict or what stands in its place, and the times of a step."""
    errors = [entry.message for entry in diagnosis.health if entry.severity == "error"]
    if "verdict" in known:
        sentence, *reasons = known["verdict"].content
        said: tuple[Content, ...] = (sentence, *_how(diagnosis), *reasons)
    else:
        missing = "No verdict: the trace was not replayed." if diagnosis.devices else "The trace has no GPU activity."
        said = (Text(errors[0] if errors else missing, "strong"),)
    figures = tuple(Fact(label, text) for label, text in _figures(diagnosis))
    return Section("verdict", "Verdict", (*said, *([Facts(figures)] if figures else [])), is_lead=True)


def _how(diagnosis: Diagnosis) -> Iterator[Text]:
    """How to make the fix that the verdict names."""
    judgement = diagnosis.judgement
    if judgement is not None:
        found = [one for one in judgement.findings if one.fix == judgement.verdict.fix and one.how]
        yield from (Text(one.how, "advice") for one in found[:1])


def _figures(diagnosis: Diagnosis) -> Iterator[tuple[str, str]]:
    """The step time, recorded and without the profiler, and the number of devices."""
    judgement, has_steps = diagnosis.judgement, len(diagnosis.steps) > 0
    if judgement is not None:
        yield f"{'step' if has_steps else 'recording'} without a profiler", duration(judgement.evidence.step_ns)
        recorded = judgement.evidence.question.replay.measured_step_ns
        yield "step as recorded" if has_steps else "recording as it was", duration(recorded)
    elif diagnosis.cpu is not None and diagnosis.cpu.has_steps:
        yield "step", duration(diagnosis.cpu.step_ns)
    elif diagnosis.trace.step_ns is not None:
        yield "step", duration(diagnosis.trace.step_ns)
    if len(diagnosis.devices) > 1:
        yield "devices", str(len(diagnosis.devices))


def _time(diagnosis: Diagnosis) -> Bar:
    """Where the time of the busiest device goes: busy by activity and idle by cause, which sum to the window."""
    device, gaps = diagnosis.shown.busiest
    busy = {name: int(getattr(device, f"{name}_ns")) for name in BUSY}
    # The device can communicate, and be idle until others do: two parts of one name.
    idle = {f"idle {name}" if name in BUSY else name: ns for name, ns in gaps.totals().items()}
    parts = [*busy.items(), *sorted(idle.items(), key=lambda part: -part[1])]
    caption = f"{shown_window(diagnosis)}: busy {share(device.busy_ns, device.window_ns)}"
    return Bar(device.window_ns, tuple(Part(name.replace("_", " "), ns) for name, ns in parts), caption)


def explained(finding: Finding, cost: DailyCost | None = None, noun: StepNoun = STEP) -> Explained:
    """One finding in full: the claim, the gain, the lines to change and how, and what the fix saves a day."""
    gain, spread, after = gains(finding)
    facts = {
        "finding": finding.rule.replace("_", " "),
        "gain": shown(gain, "gain") + (f" (range {shown(spread, 'gain')})" if spread is not None else ""),
        noun.new: shown(after, "ns") if after is not None else "",
        "confidence": finding.confidence,
        "saves": saved_words(finding, cost) if cost is not None else "",
    }
    return Explained(
        without_article(finding.words),
        finding.claim,
        tuple(Fact(label, text) for label, text in facts.items() if text),
        places(finding.where),
        finding.how,
        finding.verify,
    )
