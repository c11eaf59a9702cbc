"""The answer about memory as sections, and its curve as text and as SVG."""

from __future__ import annotations

import numpy as np

from warpline.analyses.memory import DeviceMemory, MemoryCurve, MemoryUse
from warpline.analyses.memory.snapshot import OutOfMemory, Pieces
from warpline.analyses.user_frames import Site
from warpline.reports.sections import Column, Content, Fact, Facts, Figure, Report, Section, Table, Text
from warpline.reports.svg import document, label, stroke
from warpline.trace.arrays import Int64s
from warpline.units import duration, several, share, size

BEFORE = "(allocated before the recording)"
TITLES = {"op": "op", "module": "module", "line": "line"}


def memory_report(answer: MemoryUse, title: str, by: str, top: int, verbose: bool) -> Report:
    """The first device, or all; with `verbose`, by op, module and line."""
    shown = answer.devices if verbose else answer.devices[:1]
    sections: list[Section] = []
    for one in shown:
        sections += _device_sections(one, by, top, verbose)
    if answer.failures:
        texts = tuple(Text(_failure(failure)) for failure in answer.failures[: top if not verbose else None])
        sections.append(Section("failures", "Out of memory", texts))
    notes = [Text(f"{several(answer.skipped, 'entry', 'entries')} of the snapshot could not be read.", "quiet")] * bool(
        answer.skipped
    )
    others = [one for one in answer.devices if one not in shown]
    if others:
        listed = ", ".join(f"{one.device} (peak {size(one.peak.allocated_bytes)})" for one in others)
        notes.append(Text(f"-v also shows {listed}.", "quiet"))
    if notes:
        sections.append(Section("notes", "Notes", tuple(notes)))
    return Report(title, tuple(sections))


def _device_sections(one: DeviceMemory, by: str, top: int, verbose: bool) -> list[Section]:
    name = one.device
    found = [
        Section(f"memory {name}", f"Memory of {name}", (Text(_sentence(one), "strong"), Facts(_facts(one)))),
    ]
    if one.curve.time_ns[-1] > one.curve.time_ns[0]:
        found.append(Section(f"curve {name}", f"Allocated on {name}", (Figure(character_plot(one)),)))
    places = list(one.holders) if verbose else [by if by in one.holders else next(iter(one.holders), "")]
    if by not in one.holders and not verbose:
        reason = f"The profile does not tell the {TITLES[by]} of an allocation."
        found.append(Section(f"no {by}", "Who allocated", (Text(reason, "quiet"),)))
    for place in filter(None, places):
        found.append(Section(f"{place} {name}", f"Alive at the peak, by {TITLES[place]}", (_holders(one, place, top),)))
    if one.growers:
        found.append(Section(f"growth {name}", "What grows", (_growers(one, top),)))
    if one.pieces is not None:
        found.append(Section(f"pieces {name}", "Segments at the end", (Facts(_pieces(one.pieces)),)))
    return found


def _sentence(one: DeviceMemory) -> str:
    peak = one.peak
    where = f" in step {peak.step}" if peak.step is not None else ""
    by = f", reached by {peak.op}" if peak.op else ""
    place = f" at {place_text(peak.line)}" if peak.line else ""
    least = "" if one.start_known else "at least "
    what = "allocated with CUDA calls" if one.counted == "CUDA allocations" else "allocated"
    return f"{one.device}: {least}{size(peak.allocated_bytes)} {what} at the peak{where}{by}{place}."


def _facts(one: DeviceMemory) -> tuple[Fact, ...]:
    peak = one.peak
    unknown = "" if one.start_known else " (without what was allocated before)"
    facts = [Fact("start, end", f"{size(one.start_bytes)}, {size(one.end_bytes)}{unknown}")]
    if peak.reserved_bytes is not None and one.peak_reserved_bytes is not None:
        unused = max(peak.reserved_bytes - peak.allocated_bytes, 0)
        facts.append(
            Fact(
                "reserved",
                f"{size(peak.reserved_bytes)} at the peak, {share(unused, peak.reserved_bytes)} of it unused "
                f"({size(unused)}); at most {size(one.peak_reserved_bytes)}",
            )
        )
    if one.capacity_bytes:
        used = peak.reserved_bytes if peak.reserved_bytes is not None else peak.allocated_bytes
        facts.append(Fact("device", f"{size(one.capacity_bytes)}, {share(used, one.capacity_bytes)} taken"))
    facts.append(Fact("growth", _growth(one)))
    facts.append(Fact("events", several(one.events, "allocation or free", "allocations and frees")))
    return tuple(facts)


