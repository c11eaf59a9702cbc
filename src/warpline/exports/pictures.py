"""Pictures of a diagnosis, as SVG and as PNG: one step of the program, and where the time goes.

PNG, for places that take no SVG, is drawn by resvg, an optional package, in light colours.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import groupby

import numpy as np
from msgspec import Struct

from warpline.analyses.breakdown import PRIORITY, activities_of
from warpline.analyses.idle.gaps import CAUSES
from warpline.analyses.stacks import thread_title
from warpline.errors import WarplineError
from warpline.exports.timeline import device_title
from warpline.findings.diagnosis import Diagnosis
from warpline.intervals import union
from warpline.reports.svg import BUSY_COLOURS, IDLE_COLOURS, STYLE, document, fitted, label, legend, stroke, words
from warpline.timeline.lanes import pack
from warpline.timeline.tracks import BarTrack, device_tracks, thread_tracks
from warpline.trace.arrays import Int64s, Texts
from warpline.trace.cut import cut_to_steps
from warpline.trace.trace import Trace, Window
from warpline.units import duration, share

WIDTH, GUTTER, RIGHT, TOP = 1200, 150, 16, 70
ROW, BAR_HEIGHT = 20, 15
COLOURS = {
    "ranges": "var(--range)",
    "ops": "var(--ops)",
    "api": "var(--api)",
    **BUSY_COLOURS,
    **{f"idle: {words(cause)}": colour for cause, colour in IDLE_COLOURS.items()},
}
NOT_EXPLAINED = {"ranges", "ops", "api"}
"""What needs no legend, because a line has only one kind of it."""
MOST_THREADS, MOST_STREAMS, MOST_DEPTH = 3, 6, 3
MERGED_PX = 0.2
"""Bars of one colour that are closer than this are drawn as one."""
TICKS = 8
TIME_WIDTH, MARGIN, TIME_BAR = 960, 24, 26
PACKAGE, INSTALL = "resvg_py", "pip install resvg-py, or write .svg"
SCALE = 2
"""Pixels per unit of the picture, so that small text stays sharp on dense screens."""
DARK = "@media"
"""The rules from here on are for dark pages."""
_VARIABLE = re.compile(r"--([a-z]+): (#[0-9a-f]{6})")
_STYLED = re.compile(r"var\(--([a-z]+)\)")
_ATTRIBUTE = re.compile(r'"var\(--([a-z]+)\)"')
_LETTER = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 20 20"><text y="15">{}</text></svg>'


class _PictureLine(Struct, frozen=True):
    """A line of the picture: bars within the window that follow each other."""

    name: str
    starts: Int64s
    ends: Int64s
    texts: list[str]
    meanings: Texts
    """Of each bar, the key of its colour."""


def step_picture(diagnosis: Diagnosis, span_ns: int | None = None) -> str:
    """The picture as SVG: of the chosen steps, else of the step of median length, else of the whole recording.

    With `span_ns`, so much time fills the width, so that two pictures have the same scale.
    """
    window, what = drawn_window(diagnosis)
    span = max(window.length_ns, span_ns or 0, 1)
    title = " · ".join(filter(None, (diagnosis.trace.file.name, what, diagnosis.device_name)))
    head, rows, y = [label(12, 28, title, "title"), *_axis(span)], list[str](), float(TOP)
    groups = [(title, lines) for title, lines in _groups(diagnosis, window) if lines]
    for group, lines in groups:
        rows.append(label(12, y + 12, fitted(group, GUTTER * 1.9), ""))
        y += ROW
        for line in lines:
            rows.append(label(24, y + 12, line.name, "dim"))
            rows += _bars(line, window, span, y)
            y += ROW
        rows.append(stroke(12, y + 2, WIDTH - RIGHT, y + 2))
        y += 8
    head.append(f'<path class="rule" fill="none" stroke-dasharray="2 3" d="{_grid(span, TOP - 8, y - 8)}"/>')
    used = {meaning for _, lines in groups for line in lines for meaning in line.meanings}
    explained = [(meaning, colour) for meaning, colour in COLOURS.items() if meaning in used - NOT_EXPLAINED]
    entries, y = legend(12, y + 18, WIDTH - 24, explained)
    return document(WIDTH, y, title, _sentence(diagnosis, window), [*head, *rows, *entries])


def drawn_window(diagnosis: Diagnosis) -> tuple[Window, str]:
    """The part of the recording that is drawn, and what it is."""
    steps = diagnosis.steps
    if diagnosis.trace.chosen_steps is not None or not len(steps):
        window = diagnosis.trace.window
        what = (
            "from the first to the last GPU operation" if diagnosis.trace.chosen_steps is None else "of selected steps"
        )
        return window, f"{duration(window.length_ns)} {what}"
    lengths = steps["length_ns"].to_numpy()
    middle = int(np.argsort(lengths, kind="stable")[len(lengths) // 2])
    start = int(steps["start_ns"][middle])
    return Window(start, start + int(lengths[middle])), f"step {middle} ({duration(int(lengths[middle]))} recorded)"


def _groups(diagnosis: Diagnosis, window: Window) -> Iterator[tuple[str, list[_PictureLine]]]:
    """Each device and the busiest threads, with their lines; those without a bar in the window have none."""
    trace = diagnosis.trace if diagnosis.trace.chosen_steps is None else cut_to_steps(diagnosis.trace)
    names, activities = trace.gpu.name.texts, _activities(trace)
    causes = {gaps.device: np.array(CAUSES, object)[gaps.spans.causes] for gaps in diagnosis.gaps}
    for device, tracks in groupby(device_tracks(trace, diagnosis.gaps), key=lambda track: track.device):
        idle, streams = list[_PictureLine](), list[_PictureLine]()
        for track in tracks:
            if track.kind == "idle" and device is not None:
                meanings = np.array([f"idle: {words(cause)}" for cause in causes[device]], object)
                idle += _lines(track, causes[device], meanings, window)
            elif track.kind == "gpu":
                streams += _lines(track, names, activities, window)
        busiest = sorted(streams, key=lambda line: -len(line.starts))[:MOST_STREAMS]
        yield device_title(trace, device), [*idle, *(line for line in streams if any(line is one for one in busiest))]
    tables = {"ranges": trace.ranges.name, "ops": trace.ops.name, "api": trace.api.name}
    threads = 0
    for thread, tracks in groupby(thread_tracks(trace), key=lambda track: track.thread):
        lines = [
            line
            for track in tracks
            if track.kind in tables and threads < MOST_THREADS
            for line in _lines(track, tables[track.kind].texts, np.full(len(tables[track.kind]), track.kind), window)
        ]
        threads += bool(lines)
        yield thread_title(trace, thread or 0), lines


def _activities(trace: Trace) -> Texts:
    """Of each row of `gpu`, its activity."""
    return np.array(PRIORITY, object)[activities_of(trace.gpu)]


def _lines(track: BarTrack, texts: Texts, meanings: Texts, window: Window) -> Iterator[_PictureLine]:
    """The outermost bars within the window on one line, those within them on the next, up to `MOST_DEPTH`."""
    inside = np.flatnonzero((track.ends > window.start_ns) & (track.starts < window.end_ns))
    lanes, depths = pack(track.starts[inside], track.ends[inside])
    for lane in range(int(lanes.max(initial=-1)) + 1):
        deepest = int(depths[lanes == lane].max())
        for depth in range(min(deepest + 1, MOST_DEPTH if track.kind in {"ranges", "ops"} else 1)):
            mine = inside[(lanes == lane) & (depths == depth)]
            title = track.label if lane == 0 else f"{track.label} ({lane + 1})"
            rows = track.rows[mine]
            shown = texts[rows].tolist(), meanings[rows]
            yield _PictureLine(title if depth == 0 else "", track.starts[mine], track.ends[mine], *shown)


def _bars(line: _PictureLine, window: Window, span_ns: int, y: float) -> Iterator[str]:
    scale = (WIDTH - GUTTER - RIGHT) / span_ns
    merged_ns = int(MERGED_PX / scale)
    starts, ends = (np.clip(times, window.start_ns, window.end_ns) for times in (line.starts, line.ends))
    for meaning, colour in COLOURS.items():
        mine = line.meanings == meaning
        if not mine.any():
            continue
        spans = union(starts[mine], ends[mine] + merged_ns)
        lefts = GUTTER + (spans.starts - window.start_ns) * scale
        widths = (spans.ends - merged_ns - spans.starts) * scale
        path = "".join(
            f"M{left:.2f} {y:g}h{width:.2f}v{BAR_HEIGHT}h{-width:.2f}z"
            for left, width in zip(lefts.tolist(), widths.tolist(), strict=True)
        )
        yield f'<path fill="{colour}" d="{path}"/>'
    for start, end, name in zip(starts.tolist(), ends.tolist(), line.texts, strict=True):
        shown = fitted(words(name) if name in IDLE_COLOURS else name, (end - start) * scale - 6)
        if shown:
            yield label(GUTTER + (start - window.start_ns) * scale + 3, y + 11.5, shown, "on")


def _axis(span_ns: int) -> Iterator[str]:
    for at, time_ns in _ticks(span_ns):
        yield label(at, TOP - 16, duration(time_ns) if time_ns else "0", "dim", "middle")


def _grid(span_ns: int, top: float, bottom: float) -> str:
    return "".join(f"M{at:.1f} {top:g}V{bottom:g}" for at, _ in _ticks(span_ns))


def _ticks(span_ns: int) -> Iterator[tuple[float, int]]:
    """Round times from the start of the window, at most about `TICKS`."""
    least = max(span_ns / TICKS, 1)
    power = 10 ** int(np.floor(np.log10(least)))
    step = int(next(power * factor for factor in (1, 2, 5, 10) if power * factor >= least))
    for time_ns in range(0, span_ns + 1, max(step, 1)):
        yield round(GUTTER + time_ns / span_ns * (WIDTH - GUTTER - RIGHT), 1), time_ns


def _sentence(diagnosis: Diagnosis, window: Window) -> str:
    verdict = diagnosis.verdict
    return f"{duration(window.length_ns)} of the recording. {verdict.sentence if verdict else ''}".strip()


def time_picture(diagnosis: Diagnosis) -> str:
    """The picture as SVG."""
    name = diagnosis.trace.file.name
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
        parts += _time_bar(drawn, device.window_ns, y)
        entries = [(f"{words(part)} {share(time_ns, device.window_ns)}", colour) for part, time_ns, colour in drawn]
        more, y = legend(MARGIN, y + TIME_BAR + 22, TIME_WIDTH - 2 * MARGIN, entries)
        parts += more
        y += 12
    if not diagnosis.devices:
        said.append("The trace has no GPU activity.")
        parts.append(label(MARGIN, y + 14, said[0]))
        y += 34
    return document(TIME_WIDTH, y, f"Where the time goes: {title}", " ".join(said), parts)


def _time_bar(parts: list[tuple[str, int, str]], whole_ns: int, y: float) -> list[str]:
    drawn, before = [], 0
    scale = (TIME_WIDTH - 2 * MARGIN) / max(whole_ns, 1)
    for name, time_ns, colour in parts:
        x, width = MARGIN + before * scale, time_ns * scale
        drawn.append(
            f'<rect x="{x:.2f}" y="{y:g}" width="{width:.2f}" height="{TIME_BAR}" fill="{colour}">'
            f"<title>{words(name)}: {duration(time_ns)}, {share(time_ns, whole_ns)}</title></rect>"
        )
        before += time_ns
    return drawn


def check_png() -> None:
    """Raise where no PNG can be drawn."""
    if find_spec(PACKAGE) is None:
        raise WarplineError("needs-png", "drawing a .png needs resvg-py", INSTALL)


def png(picture: str) -> bytes:
    """One of our SVG pictures as PNG."""
    check_png()
    from resvg_py import svg_to_bytes  # noqa: PLC0415 - optional

    if svg_to_bytes(svg_string=_LETTER.format("x")) == svg_to_bytes(svg_string=_LETTER.format("")):
        hint = "install one (Debian: apt install fonts-dejavu-core), or write .svg"
        raise WarplineError("no-font", "this machine has no font, so the picture would have no text", hint)
    return bytes(svg_to_bytes(svg_string=in_light_colours(picture), zoom=SCALE))


def in_light_colours(picture: str) -> str:
    """The picture without CSS variables and media queries, which resvg does not know. Texts are not touched: they have
    no plain quotation marks."""
    light = STYLE.partition(DARK)[0]
    colours = dict(_VARIABLE.findall(light))
    style = _STYLED.sub(lambda found: colours[found[1]], light)
    return _ATTRIBUTE.sub(lambda found: f'"{colours[found[1]]}"', picture.replace(STYLE, style, 1))
