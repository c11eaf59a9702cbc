"""A ladder as sections: one row a rung, then what appeared and vanished at each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from warpline.compare.ladder import Ladder, Rung, RungKernel
from warpline.estimate import Estimate
from warpline.reports.sections import Column, Content, Note, Notes, Report, Section, Table, Text, Value
from warpline.units import duration, several, share, speedup

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
WORDS = {"not_comparable": "not comparable"}


def ladder_report(ladder: Ladder, verbose: bool = False) -> Report:
    """The whole ladder; `verbose` lists every kernel."""
    lead: list[Content] = [Text(_sentence(ladder), "strong"), _rungs(ladder)]
    if ladder.remarks:
        lead.append(Notes(tuple(Note("info", "", remark) for remark in ladder.remarks)))
    sections = [Section("ladder", "Ladder", tuple(lead), is_lead=True)]
    for rung in ladder.rungs:
        content = tuple(_changes(rung, verbose))
        if content:
            sections.append(Section(f"rung_{rung.name}", rung.name, content))
    return Report(f"{len(ladder.rungs)} rungs on {ladder.device}", tuple(sections))


def _sentence(ladder: Ladder) -> str:
    first, best = ladder.rungs[0], ladder.fastest
    if best is first:
        return f"No rung is faster than the first, {first.name}: {duration(first.step_ns)} a step."
    gain = speedup(first.step_ns / best.step_ns)
    below = ladder.rungs[1 : ladder.rungs.index(best) + 1]
    how = "is the fastest" if any(rung.verdict == "faster" for rung in below) else "seems to be the fastest"
    return f"{best.name} {how}: {duration(best.step_ns)} a step, {gain} as fast as {first.name}."


def _rungs(ladder: Ladder) -> Table:
    """One row a rung; without predictions, there is no column for them."""
    shown = [
        at
        for at, column in enumerate(COLUMNS)
        if column.name != "predicted_ns" or any(rung.predicted is not None for rung in ladder.rungs)
    ]
    rows = [_row(rung) for rung in ladder.rungs]
    return Table(tuple(COLUMNS[at] for at in shown), tuple(tuple(row[at] for at in shown) for row in rows))


def _row(rung: Rung) -> tuple[Value, ...]:
    verdict = "" if rung.verdict is None else WORDS.get(rung.verdict, rung.verdict)
    if rung.gain is not None and rung.verdict in {"faster", "slower"}:
        verdict = f"{verdict}, {speedup(rung.gain)}"
    return (
        rung.step_ns,
        Estimate(rung.low_ns, rung.step_ns, rung.high_ns),
        rung.share,
        rung.launches,
        rung.roof_share,
        rung.predicted_ns,
        verdict,
        rung.name,
    )


def _changes(rung: Rung, verbose: bool) -> Iterator[Content]:
    if rung.fixes:
        yield Text(_prediction(rung))
    for title, kernels in (("new", rung.new), ("gone", rung.gone)):
        if kernels:
            yield _kernels(title, kernels, verbose)


def _prediction(rung: Rung) -> str:
    made = f"It has {' and '.join(rung.fixes)}"
    promised, gain = rung.predicted, rung.gain
    if promised is None or gain is None:
        return f"{made}."
    said = f"predicted {speedup(promised.expected)} ({speedup(promised.low)} to {speedup(promised.high)})"
    came = "as predicted" if rung.is_as_predicted else "outside the predicted range"
    return f"{made}: {said}, measured {speedup(gain)}: {came}."


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