def _growth(one: DeviceMemory) -> str:
    trend = one.growth
    if trend.trend == "unknown":
        return f"cannot tell: {trend.reason}"
    if trend.trend == "steady":
        return f"none: {trend.reason}"
    until = one.steps_until_full
    full = f"; the device is full after {several(round(until), 'more step')}" if until is not None else ""
    return f"{size(trend.per_step_bytes or 0)} a step: {trend.reason}{full}"


def _holders(one: DeviceMemory, place: str, top: int) -> Content:
    entries = one.holders[place]
    peak = one.peak.allocated_bytes
    rows: list[tuple[str | int | float | None, ...]] = []
    if one.earlier_bytes:
        rows.append((one.earlier_bytes, one.earlier_bytes / peak if peak else None, None, None, None, BEFORE))
    for entry in entries[:top]:
        part = entry.peak_bytes / peak if peak and entry.peak_bytes is not None else None
        name = place_text(entry.name) if entry.name is not None else f"(no {TITLES[place]})"
        rows.append((entry.peak_bytes, part, entry.peak_count, entry.allocated_bytes, entry.allocated_count, name))
    columns = (
        Column("peak_bytes", "at the peak", "bytes"),
        Column("share", "share", "share", priority=2),
        Column("peak_count", "pieces", "count", priority=3),
        Column("allocated_bytes", "in all", "bytes", priority=2),
        Column("allocated_count", "allocations", "count", priority=3),
        Column("name", TITLES[place], key=True),
    )
    hidden = max(len(entries) - top, 0)
    return Table(columns, tuple(rows), hidden, f"{several(hidden, 'more row')}: --top" if hidden else "")


def _growers(one: DeviceMemory, top: int) -> Content:
    rows = tuple(
        (entry.per_step_bytes, entry.bytes, entry.count, f"{entry.op or '(no op)'} {place_text(entry.line)}".strip())
        for entry in one.growers[:top]
    )
    columns = (
        Column("per_step_bytes", "per step", "bytes"),
        Column("bytes", "last step", "bytes", priority=2),
        Column("count", "pieces", "count", priority=3),
        Column("name", "op and line", key=True),
    )
    return Table(columns, rows)


def _pieces(one: Pieces) -> tuple[Fact, ...]:
    split = f", {100 * one.split_share:.1f} % of it outside of the largest piece" if one.split_share is not None else ""
    return (
        Fact("reserved", f"{size(one.reserved_bytes)} in {several(one.segments, 'segment')}"),
        Fact("in use", f"{size(one.in_use_bytes)}, of which rounding {size(one.rounding_bytes)}"),
        Fact("awaiting free", f"{size(one.awaiting_bytes)} (another stream may still use it)"),
        Fact("free", f"{size(one.free_bytes)}; largest piece {size(one.largest_free_bytes)}{split}"),
        Fact("empty_cache()", f"would return {size(one.returnable_bytes)}"),
    )


def _failure(failure: OutOfMemory) -> str:
    free = f", CUDA had {size(failure.free_bytes)} free" if failure.free_bytes is not None else ""
    place = f" at {place_text(failure.line)}" if failure.line else ""
    cause = (
        "enough, but not in one piece: fragmentation (try expandable_segments:True)"
        if failure.unused_bytes >= failure.wanted_bytes > 0
        else "too little"
    )
    return (
        f"{failure.device}: {size(failure.wanted_bytes)} did not fit{place}{free}; the allocator held "
        f"{size(failure.unused_bytes)} unused, {cause}."
    )


def place_text(line: str | None) -> str:
    """`train.py(12): step` as `train.py:12 step`; any other name as it is."""
    site = Site.parse(line) if line is not None else None
    return site.with_function if site else line or ""


