"""The path of one op as a picture: a row of boxes for the CPU, one for the GPU, and the CPU time to scale."""

from __future__ import annotations

from typing import Any

from warpline.reports.path import PathLayer, kernel_text, path_layers
from warpline.reports.svg import LETTER, document, xml
from warpline.units import duration

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
        note = layer.meaning if len(layer.meaning) <= room else layer.meaning[: room - 1] + "…"
        parts += [
            f'<rect x="{left:g}" y="{top}" width="{size:g}" height="{BOX_HEIGHT}" rx="5" '
            f'fill="{COLOURS[layer.is_device]}" fill-opacity="0.35"><title>{xml(layer.meaning)}</title></rect>',
            f'<text class="bold" x="{left + 8:g}" y="{top + 18}">{xml(layer.title)}</text>',
            f'<text x="{left + 8:g}" y="{top + 34}">{xml(duration(layer.bare_ns))}</text>',
            f'<text class="small dim" x="{left + 8:g}" y="{top + 48}">{xml(note)}</text>',
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
