"""The dispatch path as sections: the ops in a table, and one op as a column of layers with its sum, or as a picture."""

from __future__ import annotations

from typing import Any

import polars as pl
from msgspec import Struct

from warpline.analyses.user_frames import site_of
from warpline.estimate import Estimate
from warpline.kernels import identify
from warpline.replay.bare_path import CPU_LAYERS
from warpline.reports.diagnosis_tables import compact_name
from warpline.reports.sections import Column, Report, Section, Table, Text, Value
from warpline.reports.svg import LETTER, document, xml
from warpline.reports.text import cut
from warpline.units import duration

LONGEST_KERNEL = 48
_COLUMNS = (
    Column("per_step", "per step", "count"),
    Column("bare_before_ns", "before kernel", "ns"),
    Column("kernel_ns", "kernels", "ns"),
    Column("launches", "launches", "count", priority=3),
    Column("hidden_share", "hidden", "share", priority=2),
    Column("bare_python_ns", "Python", "ns", priority=4),
    Column("bare_dispatcher_ns", "dispatcher", "ns", priority=4),
    Column("bare_backend_ns", "backend", "ns", priority=4),
    Column("bare_api_ns", "API", "ns", priority=4),
    Column("name", "op", key=True),
)
_WHERE = Column("where", "where", priority=3)
_TITLES = {
    "python": "Python",
    "boundary": "boundary",
    "native": "C++ before it",
    "autograd": "autograd",
    "dispatcher": "dispatcher",
    "backend": "backend",
    "api": "CUDA call",
}
_MEANINGS = {
    "python": "your line and nn.Module",
    "boundary": "arguments to C++, and the result back",
    "native": "the op around it, or autograd",
    "autograd": "the engine and backward nodes",
    "dispatcher": "finds the code by device and dtype",
}

_UNITS = {True: ", on tensor cores", False: ", on CUDA cores", None: ""}


class PathLayer(Struct, frozen=True):
    """One layer of an op's path."""

    title: str
    meaning: str
    recorded_ns: float
    bare_ns: float
    """Without the profiler's cost; what the device does has none."""
    is_device: bool = False


def path_report(table: pl.DataFrame, title: str, *, has_steps: bool = True) -> Report:
    """The ops in a table, where there are several, and the costliest one as a column of layers."""
    shown = table.rows(named=True)
    sections = [_ops(shown, has_steps)] if len(shown) != 1 else []
    return Report(title, (*sections, *([_ladder(costliest(shown), has_steps)] if shown else [])))


