"""Where the time of a device goes: the account of busy and idle time, what fills its gaps, and what it is of."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from warpline.analyses.breakdown import DeviceTime
from warpline.analyses.idle.gaps import Gaps
from warpline.findings.diagnosis import Diagnosis
from warpline.fixes.words import listed
from warpline.replay.replay import TYPICAL
from warpline.reports.diagnosis_tables import part_of
from warpline.reports.sections import MIN_NAMED_SHARE, Bar, Column, Part, Section, Table, Text, Value
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


def device_section(diagnosis: Diagnosis, device: DeviceTime, gaps: Gaps, with_places: bool) -> Section:
    """The account of one device, with what each cause means."""
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
            rows.append((part, length, part_of(length, whole), note))
    rows.append(("idle", device.idle_ns, part_of(device.idle_ns, whole), ""))
    for cause, length in sorted(_idle_parts(gaps).items(), key=lambda item: -item[1]):
        if length:
            rows.append((f"  {_words(cause)}", length, part_of(length, whole), _meaning(cause, gaps)))
    title = f"GPU {device.device}: {_window(diagnosis, whole)}, busy {share(device.busy_ns, whole)}"
    busy = tuple(Part(part, int(getattr(device, f"{part}_ns"))) for part in BUSY)
    bar = Bar(whole, (*busy, Part("idle", device.idle_ns)))
    places = [*rank_waits(diagnosis), *outside_steps(diagnosis), *gap_sentences(diagnosis)] if with_places else []
    return Section(f"device_{device.device}", title, (bar, Table(columns, tuple(rows)), *places))


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


def outside_steps(diagnosis: Diagnosis) -> Iterator[Text]:
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


def gap_sentences(diagnosis: Diagnosis, is_brief: bool = False) -> list[Text]:
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
    basis = "recorded " if step and recorded and differ(recorded, step.expected) else ""
    rest = f" ({share(of, 1)} of the recording)" if of < MIN_COVERED else ""
    number = several(steps, f"{basis}step")
    if as_step and recorded and is_typical and not averaged_of_more(diagnosis):
        return f"{number} of {duration(recorded)}{of_several(diagnosis)}{_without_pause(diagnosis)}{rest}"
    mean = f" ({duration(whole / steps)} on average)" if recorded and differ(whole / steps, recorded) else ""
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


def of_several(diagnosis: Diagnosis) -> str:
    """What the length of a step is where most steps take another time: the average of those that were replayed is not
    exactly that of all."""
    judgement = diagnosis.judgement
    if replayed := averaged_of_more(diagnosis):
        return f" on average of the {replayed} replayed"
    if diagnosis.cpu is not None or (judgement is not None and judgement.evidence.question.replay.is_average):
        return " on average"
    return "" if judgement is None or diagnosis.most_steps_take_it else " in the median"


def averaged_of_more(diagnosis: Diagnosis) -> int:
    """How many steps were replayed, where a step is their average and there are others; else 0."""
    judgement = diagnosis.judgement
    if diagnosis.cpu is not None or judgement is None or not judgement.evidence.question.replay.is_average:
        return 0
    replayed = len(judgement.evidence.trace.steps_in_view)
    return replayed if replayed < len(diagnosis.steps) else 0


def differ(length_ns: float, than_ns: float) -> bool:
    """Whether two step times are shown as different ones."""
    return abs(length_ns - than_ns) >= MIN_DIFFERENCE * than_ns


def _idle_parts(gaps: Gaps) -> dict[str, int]:
    """Idle time by cause; a graph capture is no cold start, and what waits for unrecorded work is not without a reason:
    both have names of their own."""
    totals = gaps.totals()
    totals["cold_start"] -= gaps.captured_ns
    totals["unknown"] -= gaps.unrecorded_ns
    return {**totals, CAPTURE: gaps.captured_ns, NOT_RECORDED: gaps.unrecorded_ns}


def _busy_and_idle(busy: dict[str, int], idle: dict[str, int], whole: int) -> str:
    return (
        f"busy {share(sum(busy.values()), whole)}{_named(busy, whole)}, "
        f"idle {share(sum(idle.values()), whole)}{_named(idle, whole)}"
    )


def _named(parts: dict[str, int], whole: int) -> str:
    """The larger parts by name, largest first, and the sum of the rest."""
    large = {name: value for name, value in parts.items() if whole and value / whole >= MIN_NAMED_SHARE}
    rest = sum(parts.values()) - sum(large.values())
    words = [f"{_words(name)} {share(value, whole)}" for name, value in sorted(large.items(), key=lambda one: -one[1])]
    words += [f"other {share(rest, whole)}"] if words and share(rest, whole) not in {"0.0 %", "–"} else []
    return f" ({', '.join(words)})" if words else ""


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
