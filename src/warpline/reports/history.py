"""A history as sections (the trend as a drawing, its levels, and the runs at which they changed) and as SVG."""

from __future__ import annotations

from warpline.compare.change_points import MIN_POINTS
from warpline.compare.history import NumberHistory
from warpline.compare.words import percent
from warpline.reports.sections import Column, Content, Figure, Report, Section, Table, Text
from warpline.reports.svg import document, label, stroke, xml
from warpline.units import several

COLUMNS_SHOWN, ROWS_SHOWN = 64, 9
LISTED = 10


def report(history: NumberHistory) -> Report:
    """The trend of one number."""
    lead: list[Content] = [Text(sentence(history), "strong")]
    if history.runs:
        lead.append(Figure(_drawing(history), f"{history.number}, one column a run, the newest on the right"))
    if history.left_out:
        device = f" on {history.device}" if history.device else ""
        left = several(history.left_out, "other run")
        lead.append(Text(f"The runs are of the same program{device}; left out: {left}.", "quiet"))
    sections = [Section("trend", "Trend", tuple(lead), is_lead=True)]
    if len(history.levels) > 1:
        sections.append(Section("levels", "Levels", (_levels(history),)))
    if history.runs:
        sections.append(Section("runs", "Last runs", (_runs(history),)))
    return Report(f"{history.name}: {several(len(history.runs), 'run')} of the gate", tuple(sections))


def sentence(history: NumberHistory) -> str:
    """What the history shows."""
    if not history.runs:
        return f"No run of the gate of {history.name} is recorded here."
    latest = f"{history.number} is {history.values[-1]:.4g}"
    if not history.enough:
        there = several(len(history.runs), "run")
        return f"{latest}. Whether its level changed is unknown: {there} so far, and {MIN_POINTS} are needed."
    if not history.changes:
        return f"{latest}, and its level has not changed over {several(len(history.runs), 'run')}."
    run, before, after = history.changes[-1]
    change = f" ({percent(after / before)})" if before else ""
    return f"{latest}. Its level last changed from {before:.4g} to {after:.4g}{change}, {_when(run.at, run.label)}."


def _when(at: str, label: str) -> str:
    return f"at {label} ({at[:16].replace('T', ' ')} UTC)" if label else f"on {at[:16].replace('T', ' ')} UTC"


def _drawing(history: NumberHistory) -> str:
    """Points as o, levels as lines, and the first run of a new level as a bar."""
    values = history.values[-COLUMNS_SHOWN:]
    offset = len(history.values) - len(values)
    middle = {place - offset: level.median for level in history.levels for place in range(level.start, level.stop)}
    low, high = min(values), max(values)
    reach = (high - low) or 1.0
    cells = [[" "] * len(values) for _ in range(ROWS_SHOWN)]
    starts = {level.start - offset for level in history.levels[1:]}

    def row_of(value: float) -> int:
        return round((high - min(max(value, low), high)) / reach * (ROWS_SHOWN - 1))

    for column, value in enumerate(values):
        if column in starts:
            for row in cells:
                row[column] = "¦"
        if column in middle:
            cells[row_of(middle[column])][column] = "─"
        cells[row_of(value)][column] = "o"
    labels = {0: f"{high:.4g}", ROWS_SHOWN - 1: f"{low:.4g}"}
    return "\n".join(f"{labels.get(place, ''):>10} {''.join(row)}".rstrip() for place, row in enumerate(cells))


def _levels(history: NumberHistory) -> Table:
    columns = (
        Column("at", "from", key=True),
        Column("label", "label"),
        Column("runs", "runs", "count"),
        Column("median", "median", "number"),
        Column("change", "change", aligned="right"),
    )
    before = [None, *(level.median for level in history.levels)]
    rows = tuple(
        (
            history.runs[level.start].at[:16].replace("T", " "),
            history.runs[level.start].label,
            level.stop - level.start,
            round(level.median, 6),
            percent(level.median / last) if last else None,
        )
        for level, last in zip(history.levels, before, strict=False)
    )
    return Table(columns, rows)


def _runs(history: NumberHistory) -> Table:
    columns = (
        Column("at", "at (UTC)", key=True),
        Column("label", "label"),
        Column("outcome", "outcome"),
        Column("value", history.number, "number"),
    )
    last = history.runs[-LISTED:]
    rows = tuple(
        (run.at[:19].replace("T", " "), run.label, run.outcome, run.numbers[history.number]) for run in reversed(last)
    )
    hidden = len(history.runs) - len(last)
    return Table(columns, rows, hidden, f"{several(hidden, 'older run')}; --json has all" if hidden else "")


WIDTH, HEIGHT = 840, 300
LEFT, RIGHT, TOP, BOTTOM = 76, 20, 44, 40
COLOURS = {
    "passed": "#2e7d32",
    "regression": "#c62828",
    "budget_exceeded": "#c62828",
    "inconclusive": "#8a6d00",
    "not_comparable": "#8a6d00",
}


def history_svg(history: NumberHistory) -> str:
    """The picture."""
    values = history.values
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    margin = (high - low) * 0.1 or abs(high) * 0.1 or 1.0
    low, high = low - margin, high + margin

    def x(place: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (place + 0.5) / max(len(values), 1)

    def y(value: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (high - value) / (high - low)

    title = f"{history.name}: {history.number} over {len(values)} runs"
    parts = [
        label(LEFT, 24, title, "title"),
        f'<path class="rule" fill="none" d="M{LEFT},{TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}"/>',
    ]
    for place in range(5):
        value = low + (high - low) * place / 4
        parts.append(label(LEFT - 8, y(value) + 4, f"{value:.4g}", "", "end"))
    for level, before in zip(history.levels, (None, *history.levels), strict=False):
        parts.append(stroke(x(level.start - 0.4), y(level.median), x(level.stop - 0.6), y(level.median), "level"))
        if before is None:
            continue
        border = x(level.start - 0.5)
        change = percent(level.median / before.median) if before.median else f"{level.median:.4g}"
        parts.append(stroke(border, TOP, border, HEIGHT - BOTTOM, "mark"))
        parts.append(label(border + 4, TOP - 6, f"{change} {history.runs[level.start].label}".strip()))
    for place, run in enumerate(history.runs):
        words = f"{run.at[:19]} {run.label} {run.outcome}: {values[place]:.6g}"
        parts.append(
            f'<circle cx="{x(place):.1f}" cy="{y(values[place]):.1f}" r="3.5" '
            f'fill="{COLOURS.get(run.outcome, "#777777")}"><title>{xml(words)}</title></circle>'
        )
    for place, anchor in ((0, "start"), (len(values) - 1, "end")):
        if values:
            parts.append(label(x(place), HEIGHT - 14, history.runs[place].at[:10], "", anchor))
    return document(WIDTH, HEIGHT, title, "A point for each run, a line for each level.", parts)
