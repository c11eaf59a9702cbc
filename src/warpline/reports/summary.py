"""The summary of a diagnosis as sections, with which its page begins and which a notebook shows as a card."""

from __future__ import annotations

from collections.abc import Iterator

from warpline.findings.cost import DailyCost
from warpline.findings.diagnosis import Diagnosis
from warpline.findings.model import Finding
from warpline.reports.cost import saved_words
from warpline.reports.diagnosis import BUSY, device_bar, report
from warpline.reports.findings import gains, in_order, places
from warpline.reports.plan import short_name
from warpline.reports.sections import Bar, Explained, Fact, Facts, Findings, Part, Report, Section, Text
from warpline.reports.values import shown
from warpline.units import duration, share

SUMMARISED = {"verdict", "cpu", "plan", "health", "fixes", "findings"}
"""Sections of the full report that the summary replaces."""


def summary(diagnosis: Diagnosis, full: Report | None = None, cost: DailyCost | None = None) -> Report:
    """Verdict, time, plan, health and findings; `full` is the full report, if there is one already."""
    full = full or report(diagnosis, verbose=True, cost=cost)
    return Report(full.title, tuple(_sections(diagnosis, full, cost)))


def _sections(diagnosis: Diagnosis, full: Report, cost: DailyCost | None) -> Iterator[Section]:
    known = {section.name: section for section in full.sections}
    yield _verdict(diagnosis, known.get("verdict"))
    if diagnosis.devices:
        yield Section("time", "Where the time goes", (_time(diagnosis),))
    yield from (known[name] for name in ("cpu", "limits", "plan", "health") if name in known)
    judgement = diagnosis.judgement
    if judgement is not None and judgement.findings:
        found = in_order(judgement.findings, judgement.verdict)
        yield Section("findings", "Findings", (Findings(tuple(explained(one, cost) for one in found)),))


def _verdict(diagnosis: Diagnosis, known: Section | None) -> Section:
    """The verdict or what stands in its place, and the times of a step."""
    if known is not None:
        said = known.content
    elif diagnosis.devices:
        said = (Text("No verdict: the trace was not replayed.", "strong"),)
    else:
        said = (Text("The trace has no GPU activity.", "strong"),)
    figures = tuple(Fact(label, text) for label, text in _figures(diagnosis))
    return Section("verdict", "", (*said, *([Facts(figures)] if figures else [])))


def _figures(diagnosis: Diagnosis) -> Iterator[tuple[str, str]]:
    """The step time, recorded and without the profiler, and how busy the GPU is."""
    judgement, has_steps = diagnosis.judgement, len(diagnosis.steps) > 0
    if judgement is not None:
        yield f"{'step' if has_steps else 'recording'} without a profiler", duration(judgement.evidence.step_ns)
        recorded = judgement.evidence.question.replay.measured_step_ns
        yield "step as recorded" if has_steps else "recording as it was", duration(recorded)
    elif diagnosis.cpu is not None and diagnosis.cpu.has_steps:
        yield "step", duration(diagnosis.cpu.step_ns)
    elif diagnosis.trace.step_ns is not None:
        yield "step", duration(diagnosis.trace.step_ns)
    if has_steps:
        yield "steps", str(len(diagnosis.steps))
    if diagnosis.devices:
        device, _ = diagnosis.shown.busiest
        of = ", whole recording" if has_steps and not diagnosis.shown.steps else ""
        yield f"GPU busy{of}", share(device.busy_ns, device.window_ns)
    if len(diagnosis.devices) > 1:
        yield "devices", str(len(diagnosis.devices))


def _time(diagnosis: Diagnosis) -> Bar:
    """Where the time of the busiest device goes: busy by activity and idle by cause, which sum to the window."""
    device, gaps = diagnosis.shown.busiest
    busy = {name: int(getattr(device, f"{name}_ns")) for name in BUSY}
    # The device can communicate, and be idle until others do: two parts of one name.
    idle = {f"idle {name}" if name in BUSY else name: ns for name, ns in gaps.totals().items()}
    parts = [*busy.items(), *sorted(idle.items(), key=lambda part: -part[1])]
    caption = device_bar(diagnosis).caption
    return Bar(device.window_ns, tuple(Part(name.replace("_", " "), ns) for name, ns in parts), caption)


def explained(finding: Finding, cost: DailyCost | None = None) -> Explained:
    """One finding in full: the claim, the gain, the lines to change and how, and what the fix saves a day."""
    gain, spread, after = gains(finding)
    facts = {
        "finding": finding.rule.replace("_", " "),
        "gain": f"{shown(gain, 'gain')} (range {shown(spread, 'gain')})",
        "new step": shown(after, "ns") if after is not None else "",
        "confidence": finding.confidence,
        "saves": saved_words(finding, cost) if cost is not None else "",
    }
    return Explained(
        short_name(finding.fix),
        finding.claim,
        tuple(Fact(label, text) for label, text in facts.items() if text),
        places(finding.where),
        finding.how,
        finding.verify,
    )
