"""The diagnosis as a report: a first screen that fits a small terminal, and all other sections with -v."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from statistics import median

from msgspec.structs import replace

from warpline.analyses.breakdown import DeviceTime
from warpline.analyses.idle.gaps import Gaps
from warpline.analyses.platform import platform_of
from warpline.estimate import SHOWN_GAIN
from warpline.findings.cost import DailyCost
from warpline.findings.diagnosis import Diagnosis
from warpline.findings.doubts import why_unclear
from warpline.findings.judge import Judgement
from warpline.findings.model import Finding
from warpline.findings.verdict import MIN_PART
from warpline.fixes.registry import all_fixes
from warpline.fixes.words import listed
from warpline.hardware.vocabulary import in_words_of
from warpline.replay.replay import TYPICAL
from warpline.reports import cpu_time, findings
from warpline.reports import diagnosis_tables as tables
from warpline.reports import plan as plans
from warpline.reports.cost import cost_section
from warpline.reports.sections import (
    MIN_NAMED_SHARE,
    Bar,
    Column,
    Command,
    Commands,
    Content,
    Note,
    Notes,
    Part,
    Report,
    Section,
    Table,
    Text,
    Value,
)
from warpline.reports.serving import serving_section
from warpline.reports.title import NO_GPU, UNNAMED, joined
from warpline.sources.health import HealthEntry
from warpline.sources.registry import profiler_name
from warpline.sources.stdin import as_shell_word
from warpline.units import duration, several, share

MIN_RANK_WAIT = 0.05
"""From this share of a step on, waiting for other ranks is told apart from communication."""
BUSY = ("compute", "comm", "copy", "memset")
CAPTURE, NOT_RECORDED = "graph_capture", "not_recorded"
IDLE_MEANING = {
    "dispatch": "the CPU could not launch kernels fast enough",
    "sync": "the CPU waited for the GPU",
    "transfer": "the CPU staged or waited for a copy",
    "input": "the program waited for data",
    "memory": "memory was allocated or freed",
    "comm": "the GPU waited for other ranks",
    "cold_start": "code was loaded, compiled or initialised",
    CAPTURE: "a graph was captured: its launches are recorded, and do not run",
    "launch_latency": "from the launch call to the start on the GPU",
    "dependency": "launched in time, but waiting for other GPU activity",
    "profiler": "the profiler itself",
    NOT_RECORDED: "launched, but waiting for what is not in the recording",
    "unknown": "nothing recorded explains it",
}
SELECTED = "the selected steps"
MIN_COVERED = 0.9
"""Where the steps take less of the recording, its shares are not those of a step, and the report says so."""
MIN_FILLED, MIN_IDLE = 0.5, 0.1
"""Shares of a gap that one call fills, and of the window that is idle, from which the first screen names the call."""
MIN_DIFFERENCE = 0.01
"""A smaller difference between two step times, as between the recorded and the bare step, is not shown."""
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
    following = Section(
        "next", "Next", (Commands(tuple(_next(diagnosis, verbose, again, chosen))),), is_lead=not verbose
    )
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
        places = [*_outside(diagnosis), *_gap_sentences(diagnosis, is_brief=True)]
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


def rank_waits(diagnosis: Diagnosis) -> Iterator[Text]:
    """That the communication of a single rank is also waiting, where the verdict does not say it."""
    judgement = diagnosis.judgement
    if judgement is not None and judgement.verdict.cause == "comm":
        return
    waited_ns = judgement.state.rank_wait_ns if judgement is not None else 0.0
    if judgement is not None and waited_ns > MIN_RANK_WAIT * judgement.evidence.step_ns:
        waits = f"about {duration(waited_ns)} a step of waiting"
    elif _communicates_alone(diagnosis):
        waits = "any waiting"
    else:
        return
    yield Text(
        f"Communication includes {waits} for other ranks; the files of all ranks show who is late "
        "(warpline diagnose FOLDER).",
        "quiet",
    )


def _communicates_alone(diagnosis: Diagnosis) -> bool:
    """Whether collectives of one device take a part of the time that is shown."""
    devices = [device for device in diagnosis.shown.devices if device.comm_ns]
    return len(devices) == 1 and devices[0].comm_ns >= MIN_NAMED_SHARE * devices[0].window_ns


def _everything(diagnosis: Diagnosis, top: int) -> Iterator[Section]:
    if diagnosis.health:
        notes = tuple(Note(entry.severity, entry.code, entry.message) for entry in diagnosis.health)
        yield Section("health", "Profile health", (Notes(notes),))
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
        yield _device(diagnosis, device, gaps, with_places=device is most_used)
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
        length += _of_several(diagnosis) if number > 1 else ""
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


def _of_several(diagnosis: Diagnosis) -> str:
    """What the length of a step is where most steps take another time: the average of those that were replayed is not
    exactly that of all."""
    judgement = diagnosis.judgement
    if replayed := _averaged_of_more(diagnosis):
        return f" on average of the {replayed} replayed"
    if diagnosis.cpu is not None or (judgement is not None and judgement.evidence.question.replay.is_average):
        return " on average"
    return "" if judgement is None or diagnosis.most_steps_take_it else " in the median"


def _averaged_of_more(diagnosis: Diagnosis) -> int:
    """How many steps were replayed, where a step is their average and there are others; else 0."""
    judgement = diagnosis.judgement
    if diagnosis.cpu is not None or judgement is None or not judgement.evidence.question.replay.is_average:
        return 0
    replayed = len(judgement.evidence.trace.steps_in_view)
    return replayed if replayed < len(diagnosis.steps) else 0


def _step_times(diagnosis: Diagnosis, verbose: bool) -> tuple[str | None, str | None]:
    """The step without the profiler, and as recorded if that differs and no health entry shows it."""
    if diagnosis.cpu is not None:
        return (duration(diagnosis.cpu.step_ns) if diagnosis.cpu.has_steps else None), None
    step, recorded = diagnosis.step_ns, diagnosis.recorded_step_ns
    if step is None or recorded is None:
        return None, None
    said = any(entry.code == DISTORTION for entry in (diagnosis.health if verbose else _brief_notes(diagnosis)))
    return duration(step.expected), duration(recorded) if _differ(recorded, step.expected) and not said else None


def _differ(length_ns: float, than_ns: float) -> bool:
    return abs(length_ns - than_ns) >= MIN_DIFFERENCE * than_ns


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
        content.append(Notes(tuple(Note(entry.severity, entry.code, entry.message) for entry in shown)))
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


def device_bar(diagnosis: Diagnosis) -> Bar:
    """Where the busiest device's time goes; the caption has the causes of its idle time."""
    device, gaps = diagnosis.shown.busiest
    busy = {part: int(getattr(device, f"{part}_ns")) for part in BUSY}
    parts = tuple(Part(name, value) for name, value in (*busy.items(), ("idle", device.idle_ns)))
    whole = device.window_ns
    return Bar(whole, parts, f"{shown_window(diagnosis)}: {_busy_and_idle(busy, _idle_parts(gaps), whole)}")


