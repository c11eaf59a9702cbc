"""Where the time goes, as a picture: a bar for each device whose parts sum to its window."""

from __future__ import annotations

from warpline.findings.diagnosis import Diagnosis
from warpline.reports.svg import BUSY_COLOURS, IDLE_COLOURS, document, label, legend, words
from warpline.units import duration, share

WIDTH, MARGIN, BAR_HEIGHT = 960, 24, 26


def time_picture(diagnosis: Diagnosis) -> str:
    """The picture as SVG."""
    name = diagnosis.trace.path.name
    title = " · ".join(filter(None, (name, diagnosis.device_name)))
    parts = [label(MARGIN, 30, title, "title")]
    y, said = 44.0, []
    for device, gaps in zip(diagnosis.devices, diagnosis.gaps, strict=True):
        busy = {part: int(getattr(device, f"{part}_ns")) for part in BUSY_COLOURS}
        idle = dict(sorted(gaps.totals().items(), key=lambda item: -item[1]))
        sentence = (
            f"GPU {device.device}: {duration(device.window_ns)}, busy {share(device.busy_ns, device.window_ns)}, "
            f"idle {share(device.idle_ns, device.window_ns)}"
        )
        said.append(sentence)
        parts.append(label(MARGIN, y + 10, sentence))
        y += 20
        drawn = [(part, time_ns, BUSY_COLOURS[part]) for part, time_ns in busy.items() if time_ns]
        drawn += [(f"idle: {cause}", time_ns, IDLE_COLOURS[cause]) for cause, time_ns in idle.items() if time_ns]
        parts += _bar(drawn, device.window_ns, y)
        entries = [(f"{words(part)} {share(time_ns, device.window_ns)}", colour) for part, time_ns, colour in drawn]
        more, y = legend(MARGIN, y + BAR_HEIGHT + 22, WIDTH - 2 * MARGIN, entries)
        parts += more
        y += 12
    if not diagnosis.devices:
        said.append("The trace has no GPU activity.")
        parts.append(label(MARGIN, y + 14, said[0]))
        y += 34
    return document(WIDTH, y, f"Where the time goes: {title}", " ".join(said), parts)


def _bar(parts: list[tuple[str, int, str]], whole_ns: int, y: float) -> list[str]:
    drawn, before = [], 0
    scale = (WIDTH - 2 * MARGIN) / max(whole_ns, 1)
    for name, time_ns, colour in parts:
        x, width = MARGIN + before * scale, time_ns * scale
        drawn.append(
            f'<rect x="{x:.2f}" y="{y:g}" width="{width:.2f}" height="{BAR_HEIGHT}" fill="{colour}">'
            f"<title>{words(name)}: {duration(time_ns)}, {share(time_ns, whole_ns)}</title></rect>"
        )
        before += time_ns
    return drawn
