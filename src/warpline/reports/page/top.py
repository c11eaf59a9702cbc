"""The top of the page, which is all there without a script: verdict, time, plan, findings and health, as HTML."""

from __future__ import annotations

from collections.abc import Iterator

from warpline.findings.cost import DailyCost
from warpline.findings.diagnosis import Diagnosis
from warpline.findings.model import Finding
from warpline.reports import cpu_time, html, values
from warpline.reports.cost import saved_words
from warpline.reports.diagnosis import ALL_PARTS, BUSY, MIN_COVERED, busiest, device_bar, steps_share
from warpline.reports.findings import gains, in_order, places
from warpline.reports.plan import short_name
from warpline.reports.sections import Bar, Part, Range, Report
from warpline.units import duration, share

IN_TOP = {"verdict", "plan", "findings", "health", "fixes", "cpu"}
"""Sections of the full report that the top of the page shows; the others are below, folded."""


def time_bar(diagnosis: Diagnosis) -> str:
    """Where the time of the busiest device goes: busy by activity and idle by cause, which sum to the window."""
    if not diagnosis.devices:
        return html.section(cpu_time.section(diagnosis.cpu, ALL_PARTS, verbose=True)) if diagnosis.cpu else ""
    device, gaps = busiest(diagnosis)
    busy = [Part(name, int(getattr(device, f"{name}_ns"))) for name in BUSY]
    idle = sorted((Part(name, ns) for name, ns in gaps.totals().items()), key=lambda part: -part.value_ns)
    words = [Part(part.name.replace("_", " "), part.value_ns) for part in busy]
    # The device can communicate, and be idle until others do: two parts of one name.
    words += [
        Part(f"{'idle ' if part.name in BUSY else ''}{part.name}".replace("_", " "), part.value_ns) for part in idle
    ]
    bar = Bar(device.window_ns, tuple(words), device_bar(device, gaps, diagnosis).caption)
    return f'<section id="time"><h2>Where the time goes</h2>{html.bar(bar)}</section>'


def plan(diagnosis: Diagnosis) -> str:
    """The step now and after each fix, each on top of the last, as a waterfall."""
    judgement = diagnosis.judgement
    if judgement is None or not judgement.plan:
        return ""
    now_ns = judgement.evidence.step_ns
    ends = [step.known_step_ns for step in judgement.plan]
    longest = max(now_ns, *ends)
    rows = [_plan_row("now", duration(now_ns), "", now_ns / longest, now_ns / longest)]
    for step, before, after in zip(judgement.plan, [now_ns, *ends], ends, strict=False):
        gain = f"{step.gain_words} in all (range {values.shown(Range(step.gain.low, step.gain.high), 'gain')})"
        rows.append(_plan_row(short_name(step.fix), step.new_step_words, gain, before / longest, after / longest))
    return (
        '<section id="plan"><h2>Plan <small>each fix on top of the last, step time without a profiler</small></h2>'
        f'<ol class="waterfall">{"".join(rows)}</ol></section>'
    )


def _plan_row(name: str, time: str, gain: str, before: float, after: float) -> str:
    """A bar of the plan, in shares of the longest: the step after a fix, and behind it what it was before."""
    return (
        f'<li><span>{html.text(name)}</span><svg viewBox="0 0 1 1" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="saved" width="{before:.4f}" height="1"/><rect class="step" width="{after:.4f}" height="1"/>'
        f'</svg><b>{time}</b> <span class="quiet">{gain}</span></li>'
    )


def findings(diagnosis: Diagnosis, cost: DailyCost | None = None) -> str:
    """Each finding: the claim, the gain, the lines to change and how, and what the fix saves a day at a given price."""
    judgement = diagnosis.judgement
    if judgement is None or not judgement.findings:
        return ""
    cards = "".join(
        _finding(number, finding, cost)
        for number, finding in enumerate(in_order(judgement.findings, judgement.verdict))
    )
    return f'<section id="findings"><h2>Findings</h2><div class="cards">{cards}</div></section>'


def _finding(number: int, finding: Finding, cost: DailyCost | None) -> str:
    gain, spread, after, confidence = gains(finding)
    shown = {
        "gain": f"{values.shown(gain, 'gain')} (range {values.shown(spread, 'gain')})",
        "new step": values.shown(after, "ns") if after is not None else "",
        "confidence": confidence,
        "saves": saved_words(finding, cost) if cost is not None else "",
        "where": places(finding.where).removeprefix("in "),
    }
    facts = "".join(f"<dt>{name}</dt><dd>{html.text(words)}</dd>" for name, words in shown.items() if words)
    verify = f'<p class="verify">Verify: {html.prose(finding.verify)}</p>' if finding.verify else ""
    return (
        f'<article class="finding" data-finding="{number}"><h3>{html.text(short_name(finding.fix))}'
        f" <small>{html.text(finding.rule.replace('_', ' '))}</small></h3><p>{html.text(finding.claim)}</p>"
        f'<dl>{facts}</dl><pre class="how">{html.text(finding.how)}</pre>{verify}</article>'
    )


def details(full: Report) -> Iterator[str]:
    """The other sections of the full report, folded."""
    for section in full.sections:
        if section.name not in IN_TOP:
            inner = "".join(element for content in section.content for element in html.parts(content))
            summary = f"<summary>{html.text(section.title)}</summary>"
            yield f'<details id="{html.word(section.name)}">{summary}{inner}</details>'


def health(full: Report) -> str:
    """What makes the profile doubtful; nothing if it is fine."""
    return "".join(html.section(section) for section in full.sections if section.name == "health")


def verdict(diagnosis: Diagnosis, full: Report) -> str:
    """The verdict, or what the page shows instead."""
    known = [section for section in full.sections if section.name == "verdict"]
    if known:
        said = "".join(element for content in known[0].content for element in html.parts(content))
    elif diagnosis.devices:
        said = '<p class="strong">No verdict: the trace was not replayed.</p>'
    else:
        said = '<p class="strong">The trace has no GPU activity.</p>'
    return f'<section id="verdict" aria-label="Verdict">{said}{_step(diagnosis)}</section>'


def _step(diagnosis: Diagnosis) -> str:
    """The step time, recorded and without the profiler, and how busy each device is."""
    facts: dict[str, str] = {}
    judgement, what = diagnosis.judgement, "step" if len(diagnosis.steps) else "recording"
    if judgement is not None:
        question = judgement.evidence.question
        facts[f"{what} without a profiler"] = duration(judgement.evidence.step_ns)
        facts[f"{what} as it was" if what == "recording" else "step as recorded"] = duration(
            question.replay.measured_step_ns
        )
    elif diagnosis.cpu is not None and diagnosis.cpu.has_steps:
        facts["step"] = duration(diagnosis.cpu.step_ns)
    elif diagnosis.trace.step_ns is not None:
        facts["step"] = duration(diagnosis.trace.step_ns)
    if len(diagnosis.steps):
        facts["steps"] = str(len(diagnosis.steps))
    if diagnosis.devices:
        device, _ = busiest(diagnosis)
        of = ", whole recording" if steps_share(diagnosis, device.window_ns) < MIN_COVERED else ""
        facts[f"GPU busy{of}"] = share(device.busy_ns, device.window_ns)
    if len(diagnosis.devices) > 1:
        facts["devices"] = str(len(diagnosis.devices))
    pairs = "".join(f"<div><dt>{name}</dt><dd>{html.text(value)}</dd></div>" for name, value in facts.items())
    return f'<dl class="figures">{pairs}</dl>' if pairs else ""
