"""A dive as sections: for each kernel the reason, the gain, what to change, and the tree with its measured values."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from warpline.dive.model import NOT_KNOWN, Branch, Dive, HotLine, KernelDive, Node, RooflineLevel
from warpline.estimate import Estimate
from warpline.reports.sections import (
    Column,
    Command,
    Content,
    Fact,
    Facts,
    Report,
    Section,
    Table,
    Text,
    health_notes,
    next_section,
)
from warpline.reports.text import shorten
from warpline.units import duration, several, speedup

MAX_NAME = 60
SHOWN_KERNELS = 3
"""Kernels explained in full without --verbose."""
SHOWN_BRANCHES = frozenset({"speed_of_light", "tensor_cores", "warps"})
"""Branches shown without --verbose, besides those that the reason's evidence is in."""
EVIDENCE = {
    "uncoalesced": "memory", "l2_misses": "memory", "memory_bandwidth": "memory", "bank_conflicts": "shared",
    "spills": "shared", "atomics": "shared", "small_grid": "launch", "tail": "launch", "imbalance": "launch",
    "tensor_cores_unused": "pipes", "compute_peak": "pipes", "fp64": "pipes", "instruction_bound": "pipes",
    "healthy": "pipes",
}  # fmt: skip
_SCALED = {
    "ns": ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")),
    "byte": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")),
    "hz": ((1e9, "GHz"), (1e6, "MHz")),
}
"""Units that ncu scales too; two decimals, as it prints them."""
_TREE = (
    Column("question", "question", key=True),
    Column("value", "value", aligned="right"),
    Column("answer", "answer"),
    Column("metric", "metric", priority=3),
)


def report(dive: Dive, *, verbose: bool = False) -> Report:
    """The whole answer: a summary of all kernels if there are several, then each one."""
    sections: list[Section] = []
    if dive.health:
        sections.append(Section("health", "Health", (health_notes(dive.health),)))
    if len(dive.found) > 1:
        sections.append(Section("kernels", "Kernels", (summary(dive.found),), is_lead=True))
    chosen = _shown(dive.found, verbose)
    for one in chosen:
        sections.append(Section(f"kernel_{one.kernel.launch}", title(one), tuple(explained(one, verbose))))
    hidden = len(dive.found) - len(chosen)
    if hidden:
        text = f"{several(hidden, 'more launch', 'more launches')}, with less time to recover: -v shows them."
        sections.append(Section("hidden", "Not shown", (Text(text, "quiet"),)))
    sections.append(next_section(_next(dive, verbose)))
    device = next((one.kernel.device for one in dive.found if one.kernel.device), "")
    parts = [dive.path, device, several(len(dive.found), "kernel")]
    return Report(" · ".join(part for part in parts if part), tuple(sections))


def _shown(found: Sequence[KernelDive], verbose: bool) -> list[KernelDive]:
    """All launches if asked for; else one of each kernel with the same geometry, the most time to recover first."""
    if verbose:
        return list(found)
    unique: dict[tuple[object, ...], KernelDive] = {}
    for one in sorted(found, key=_recoverable_ns, reverse=True):
        unique.setdefault((one.kernel.name, one.kernel.grid, one.kernel.block, one.reason), one)
    return list(unique.values())[:SHOWN_KERNELS]


def _recoverable_ns(one: KernelDive) -> float:
    return (one.kernel.duration_ns or 0.0) * (1 - 1 / one.gain.expected)


def summary(found: Sequence[KernelDive]) -> Table:
    """One row per kernel."""
    columns = (
        Column("launch", "#", "count", priority=2),
        Column("kernel", "kernel", key=True),
        Column("duration_ns", "time", "ns"),
        Column("bound", "bound"),
        Column("limiter", "limited by", priority=2),
        Column("limiter_share", "busy", "share", priority=2),
        Column("reason", "reason"),
        Column("gain", "gain", "gain"),
        Column("step", "step", "gain", priority=2),
    )
    rows = tuple(
        (
            one.kernel.launch,
            shorten(one.kernel.function, MAX_NAME),
            one.kernel.duration_ns,
            one.bound,
            one.limiter,
            None if one.limiter_pct is None else one.limiter_pct / 100,
            one.reason,
            one.gain.expected if one.reason != NOT_KNOWN else None,
            None if one.step is None else one.step.gain.expected,
        )
        for one in found
    )
    return Table(columns, rows).without_empty("step")


def title(one: KernelDive) -> str:
    """The kernel, its time and geometry."""
    kernel = one.kernel
    parts = [f"{kernel.launch}: {shorten(kernel.name, 2 * MAX_NAME)}"]
    if kernel.duration_ns is not None:
        parts.append(duration(kernel.duration_ns))
    if kernel.grid and kernel.block:
        parts.append(f"{'×'.join(map(str, kernel.grid))} blocks of {'×'.join(map(str, kernel.block))}")
    return " · ".join(parts)


