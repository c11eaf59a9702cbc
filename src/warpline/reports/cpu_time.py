"""Where the CPU's time goes, as a section: for traces without GPU work."""

from __future__ import annotations

from warpline.analyses.cpu_time import KINDS, MEANING, CpuKind, CpuTime
from warpline.reports.sections import Bar, Column, Content, Part, Section, Table, Text, Value
from warpline.units import duration, several, share


def section(cpu: CpuTime, top: int, verbose: bool = False) -> Section:
    """The sentence, the kinds of time to scale, and the parts with the longest time of their own."""
    kinds = {kind: length for kind, length in cpu.kinds.items() if length}
    parts = tuple(Part(kind, kinds[kind]) for kind in KINDS if kind in kinds)
    named = ", ".join(
        f"{kind} {share(length, cpu.window_ns)}" for kind, length in sorted(kinds.items(), key=lambda one: -one[1])
    )
    mean = " on average" if cpu.steps > 1 else ""
    where = (
        f"{several(cpu.steps, 'step')} of {duration(cpu.step_ns)}{mean}" if cpu.has_steps else duration(cpu.window_ns)
    )
    content: list[Content] = [
        Text(cpu.sentence),
        Bar(cpu.window_ns, parts, f"CPU thread {cpu.thread}, {where}: {named}"),
        _parts(cpu, len(cpu.parts) if verbose else top),
    ]
    if verbose:
        content.append(_kinds(cpu, kinds))
    return Section("cpu", "Where the CPU's time goes", tuple(content), is_lead=not verbose)


def _parts(cpu: CpuTime, top: int) -> Table:
    columns = (
        Column("self_ns", "own time a step" if cpu.has_steps else "own time", "ns"),
        Column("share", "share", "share"),
        Column("count", "count a step" if cpu.has_steps else "count", "number", priority=3),
        Column("kind", "kind"),
        Column("where", "where", priority=2),
        Column("name", "what", key=True),
    )
    rows: list[tuple[Value, ...]] = [
        (
            round(part.self_ns / cpu.steps),
            part.self_ns / cpu.window_ns if cpu.window_ns else None,
            _count(part.count, cpu.steps),
            part.kind,
            "other threads" if part.elsewhere else part.spot or None,
            part.name,
        )
        for part in cpu.parts[:top]
    ]
    hidden = max(len(cpu.parts) - top, 0)
    note = f"{several(hidden, 'more part')}: -v lists them" if hidden else ""
    return Table(columns, tuple(rows), hidden, note)


def _kinds(cpu: CpuTime, kinds: dict[CpuKind, int]) -> Table:
    columns = (Column("kind", "kind", key=True), Column("share", "share", "share"), Column("meaning", "meaning"))
    rows = [(kind, kinds[kind] / cpu.window_ns, MEANING[kind]) for kind in KINDS if kind in kinds]
    return Table(columns, tuple(rows))


def _count(number: int, steps: int) -> float:
    """How many a step: whole where it is."""
    return number // steps if number % steps == 0 else round(number / steps, 1)