def shown_window(diagnosis: Diagnosis) -> str:
    """The busiest device, and what part of the recording its account is of."""
    device, devices = diagnosis.shown.busiest[0], len(diagnosis.devices)
    which = f" (the busiest of {devices})" if devices > 1 else ""
    return f"GPU {device.device}{which}, {_window(diagnosis, device.window_ns, as_step=True)}"


def _busy_and_idle(busy: dict[str, int], idle: dict[str, int], whole: int) -> str:
    return (
        f"busy {share(sum(busy.values()), whole)}{_named(busy, whole)}, "
        f"idle {share(sum(idle.values()), whole)}{_named(idle, whole)}"
    )


def _idle_parts(gaps: Gaps) -> dict[str, int]:
    """Idle time by cause; a graph capture is no cold start, and what waits for unrecorded work is not without a reason:
    both have names of their own."""
    totals = gaps.totals()
    totals["cold_start"] -= gaps.captured_ns
    totals["unknown"] -= gaps.unrecorded_ns
    return {**totals, CAPTURE: gaps.captured_ns, NOT_RECORDED: gaps.unrecorded_ns}


def _window(diagnosis: Diagnosis, whole: int, as_step: bool = False) -> str:
    """What the shares are of: steps, and how much of the recording they are, or the recording; in one length for all
    steps, with their average where that is not the length of a step (its time runs until the work of the last one is
    done), or `as_step` in the length of one where they are about that long. These are times with the profiler, which is
    said where the step has another time without it."""
    steps = diagnosis.shown.steps
    if not steps:
        return f"{duration(whole)} from the first to the last GPU operation"
    if diagnosis.trace.has_some_steps_chosen:
        return f"{duration(whole)} ({SELECTED})"
    step, recorded, of = diagnosis.step_ns, diagnosis.recorded_step_ns, _share_of_recording(diagnosis)
    is_typical = recorded is not None and abs(whole / steps - recorded) <= TYPICAL * recorded
    basis = "recorded " if step and recorded and _differ(recorded, step.expected) else ""
    rest = f" ({share(of, 1)} of the recording)" if of < MIN_COVERED else ""
    number = several(steps, f"{basis}step")
    if as_step and recorded and is_typical and not _averaged_of_more(diagnosis):
        return f"{number} of {duration(recorded)}{_of_several(diagnosis)}{_without_pause(diagnosis)}{rest}"
    mean = f" ({duration(whole / steps)} on average)" if recorded and _differ(whole / steps, recorded) else ""
    return f"{number}{_without_pause(diagnosis)}, {duration(whole)}{mean}{rest}"


def _without_pause(diagnosis: Diagnosis) -> str:
    """Says so where most of the last step is missing: nobody knows when a repetition ends that nothing follows."""
    steps = diagnosis.trace.steps_in_view
    *others, last = (steps.end_ns - steps.start_ns).tolist()
    is_short = bool(others) and steps.found_by[-1] == "repetition" and 2 * last < median(others)
    return " (the last one without the pause after it)" if is_short else ""