def reason(one: KernelDive) -> str:
    """Why it is slow, in a sentence."""
    return f"{one.reason}: {_sentence(one.sentence)}"


def main_facts(one: KernelDive) -> list[Fact]:
    """What bounds it, what can be gained, and what to change."""
    facts = [Fact("bound", _bound(one))] if one.limiter else []
    if one.reason != NOT_KNOWN:
        facts.append(Fact("gain", f"{_range(one.gain)} of the kernel; at most {speedup(one.cap)}"))
    if one.step is not None:
        facts.append(Fact("step", _step(one)))
    elif one.step_note:
        facts.append(Fact("step", one.step_note))
    return [*facts, Fact("change", one.how)]


def explained(one: KernelDive, verbose: bool) -> Iterator[Content]:
    """The reason, the facts behind it, and the questions of the tree."""
    yield Text(reason(one), "strong")
    facts = main_facts(one)
    facts += [Fact("hot line", _hot(hot)) for hot in one.hot_lines[: None if verbose else 1]]
    facts += [
        Fact("also", f"{other.reason}: {_sentence(other.sentence)} ({speedup(other.gain.expected)})")
        for other in one.also
    ]
    if one.missing and (verbose or one.reason == NOT_KNOWN):
        facts.append(Fact("not recorded", f"{', '.join(one.missing)}: ncu --set full has these sections"))
    yield Facts(tuple(facts))
    wanted = {*SHOWN_BRANCHES, EVIDENCE.get(one.reason, "")}
    for branch in one.tree:
        if verbose or branch.name in wanted:
            yield _branch(branch, verbose)
    if verbose and one.roofline:
        yield _levels(one.roofline)


def _sentence(text: str) -> str:
    return text[:1].lower() + text[1:] if not text[:2].isupper() else text


def _bound(one: KernelDive) -> str:
    busy = "" if one.limiter_pct is None else f", {one.limiter_pct:.2f} % of its peak"
    words = {"latency": "latency: no unit is busy", "compute": "compute", "memory": "memory"}
    return f"{words.get(one.bound, one.bound)}; busiest unit: {one.limiter}{busy}"


def _range(gain: Estimate) -> str:
    if gain.high < 1.005:
        return "none"
    return f"{speedup(gain.expected)} (range {gain.speedups})"


def _step(one: KernelDive) -> str:
    assert one.step is not None
    step = one.step
    return (
        f"{duration(step.old_step_ns.expected)} → {duration(step.new_step_ns.expected)}, {_range(step.gain)}; "
        f"{several(step.launches, 'launch', 'launches')} a step"
    )


def _hot(hot: HotLine) -> str:
    text = f" {shorten(hot.text, MAX_NAME)}" if hot.text else ""
    return f"{hot.file.rpartition('/')[2]}:{hot.line}{text} — {100 * hot.share:.0f} % of the samples, {hot.stall}"


def _branch(branch: Branch, verbose: bool) -> Table:
    columns = (Column("question", branch.title, key=True), *_TREE[1 : None if verbose else -1])
    rows = (((node.question, shown(node), node.answer, node.metric)) for node in branch.nodes)
    return Table(columns, tuple(row[: len(columns)] for row in rows))


def shown(node: Node) -> str:
    """A node's value as ncu prints it: two decimals, thousands with commas."""
    if node.value is None:
        return "–"
    for unit, steps in _SCALED.items():
        if node.unit == unit:
            factor, word = next(step for step in steps if abs(node.value) >= step[0] or step is steps[-1])
            return f"{node.value / factor:,.2f} {word}"
    unit = {"": "", "%": " %"}.get(node.unit, f" {node.unit}")
    number = f"{node.value:,.0f}" if float(node.value).is_integer() and node.unit != "%" else f"{node.value:,.2f}"
    return number + unit


def _levels(levels: Sequence[RooflineLevel]) -> Table:
    columns = (
        Column("level", "Roofline", key=True),
        Column("bytes", "moved", "bytes"),
        Column("flops_per_byte", "FLOP/B", "number"),
        Column("share", "of peak", "share"),
    )
    rows = tuple(
        (level.name, level.bytes_moved, _intensity(level.flops_per_byte), level.share_of_peak) for level in levels
    )
    return Table(columns, rows)


def _intensity(flops_per_byte: float | None) -> str | None:
    return None if flops_per_byte is None else f"{flops_per_byte:,.3g}"


def _next(dive: Dive, verbose: bool) -> Iterator[Command]:
    reports = shlex.join(dive.path.split(", "))
    if not verbose:
        yield Command(f"warpline dive -v {reports}", "every question of the tree")
    if any(one.gain.expected > 1.1 for one in dive.found):
        first = shlex.quote(dive.path.partition(", ")[0])
        yield Command(f"warpline dive --compare {first} AFTER.ncu-rep", "check the change after you made it")
