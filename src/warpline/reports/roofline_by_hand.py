"""The roofline on the back of an envelope, as sections."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from warpline.analyses.roofline.by_hand import Envelope, unit_of
from warpline.hardware import CitedFigure
from warpline.reports.sections import (
    Column,
    Command,
    Content,
    Fact,
    Facts,
    Note,
    Notes,
    Report,
    Section,
    Table,
    next_section,
)
from warpline.units import duration, flop_rate, size


def envelope_report(answer: Envelope) -> Report:
    """The verdict, the figures and, for several pieces, a row for each."""
    content: list[Content] = [Facts(tuple(Fact(label, text) for label, text in _facts(answer)))]
    note = _note(answer)
    if note is not None:
        content.insert(0, Notes((note,)))
    sections = [Section("envelope", "Roofline", tuple(content), is_lead=True)]
    if len(answer.items) > 1:
        sections.append(Section("items", "Pieces", (_table(answer),)))
    sections.append(next_section(_next(answer)))
    return Report(_title(answer), tuple(sections))


def scaling_report(answers: Sequence[Envelope]) -> Report:
    """A row for each shape: its time and work as multiples of the first one's."""
    first, last = answers[0], answers[-1]
    columns = (
        Column("time_ns", "time", "ns"),
        Column("time_ratio", "time/first", "gain"),
        Column("flop_ratio", "FLOPs/first", "gain"),
        Column("byte_ratio", "bytes/first", "gain", priority=3),
        Column("rate", "attained"),
        Column("roof_pct", "% roof", "number"),
        Column("name", "what", key=True),
    )
    rows = tuple(
        (
            one.time_ns,
            _times(one.time_ns, first.time_ns),
            _times(one.flops, first.flops),
            _times(one.bytes, first.bytes),
            flop_rate(one.flops_per_second or 0.0) if one.flops else f"{size(one.bytes_per_second or 0.0)}/s",
            None if one.roof_pct is None else f"{one.roof_pct:.1f}",
            one.items[0].name,
        )
        for one in answers
    )
    notes = tuple(note for note in map(_note, answers) if note is not None)
    longer, more = (
        _times(last.time_ns, first.time_ns) or 0.0,
        _times(last.flops or last.bytes, first.flops or first.bytes),
    )
    work = "FLOPs" if first.flops and last.flops else "bytes"
    title = (
        f"{last.items[0].name} takes {longer:.3g}× as long as {first.items[0].name}, for {more or 0.0:.3g}× the {work}"
    )
    content: tuple[Content, ...] = (Table(columns, rows), *((Notes(notes),) if notes else ()))
    place = f"{first.device or 'no device given'}, {first.dtype}"
    next_ = next_section(_next(first))
    return Report(f"{place}: {title}", (Section("scaling", "Scaling", content, is_lead=True), next_))


def _times(value: float | None, first: float | None) -> float | None:
    return value / first if value and first else None


NO_FLOOR = "add --device NAME for the least time, --time for the rate"


def _title(answer: Envelope) -> str:
    place = answer.device or "no device given"
    if answer.time_ns is None:
        floor = f"at least {duration(answer.floor_ns)}" if answer.floor_ns is not None else NO_FLOOR
        return f"{place}, {answer.dtype}: {floor}" + (f" ({answer.bound}-bound)" if answer.bound else "")
    time = duration(answer.time_ns)
    if answer.verdict == "impossible":
        return f"{place}, {answer.dtype}: {time} is impossible; no less than {duration(answer.hard_ns)} is possible"
    share = f", {answer.roof_pct:.1f} % of the roof ({answer.bound}-bound)" if answer.roof_pct is not None else ""
    return f"{place}, {answer.dtype}: {time}{share}"


def _facts(answer: Envelope) -> Iterator[tuple[str, str]]:
    amounts = [f"{answer.flops / 1e9:,.4g} GFLOP"] if answer.flops else []
    yield "work", ", ".join([*amounts, size(answer.bytes)] if answer.bytes else amounts)
    if answer.intensity is not None and answer.flops:
        place = ""
        if answer.ridge is not None:
            side = "below" if answer.intensity < answer.ridge else "above"
            place = f"; the ridge of {answer.dtype} matmuls is at {answer.ridge:,.1f}, so this is {side} it"
        yield "intensity", f"{answer.intensity:,.4g} FLOP/B{place}"
    elif answer.ridge is not None and answer.flops:
        yield "ridge", f"{answer.ridge:,.1f} FLOP/B for {answer.dtype} matmuls; the bytes were not given"
    if answer.flops_per_second is not None and answer.bytes_per_second is not None:
        rates = []
        if answer.flops:
            rates.append(flop_rate(answer.flops_per_second) + _of_peak(answer.flops_per_second, answer.compute))
        if answer.bytes:
            rates.append(f"{size(answer.bytes_per_second)}/s" + _of_peak(answer.bytes_per_second, answer.memory))
        yield "attained", ", ".join(rates)
    if answer.floor_ns is not None:
        limit = f"; {duration(answer.hard_ns)} at the highest clock, with data in the cache"
        yield "floor", f"{duration(answer.floor_ns)} at the ceilings{limit if answer.verdict == 'impossible' else ''}"
    for name, figure, rate in (
        (f"{answer.dtype} {unit_of(answer.dtype)}", answer.compute, flop_rate),
        ("memory", answer.memory, lambda value: f"{size(value)}/s"),
    ):
        if figure is not None:
            yield name, f"{rate(figure.value)} ({figure.origin}: {figure.source.removeprefix(figure.origin + ': ')})"


def _of_peak(rate: float, peak: CitedFigure | None) -> str:
    return f" ({100 * rate / peak.value:.3g} % of the peak)" if peak is not None else ""


def _note(answer: Envelope) -> Note | None:
    if answer.verdict == "impossible" and answer.time_ns:
        why = "the time, the work or the type is wrong"
        ratio = answer.hard_ns / answer.time_ns
        return Note("error", "impossible", f"{ratio:.3g} times faster than the chip's limit: {why}")
    if answer.verdict == "in_cache":
        return Note("warning", "in-cache", "faster than memory: only possible if the data were in the cache")
    if answer.verdict == "above_measured":
        return Note("warning", "above-measured", "faster than the measured ceiling, within the data sheet's")
    if answer.device and answer.floor_ns is None:
        return Note("warning", "no-ceiling", f"no {answer.dtype} peak is known for {answer.device}: rates only")
    return None


def _table(answer: Envelope) -> Table:
    columns = (
        Column("floor_ns", "floor", "ns"),
        Column("bound", "bound"),
        Column("flops", "FLOP", "number"),
        Column("bytes", "bytes", "bytes"),
        Column("intensity", "FLOP/B", "number"),
        Column("name", "what", key=True),
    )
    rows = tuple(
        (
            item.floor_ns,
            item.bound or "?",
            f"{item.flops:,.4g}",
            item.bytes,
            f"{item.flops / item.bytes:,.3g}" if item.bytes else None,
            item.name,
        )
        for item in answer.items
    )
    return Table(columns, rows)


def _next(answer: Envelope) -> Iterator[Command]:
    if answer.device is None:
        yield Command("warpline device", "the chips to compare with, by --device NAME")
    else:
        yield Command(f"warpline device {shlex.quote(answer.device)}", "every ceiling and its source")
    yield Command("warpline roofline TRACE", "the same for every op of a recorded program")
