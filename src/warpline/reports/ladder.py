"""A ladder as sections, one row a rung, then what appeared and vanished at each; and as SVG."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from warpline.compare.ladder import MIN_MORE_WORK, Ladder, Rung, RungKernel
from warpline.estimate import Estimate
from warpline.reports.sections import (
    Column,
    Command,
    Content,
    Note,
    Notes,
    Report,
    Section,
    Table,
    Text,
    Value,
    next_section,
)
from warpline.reports.svg import document, fitted, label, legend, stroke
from warpline.units import count, duration, several, share, speedup

NEXT = (
    Command("warpline ladder … --svg ladder.svg", "the rungs as a chart"),
    Command("warpline ladder … -o ladder.html", "chart and tables as a page"),
)
LISTED = 6
"""Kernels listed at a rung; -v lists all."""
COLUMNS = (
    Column("step_ns", "step", "ns", has_bars=True),
    Column("spread_ns", "middle half", "ns", priority=4),
    Column("share", "of first", "share"),
    Column("launches", "launches", "count", priority=2),
    Column("roof_share", "of roofline", "share", priority=3),
    Column("predicted_ns", "predicted", "ns", priority=2),
    Column("verdict", "against the rung before", priority=2),
    Column("name", "rung", key=True),
)
WORDS = {"not_comparable": "not comparable", "inconclusive": "not certain"}


def ladder_report(ladder: Ladder, verbose: bool = False) -> Report:
    """The whole ladder; `verbose` lists every kernel."""
    lead: list[Content] = [Text(_sentence(ladder), "strong"), _rungs(ladder)]
    if ladder.remarks:
        lead.append(Notes(tuple(Note("info", "", remark) for remark in ladder.remarks)))
    sections = [Section("ladder", "Ladder", tuple(lead), is_lead=True)]
    for rung, before in zip(ladder.rungs, (None, *ladder.rungs), strict=False):
        content = tuple(_changes(rung, before, verbose))
        if content:
            sections.append(Section(f"rung_{rung.name}", rung.name, content))
    sections.append(next_section(NEXT))
    return Report(f"{len(ladder.rungs)} rungs on {ladder.device}", tuple(sections))


def _sentence(ladder: Ladder) -> str:
    first, best = ladder.rungs[0], ladder.fastest
    if ladder.grows:
        other = ladder.unlike_first
        times = (other.flops or 0.0) / (first.flops or 1.0)
        more = f"{times:.3g}× the FLOPs of {first.name}"
        return f"The rungs do different work: {other.name} has {more} and takes {other.share:.3g}× as long."
    rest = ladder.rungs[len(ladder.comparable) :]
    apart = f" {_apart(rest)} compared with {first.name}." if rest else ""
    if len(ladder.comparable) == 1:
        return f"No rung is known to be faster than the first, {first.name}: {duration(first.step_ns)} a step.{apart}"
    if best is first:
        return f"No rung is faster than the first, {first.name}: {duration(first.step_ns)} a step.{apart}"
    gain = speedup(first.step_ns / best.step_ns)
    below = ladder.rungs[1 : ladder.rungs.index(best) + 1]
    how = "is the fastest" if any(rung.verdict == "faster" for rung in below) else "seems to be the fastest"
    recorded = "" if ladder.timed else "As recorded, with the profiler's cost in each step, "
    return f"{recorded}{best.name} {how}: {duration(best.step_ns)} a step, {gain} as fast as {first.name}.{apart}"


def _apart(rungs: Sequence[Rung]) -> str:
    return f"{rungs[0].name} {'and the rungs below ' if len(rungs) > 1 else ''}cannot be"


def _rungs(ladder: Ladder) -> Table:
    """One row a rung; without predictions, there is no column for them."""
    pairs = zip(ladder.rungs, (None, *ladder.rungs), strict=False)
    rows = tuple(_row(rung, before, ladder) for rung, before in pairs)
    return Table(COLUMNS, rows).without_empty("predicted_ns")


def _row(rung: Rung, before: Rung | None, ladder: Ladder) -> tuple[Value, ...]:
    return (
        rung.step_ns,
        Estimate(rung.low_ns, rung.step_ns, rung.high_ns),
        rung.share if rung in ladder.comparable else None,
        rung.launches,
        rung.roof_share,
        rung.predicted_ns,
        "" if before is None else _verdict(rung, before, ladder),
        rung.name,
    )


def _verdict(rung: Rung, before: Rung, ladder: Ladder) -> str:
    """How the rung compares with the one before: by its work too, where that differs or is meant to."""
    words = WORDS.get(rung.verdict or "", rung.verdict or "")
    if rung.gain is None or rung.verdict in {None, "not_comparable", "same"}:
        return words
    work = rung.flops / before.flops if rung.flops and before.flops else 1.0
    if ladder.grows or max(work, 1 / work) > MIN_MORE_WORK:
        return f"{1 / rung.gain:.3g}× the time, {work:.3g}× the FLOPs"
    return f"{words}, {speedup(rung.gain)}"


def _changes(rung: Rung, before: Rung | None, verbose: bool) -> Iterator[Content]:
    if rung.outcome is not None:
        yield Text(rung.outcome.sentence_of("It"))
    elif before is not None and rung.kernels and not rung.new and not rung.gone:
        often = f", {count(rung.kernels)} a step instead of {count(before.kernels)}"
        yield Text(f"The same kernels as in the rung before{often if rung.kernels != before.kernels else ''}.")
    for title, kernels in (("new", rung.new), ("gone", rung.gone)):
        if kernels:
            yield _kernels(title, kernels, verbose)


def _kernels(title: str, kernels: Sequence[RungKernel], verbose: bool) -> Table:
    columns = (
        Column("time_ns", "a step", "ns"),
        Column("count", "launches", "count"),
        Column("name", f"{title} kernel", key=True),
        Column("meaning", "what its name says", priority=2),
    )
    shown = kernels if verbose else kernels[:LISTED]
    rest = kernels[len(shown) :]
    whole = sum(kernel.time_ns for kernel in kernels)
    lost = sum(kernel.time_ns for kernel in rest)
    note = f"{several(len(rest), 'more kernel')}, {share(lost, whole)} of their time; -v lists them" if rest else ""
    rows = tuple((kernel.time_ns, kernel.count, kernel.short, kernel.meaning) for kernel in shown)
    return Table(columns, rows, hidden=len(rest), hidden_note=note)


WIDTH, ROW, TOP = 840, 30, 52
LEFT, RIGHT = 220, 150
BAR, PREDICTED = "#6695d0", "#b4372a"


def ladder_svg(ladder: Ladder) -> str:
    """The picture."""
    ends = [rung.predicted_ns.high if rung.predicted_ns is not None else 0 for rung in ladder.rungs]
    first = ladder.rungs[0].step_ns
    # A prediction whose range says "measure it" must not squeeze the bars.
    longest = max(*(rung.high_ns for rung in ladder.rungs), min(max(ends), 1.5 * first), 1)
    scale = (WIDTH - LEFT - RIGHT) / longest
    height = TOP + ROW * len(ladder.rungs) + 40
    parts = [label(16, 26, f"Ladder on {ladder.device}", "title")]
    for place, rung in enumerate(ladder.rungs):
        parts += _bar(rung, TOP + ROW * place, scale, longest)
    entries = [("a step", BAR), ("predicted from the rung before", PREDICTED)]
    parts += legend(LEFT, height - 16, WIDTH - LEFT, entries)[0]
    return document(WIDTH, height, "Ladder", "A bar for each rung; its line spans the middle half of the steps.", parts)


def _bar(rung: Rung, y: float, scale: float, longest: float) -> list[str]:
    middle = y + 9
    parts = [
        label(LEFT - 10, middle + 4, fitted(rung.name, LEFT - 20), "", "end"),
        f'<rect x="{LEFT}" y="{y:g}" width="{max(rung.step_ns * scale, 1):.1f}" height="18" rx="2" fill="{BAR}"/>',
        stroke(LEFT + rung.low_ns * scale, middle, LEFT + rung.high_ns * scale, middle, "rule"),
        label(WIDTH - RIGHT + 10, middle + 4, f"{duration(rung.step_ns)}  {share(rung.share, 1)}"),
    ]
    promised = rung.predicted_ns
    if promised is not None:
        low, high = (LEFT + min(end, longest) * scale for end in (promised.low, promised.high))
        at = LEFT + min(promised.expected, longest) * scale
        parts += [stroke(low, y + 22, high, y + 22, "roof"), stroke(at, y - 2, at, y + 24, "roof")]
    return parts