COLUMNS, LINES = 66, 10
WIDTH, HEIGHT = 960, 420
LEFT, RIGHT, TOP, BOTTOM = 90, 24, 56, 48
MOST_STEPS = 200
"""Steps that are marked."""
_EIGHTHS = " ▁▂▃▄▅▆▇█"


def character_plot(memory: DeviceMemory, columns: int = COLUMNS, lines: int = LINES) -> str:
    """Allocated memory over time as bars of characters, below a scale in bytes."""
    curve = memory.curve
    heights = _largest(curve, columns)
    top = max(int(heights.max()), 1)
    eighths = np.rint(heights / top * lines * 8).astype(int)
    rows = []
    for line in range(lines - 1, -1, -1):
        label = size(top * (line + 1) / lines) if line in {lines - 1, lines // 2 - 1} else ""
        cells = "".join(_EIGHTHS[min(max(value - 8 * line, 0), 8)] for value in eighths)
        rows.append(f"{label:>9} {cells}".rstrip())
    span = int(curve.time_ns[-1] - curve.time_ns[0])
    rows.append(" " * 10 + "0" + duration(span).rjust(columns - 1))
    return "\n".join(rows)


def _largest(curve: MemoryCurve, columns: int) -> Int64s:
    """The largest value in each of so many equal parts of the time; a part without events has the value before it."""
    first, last = int(curve.time_ns[0]), int(curve.time_ns[-1])
    place = (curve.time_ns - first) * columns // max(last - first + 1, 1)
    heights = np.full(columns, -1, np.int64)
    np.maximum.at(heights, place, curve.allocated_bytes)
    at_end = np.full(columns, -1, np.int64)
    at_end[place] = curve.allocated_bytes
    known = np.maximum.accumulate(np.where(at_end >= 0, np.arange(columns), 0))
    return np.where(heights >= 0, heights, at_end[known])


def svg(memory: DeviceMemory, title: str) -> str:
    """The curve as SVG text: allocated as an area, reserved as a line, a dashed line at the start of each step."""
    curve = memory.curve
    top = max(
        int(curve.allocated_bytes.max()), int(curve.reserved_bytes.max()) if curve.reserved_bytes is not None else 0, 1
    )
    first, span = int(curve.time_ns[0]), max(int(curve.time_ns[-1] - curve.time_ns[0]), 1)

    def x(time_ns: int) -> float:
        return LEFT + (time_ns - first) / span * (WIDTH - LEFT - RIGHT)

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM)

    def steps_of(values: Int64s) -> str:
        """A line that keeps each value until the next."""
        parts = [f"M{x(first):.1f} {y(int(values[0])):.1f}"]
        parts += [
            f"H{x(time):.1f}V{y(value):.1f}"
            for time, value in zip(curve.time_ns.tolist(), values.tolist(), strict=True)
        ]
        return "".join(parts)

    floor = y(0)
    marks = [time for time in memory.steps_ns if first <= time <= first + span]
    scale = [top * part / 4 for part in range(5)]
    body = [
        *(stroke(LEFT, y(value), WIDTH - RIGHT, y(value)) for value in scale),
        *(label(LEFT - 8, y(value) + 4, size(value), "", "end") for value in scale),
        *(stroke(x(time), TOP, x(time), floor, "mark") for time in marks[:MOST_STEPS]),
        f'<path class="area" d="{steps_of(curve.allocated_bytes)}V{floor:.1f}H{LEFT}Z"/>',
    ]
    legend = "area: allocated"
    if curve.reserved_bytes is not None:
        body.append(f'<path class="curve" d="{steps_of(curve.reserved_bytes)}"/>')
        legend += "; line: reserved"
    if marks:
        legend += "; dashed: start of a step"
    head = f"{title}: {memory.device}, peak {size(memory.peak.allocated_bytes)}"
    body += [
        label(LEFT, HEIGHT - 16, "0"),
        label(WIDTH - RIGHT, HEIGHT - 16, duration(span), "", "end"),
        label(WIDTH / 2, HEIGHT - 16, legend, "", "middle"),
        label(LEFT, 30, head, "title"),
    ]
    return document(WIDTH, HEIGHT, head, f"Memory over {duration(span)}; {legend}.", body)
