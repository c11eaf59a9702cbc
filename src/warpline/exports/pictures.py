"""Pictures of a diagnosis, as SVG and as PNG: one step of the program, and where the time goes.

PNG, for places that take no SVG, is drawn by resvg, an optional package, in light colours.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.util import find_spec

import numpy as np
import polars as pl
from msgspec import Struct

from warpline.analyses.breakdown import activity
from warpline.errors import WarplineError
from warpline.exports.timeline import Timeline, Track
from warpline.exports.tracks import ANSWER, timeline
from warpline.findings.diagnosis import Diagnosis
from warpline.intervals import union
from warpline.reports.svg import BUSY_COLOURS, IDLE_COLOURS, STYLE, document, fitted, label, legend, words
from warpline.trace.arrays import Bools, integers
from warpline.trace.trace import Window
from warpline.units import duration, share

WIDTH, GUTTER, RIGHT, TOP = 1200, 150, 16, 70
ROW, BAR_HEIGHT = 20, 15
SHOWN_TABLES = {"ranges": "var(--range)", "ops": "var(--ops)", "api": "var(--api)", "gpu": "", "idle": ""}
MOST_THREADS, MOST_STREAMS, MOST_DEPTH = 3, 6, 3
MERGED_PX = 0.2
"""Bars of one colour that are closer than this are drawn as one."""
TICKS = 8
TIME_WIDTH, MARGIN, TIME_BAR = 960, 24, 26
PACKAGE, INSTALL = "resvg_py", "pip install 'warpline[png]', or write .svg"
SCALE = 2
"""Pixels per unit of the picture, so that small text stays sharp on dense screens."""
DARK = "@media"
"""The rules from here on are for dark pages."""
_VARIABLE = re.compile(r"--([a-z]+): (#[0-9a-f]{6})")
_STYLED = re.compile(r"var\(--([a-z]+)\)")
_ATTRIBUTE = re.compile(r'"var\(--([a-z]+)\)"')
_LETTER = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 20 20"><text y="15">{}</text></svg>'


class _Row(Struct, frozen=True):
    """A line of the picture."""

    name: str
    track: Track
    bars: pl.DataFrame
    """Those within the window."""


def step_picture(diagnosis: Diagnosis, span_ns: int | None = None) -> str:
    """The picture as SVG: of the chosen steps, else of the step of median length, else of the whole recording.

    With `span_ns`, so much time fills the width, so that two pictures have the same scale.
    """
    window, what = drawn_window(diagnosis)
    span = max(window.length_ns, span_ns or 0, 1)
    whole = timeline(diagnosis)
    title = " · ".join(filter(None, (diagnosis.trace.file.name, what, diagnosis.device_name)))
    head, rows, y = [label(12, 28, title, "title"), *_axis(span)], list[str](), float(TOP)
    groups = list(_groups(whole, window))
    for group, shown in groups:
        rows.append(label(12, y + 12, fitted(group, GUTTER * 1.9), ""))
        y += ROW
        for row in shown:
            rows.append(label(24, y + 12, row.name, "dim"))
            rows += _bars(row, window, span, y)
            y += ROW
        rows.append(f'<line class="rule" x1="12" x2="{WIDTH - RIGHT}" y1="{y + 2:g}" y2="{y + 2:g}"/>')
        y += 8
    head.append(f'<path class="rule" fill="none" stroke-dasharray="2 3" d="{_grid(span, TOP - 8, y - 8)}"/>')
    entries, y = legend(12, y + 18, WIDTH - 24, _legend([row for _, shown in groups for row in shown]))
    return document(WIDTH, y, title, _sentence(diagnosis, window), [*head, *rows, *entries])


def drawn_window(diagnosis: Diagnosis) -> tuple[Window, str]:
    """The part of the recording that is drawn, and what it is."""
    steps = diagnosis.steps
    if diagnosis.trace.chosen_steps is not None or not len(steps):
        window = diagnosis.trace.window
        return window, f"{duration(window.length_ns)} recorded"
    lengths = integers(steps["length_ns"])
    middle = int(np.argsort(lengths, kind="stable")[len(lengths) // 2])
    start = int(steps["start_ns"][middle])
    return Window(start, start + int(lengths[middle])), f"step {middle} ({duration(int(lengths[middle]))} recorded)"


def _groups(whole: Timeline, window: Window) -> Iterator[tuple[str, list[_Row]]]:
    groups: dict[str, list[_Row]] = {}
    for track in whole.tracks:
        if track.table not in SHOWN_TABLES or track.group == ANSWER:
            continue
        starts, ends = integers(track.bars["start_ns"]), integers(track.bars["end_ns"])
        inside = (ends > window.start_ns) & (starts < window.end_ns)
        if inside.any():
            groups.setdefault(track.group, []).extend(_rows(track, _chosen(track.bars, inside)))
    threads = 0
    for group, rows in groups.items():
        is_thread = all(row.track.table not in {"gpu", "idle"} for row in rows)
        threads += is_thread
        if is_thread and threads > MOST_THREADS:
            continue
        yield group, rows if is_thread else _first_streams(rows)


def _first_streams(rows: list[_Row]) -> list[_Row]:
    streams = sorted((row for row in rows if row.track.table == "gpu"), key=lambda row: -len(row.bars))[:MOST_STREAMS]
    return [row for row in rows if row.track.table == "idle"] + [
        row for row in rows if any(row is one for one in streams)
    ]


def _rows(track: Track, inside: pl.DataFrame) -> Iterator[_Row]:
    """The outermost bars on one line, those within them on the next, up to `MOST_DEPTH`."""
    depths = _depths(inside)
    for depth in range(min(int(depths.max()) + 1, MOST_DEPTH if track.table in {"ranges", "ops"} else 1)):
        yield _Row(track.name if depth == 0 else "", track, _chosen(inside, depths == depth))


def _chosen(bars: pl.DataFrame, wanted: Bools) -> pl.DataFrame:
    return bars if wanted.all() else bars[np.flatnonzero(wanted)]


def _depths(bars: pl.DataFrame) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    depths = np.zeros(len(bars), np.int64)
    open_ends: list[int] = []
    starts, ends = integers(bars["start_ns"]).tolist(), integers(bars["end_ns"]).tolist()
    for place, (start, end) in enumerate(zip(starts, ends, strict=True)):
        while open_ends and open_ends[-1] <= start:
            open_ends.pop()
        depths[place] = len(open_ends)
        open_ends.append(end)
    return depths


def _bars(row: _Row, window: Window, span_ns: int, y: float) -> Iterator[str]:
    scale = (WIDTH - GUTTER - RIGHT) / span_ns
    merged_ns = int(MERGED_PX / scale)
    for colour, bars in _coloured(row):
        starts = np.clip(integers(bars["start_ns"]), window.start_ns, window.end_ns)
        ends = np.clip(integers(bars["end_ns"]), window.start_ns, window.end_ns)
        spans = union(starts, ends + merged_ns)
        lefts = GUTTER + (spans.starts - window.start_ns) * scale
        widths = (spans.ends - merged_ns - spans.starts) * scale
        path = "".join(
            f"M{left:.2f} {y:g}h{width:.2f}v{BAR_HEIGHT}h{-width:.2f}z"
            for left, width in zip(lefts.tolist(), widths.tolist(), strict=True)
        )
        yield f'<path fill="{colour}" d="{path}"/>'
        for start, end, name in zip(starts.tolist(), ends.tolist(), bars["name"].to_list(), strict=True):
            shown = fitted(words(name) if row.track.table == "idle" else name, (end - start) * scale - 6)
            if shown:
                yield label(GUTTER + (start - window.start_ns) * scale + 3, y + 11.5, shown, "on")


def _coloured(row: _Row) -> Iterator[tuple[str, pl.DataFrame]]:
    """The bars of a line by colour."""
    if row.track.table == "idle":
        for (cause,), bars in sorted(row.bars.group_by("name"), key=lambda item: str(item[0])):
            yield IDLE_COLOURS[str(cause)], bars
    elif row.track.table == "gpu":
        yield from ((BUSY_COLOURS[kind], bars) for kind, bars in _by_activity(row.bars).items())
    else:
        yield SHOWN_TABLES[row.track.table], row.bars


def _by_activity(bars: pl.DataFrame) -> dict[str, pl.DataFrame]:
    known = {(kind, name): activity(kind, name) for kind, name in bars.select("kind", "name").unique().iter_rows()}
    kinds = pl.Series([known[pair] for pair in bars.select("kind", "name").iter_rows()])
    return {kind: bars.filter(kinds == kind) for kind in BUSY_COLOURS if (kinds == kind).any()}


def _axis(span_ns: int) -> Iterator[str]:
    for at, time_ns in _ticks(span_ns):
        yield label(at, TOP - 16, duration(time_ns) if time_ns else "0", "dim", "middle")


def _grid(span_ns: int, top: float, bottom: float) -> str:
    return "".join(f"M{at:.1f} {top:g}V{bottom:g}" for at, _ in _ticks(span_ns))


def _ticks(span_ns: int) -> Iterator[tuple[float, int]]:
    """Round times from the begin of the window, at most about `TICKS`."""
    least = max(span_ns / TICKS, 1)
    power = 10 ** int(np.floor(np.log10(least)))
    step = int(next(power * factor for factor in (1, 2, 5, 10) if power * factor >= least))
    for time_ns in range(0, span_ns + 1, max(step, 1)):
        yield round(GUTTER + time_ns / span_ns * (WIDTH - GUTTER - RIGHT), 1), time_ns


def _legend(rows: list[_Row]) -> list[tuple[str, str]]:
    """The colours in use."""
    found: dict[str, str] = {}
    for row in rows:
        if row.track.table == "gpu":
            found |= {kind: BUSY_COLOURS[kind] for kind in _by_activity(row.bars)}
        elif row.track.table == "idle":
            found |= {f"idle: {words(cause)}": IDLE_COLOURS[cause] for cause in row.bars["name"].unique().to_list()}
    order = [*BUSY_COLOURS, *(f"idle: {words(cause)}" for cause in IDLE_COLOURS)]
    return [(name, found[name]) for name in order if name in found]


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