def costliest(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The first op that launches something, else the first."""
    return next((row for row in rows if row["launches"]), rows[0])


def path_layers(row: dict[str, Any]) -> list[PathLayer]:
    """The layers that an op passes, in order."""
    decoded = identify(row["kernel"]) if row["kernel"] else None
    meanings = {**_MEANINGS, "backend": _backend(decoded.library if decoded else None), "api": _call(row)}
    layers = [
        PathLayer(_TITLES[name], meanings[name], row[f"{name}_ns"], row[f"bare_{name}_ns"])
        for name in CPU_LAYERS
        if row[f"{name}_ns"]
    ]
    if row["queue_ns"] is not None:
        layers.append(PathLayer("queue", "waits in the stream", row["queue_ns"], row["queue_ns"], is_device=True))
        unit = _UNITS[decoded.tensor_core] if decoded else ""
        longest = "" if row["depth"] or row["launches"] == 1 else "the longest: "
        runs = f"{longest}{kernel_text(row['kernel'])}{unit}" if row["kernel"] else "a copy or memset"
        layers.append(PathLayer("kernel", runs, row["kernel_ns"], row["kernel_ns"], is_device=True))
    return layers


def _backend(library: str | None) -> str:
    return f"{library} prepares the kernel; autograd records the op" if library else "prepares the CUDA call"


def _call(row: dict[str, Any]) -> str:
    if not row["launches"]:
        return "launches nothing"
    return "puts the kernel into a stream" if row["kernel"] else "starts the copy or memset, and may wait for it"


def _ladder(row: dict[str, Any], has_steps: bool) -> Section:
    columns = (
        Column("bare_ns", "time", "ns"),
        Column("recorded_ns", "recorded", "ns", priority=2),
        Column("layer", "layer", key=True),
        Column("meaning", "what happens there"),
    )
    layers = path_layers(row)
    spread = Estimate(row["bare_before_low_ns"], row["bare_before_ns"], row["bare_before_high_ns"])
    each = f", {duration(spread.expected / row['launches'])} a launch" if row["launches"] > 1 else ""
    total: tuple[Value, ...] = (spread.expected, row["before_ns"], "before the kernel", f"CPU time of one op{each}")
    lines: list[tuple[Value, ...]] = []
    for layer in layers:
        if layer.is_device and total not in lines:
            lines.append(total)
        lines.append((layer.bare_ns, layer.recorded_ns, layer.title, layer.meaning))
    if total not in lines:
        lines.append(total)
    note = (
        "Means per op; time: without what recording costs (recorded: with it)"
        + (
            f", before the kernel between {duration(spread.low)} and {duration(spread.high)}"
            if spread.low < spread.high
            else ""
        )
        + ". Time before the kernel that passes while the GPU is busy costs nothing: "
        + f"{100 * row['hidden_share']:.0f} % of it here."
    )
    calls = [f"{row['launches']:.3g} kernels"] * (row["launches"] > 1) + [f"{row['ops']:.3g} ops"] * (row["ops"] > 1)
    several = f", {' and '.join(calls)} each" if calls else ""
    number = f"{row['per_step']:.3g} a step" if has_steps else f"{row['count']:,} in all"
    title = f"{row['name'] if row['depth'] else kernel_text(row['name'])}, {number}{several}"
    return Section("layers", title, (Table(columns, tuple(lines)), Text(note, "quiet")))


def _ops(shown: list[dict[str, Any]], has_steps: bool) -> Section:
    count = _COLUMNS[0] if has_steps else Column("count", "count", "count")
    columns = (count, *_COLUMNS[1:])
    rows = tuple((*(row[column.name] for column in columns[:-1]), _named(row), _place(row)) for row in shown)
    note = (
        "Means per op, without what recording costs. before kernel: Python, framework and CUDA call; hidden: share of "
        "its CPU time while the GPU is busy; (no op): a kernel that no op launched. --op NAME shows the layers of one."
    )
    table = Table((*columns, _WHERE), rows).without_empty(_WHERE.name)
    return Section("ops", "Dispatch path", (table, Text(note, "quiet")))


def _named(row: dict[str, Any]) -> str:
    if not row["depth"]:
        is_kernel = row["name"] == row["kernel"]
        return f"{kernel_text(row['name'])} (no op)" if is_kernel else f"{row['name']} → {row['launches']:.3g} kernels"
    kernel = f" → {kernel_text(row['kernel'])}" if row["kernel"] else ""
    return f"{row['name']}{kernel}"


def _place(row: dict[str, Any]) -> str | None:
    site = site_of(row)
    return site.with_function if site else None


def kernel_text(name: str) -> str:
    """A kernel's name, short enough for a table."""
    return cut(compact_name(name), LONGEST_KERNEL)


WIDTH, MARGIN, GAP, WIDEST = 860, 24, 16, 260.0
BOX_HEIGHT, CPU_TOP, GPU_TOP, SCALE_TOP, HEIGHT = 56, 64, 160, 262, 330
COLOURS = {True: "var(--blue)", False: "var(--ops)"}
SHADES = ("var(--ops)", "var(--api)", "var(--range)")


def path_svg(row: dict[str, Any], title: str) -> str:
    """The layers of an op from left to right, each with its time without the profiler."""
    layers = path_layers(row)
    cpu, gpu = ([layer for layer in layers if layer.is_device is device] for device in (False, True))
    before = f"before the kernel: {duration(row['bare_before_ns'])} of CPU time"
    name = row["name"] if row["depth"] else kernel_text(row["name"])
    parts = [
        f'<text class="title" x="{MARGIN}" y="28">{xml(name)}</text>',
        f'<text class="dim" x="{MARGIN}" y="48">CPU, {xml(before)}</text>',
        *_boxes(cpu, CPU_TOP),
        f'<text class="dim" x="{MARGIN}" y="{GPU_TOP - 12}">GPU, while the CPU goes on</text>',
        *_boxes(gpu, GPU_TOP),
        f'<text class="dim" x="{MARGIN}" y="{SCALE_TOP - 12}">CPU time to scale</text>',
        *_to_scale(cpu, row["bare_before_ns"]),
    ]
    if cpu and gpu:
        start, end = (MARGIN + (len(cpu) - 0.5) * _size(cpu) + (len(cpu) - 1) * GAP, MARGIN + _size(gpu) - GAP)
        bend = CPU_TOP + BOX_HEIGHT + GAP
        line = f"M{start:g} {CPU_TOP + BOX_HEIGHT} V{bend} H{end:g} V{GPU_TOP} m-3 -5 l3 5 l3 -5"
        parts.append(f'<path class="rule" fill="none" d="{line}"/>')
    return document(WIDTH, HEIGHT, title, f"{name}: {before}", parts)


def _size(layers: list[PathLayer]) -> float:
    return min((WIDTH - 2 * MARGIN - GAP * (len(layers) - 1)) / max(len(layers), 1), WIDEST)


def _boxes(layers: list[PathLayer], top: int) -> list[str]:
    size, parts = _size(layers), []
    room = int((size - 16) / (LETTER * 10 / 12))
    for place, layer in enumerate(layers):
        left = MARGIN + place * (size + GAP)
        if place:
            parts.append(_arrow(left - GAP, left, top + BOX_HEIGHT / 2))
        parts += [
            f'<rect x="{left:g}" y="{top}" width="{size:g}" height="{BOX_HEIGHT}" rx="5" '
            f'fill="{COLOURS[layer.is_device]}" fill-opacity="0.35"><title>{xml(layer.meaning)}</title></rect>',
            f'<text class="bold" x="{left + 8:g}" y="{top + 18}">{xml(layer.title)}</text>',
            f'<text x="{left + 8:g}" y="{top + 34}">{xml(duration(layer.bare_ns))}</text>',
            f'<text class="small dim" x="{left + 8:g}" y="{top + 48}">{xml(cut(layer.meaning, room))}</text>',
        ]
    return parts


def _arrow(start: float, end: float, height: float) -> str:
    head = f"M{end - 5:g} {height - 3:g} L{end:g} {height:g} L{end - 5:g} {height + 3:g}"
    return f'<path class="rule" fill="none" d="M{start:g} {height:g} L{end:g} {height:g} {head}"/>'


def _to_scale(layers: list[PathLayer], total_ns: float) -> list[str]:
    scale, left, parts = (WIDTH - 2 * MARGIN) / max(total_ns, 1.0), float(MARGIN), []
    for place, layer in enumerate(layers):
        size = layer.bare_ns * scale
        label = layer.title if len(layer.title) * LETTER < size else ""
        parts += [
            f'<rect x="{left:g}" y="{SCALE_TOP}" width="{size:g}" height="26" fill="{SHADES[place % len(SHADES)]}">'
            f"<title>{xml(layer.title)}: {xml(duration(layer.bare_ns))}</title></rect>",
            f'<text class="on" x="{left + 4:g}" y="{SCALE_TOP + 17}">{xml(label)}</text>',
        ]
        left += size
    below = SCALE_TOP + 44
    parts.append(f'<text class="dim" x="{MARGIN}" y="{below}">0</text>')
    parts.append(f'<text class="dim" x="{WIDTH - MARGIN}" y="{below}" text-anchor="end">{duration(total_ns)}</text>')
    return parts