def _share_of_recording(diagnosis: Diagnosis) -> float:
    """The part of the recording, from its first to its last GPU operation, that the steps take."""
    whole = diagnosis.trace.whole().window
    return diagnosis.shown.busiest[0].window_ns / max(whole.length_ns, 1)


def _outside(diagnosis: Diagnosis) -> Iterator[Text]:
    """Where the rest of the recording goes, if it is most of it."""
    if not diagnosis.shown.steps or diagnosis.trace.chosen_steps or _share_of_recording(diagnosis) > MIN_FILLED:
        return
    device, gaps = diagnosis.shown.busiest
    pairs = zip(diagnosis.devices, diagnosis.gaps, strict=True)
    all_of, all_gaps = next(pair for pair in pairs if pair[0].device == device.device)
    busy = {part: getattr(all_of, f"{part}_ns") - getattr(device, f"{part}_ns") for part in BUSY}
    inside = _idle_parts(gaps)
    idle = {cause: length - inside[cause] for cause, length in _idle_parts(all_gaps).items()}
    whole = sum(busy.values()) + sum(idle.values())
    yield Text(f"Outside the steps, {duration(whole)}: {_busy_and_idle(busy, idle, whole)}", "quiet")


def _gap_sentences(diagnosis: Diagnosis, is_brief: bool = False) -> list[Text]:
    """What runs in each kind of gap; briefly, only if it fills most of the gaps and they are most of the idle time."""
    device, gaps = diagnosis.shown.busiest
    totals = gaps.totals()
    captures = 2 * gaps.captured_ns > totals["cold_start"]
    return [
        Text(
            f"{duration(place.filled_ns)} of each {duration(place.gap_ns)} gap "
            f"({_words(CAPTURE if captures and place.cause == 'cold_start' else place.cause)}): "
            f"{place.sentence}",
            "quiet",
        )
        for place in diagnosis.shown.gap_places
        if not is_brief
        or (
            place.cause != "dispatch"  # a step's own functions, which the fixes name
            and place.filled_ns >= MIN_FILLED * place.gap_ns
            and totals[place.cause] >= MIN_FILLED * device.idle_ns
            and device.idle_ns >= MIN_IDLE * device.window_ns
        )
    ]


def _named(parts: dict[str, int], whole: int) -> str:
    """The larger parts by name, largest first, and the sum of the rest."""
    large = {name: value for name, value in parts.items() if whole and value / whole >= MIN_NAMED_SHARE}
    rest = sum(parts.values()) - sum(large.values())
    words = [f"{_words(name)} {share(value, whole)}" for name, value in sorted(large.items(), key=lambda one: -one[1])]
    words += [f"other {share(rest, whole)}"] if words and share(rest, whole) not in {"0.0 %", "–"} else []
    return f" ({', '.join(words)})" if words else ""


def _device(diagnosis: Diagnosis, device: DeviceTime, gaps: Gaps, with_places: bool) -> Section:
    columns = (
        Column("part", "part", key=True),
        Column("time_ns", "time", "ns"),
        Column("share", "share", "share"),
        Column("meaning", "meaning", priority=2),
    )
    whole, rows = device.window_ns, list[tuple[Value, ...]]()
    hidden = {"comm": device.overlapped_comm_ns, "copy": device.overlapped_copy_ns}
    for part in BUSY:
        length = int(getattr(device, f"{part}_ns"))
        if length or part == "compute":
            note = f"and {duration(hidden[part])} overlapped with other GPU activity" if hidden.get(part) else ""
            rows.append((part, length, tables.part_of(length, whole), note))
    rows.append(("idle", device.idle_ns, tables.part_of(device.idle_ns, whole), ""))
    for cause, length in sorted(_idle_parts(gaps).items(), key=lambda item: -item[1]):
        if length:
            rows.append((f"  {_words(cause)}", length, tables.part_of(length, whole), _meaning(cause, gaps)))
    title = f"GPU {device.device}: {_window(diagnosis, whole)}, busy {share(device.busy_ns, whole)}"
    busy = tuple(Part(part, int(getattr(device, f"{part}_ns"))) for part in BUSY)
    bar = Bar(whole, (*busy, Part("idle", device.idle_ns)))
    places = [*rank_waits(diagnosis), *_outside(diagnosis), *_gap_sentences(diagnosis)] if with_places else []
    return Section(f"device_{device.device}", title, (bar, Table(columns, tuple(rows)), *places))


def _meaning(cause: str, gaps: Gaps) -> str:
    """What a cause means, and in which calls of the operating system the program waited."""
    calls = gaps.os_waits.get(cause, {})
    named = listed(f"{name} {duration(length)}" for name, length in calls.items())
    meaning = (
        "the program waited for another thread or process" if cause == "unknown" and calls else IDLE_MEANING[cause]
    )
    return f"{meaning} ({named})" if named else meaning


def _words(name: str) -> str:
    return name.replace("_", " ")


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
