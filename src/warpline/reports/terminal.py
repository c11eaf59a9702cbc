"""Sections for a terminal: lines that fit its width, in colour if supported, without trailing spaces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text as Styled

from warpline.reports.layout import Cells, lay_out, left_out_note
from warpline.reports.sections import (
    Bar,
    Commands,
    Content,
    Fact,
    Facts,
    Figure,
    Findings,
    Note,
    Notes,
    Report,
    Section,
    Severity,
    Table,
    Text,
    Tone,
    sanitised,
)
from warpline.reports.text import cells, wrap
from warpline.reports.values import shown

INDENT = "  "
BAR_ROOM = 60
MIN_WIDTH = 20
"""Minimum width: narrower terminals get lines of this width."""
TONES: dict[Tone, str] = {"plain": "", "strong": "bold yellow", "quiet": "bright_black", "advice": "green"}
MARKS: dict[Severity, tuple[str, str]] = {
    "error": ("✗", "red"),
    "warning": ("!", "yellow"),
    "unknown": ("?", "magenta"),
    "info": ("·", "cyan"),
    "ok": ("✓", "green"),
}
PART_COLOURS = {"compute": "green", "comm": "magenta", "copy": "yellow", "memset": "cyan", "idle": "bright_black"}


def render(report: Report, width: int) -> Styled:
    """The report as lines of styled text; control characters and markup in a file's text are escaped."""
    report, width = sanitised(report), max(width, MIN_WIDTH)
    lines = [*_wrapped(report.title, width, "bold blue", "")]
    for before, section in zip((None, *report.sections), report.sections, strict=False):
        # Health notes belong directly under the title, and sections without content directly under each other.
        is_doubt = before is None and section.is_lead and isinstance(section.content[0], Notes)
        is_listed = before is not None and not before.content and not section.content
        if lines and not is_doubt and not is_listed:
            lines.append(Styled())
        lines += _section(section, width)
    return Styled("\n").join([*lines, Styled()])


def _section(section: Section, width: int) -> Iterator[Styled]:
    if not section.is_lead:
        yield from _wrapped(section.title, width, "bold", "")
    indent = "" if section.is_lead else INDENT
    for content in section.content:
        yield from _content(content, width, indent)


def _content(content: Content, width: int, indent: str) -> Iterator[Styled]:
    match content:
        case Text():
            yield from _wrapped(content.text, width, TONES[content.tone], indent)
        case Facts():
            yield from _facts(content.facts, width, indent)
        case Notes():
            for note in content.notes:
                yield from _note(note, width, indent)
        case Bar():
            yield _bar(content, min(BAR_ROOM, width - len(indent)), indent)
            yield from _wrapped(content.caption, width, "", indent)
        case Figure():
            yield from (Styled(line) for line in content.text.split("\n"))
            yield from _wrapped(content.caption, width, TONES["quiet"], indent)
        case Table():
            yield from _table(content, width, indent)
        case Findings():
            yield from _findings(content, width, indent)
        case Commands():
            yield from _commands(content, width, indent)


def _facts(facts: Sequence[Fact], width: int, indent: str) -> Iterator[Styled]:
    widest = max((cells(fact.label) for fact in facts), default=0)
    for fact in facts:
        label = fact.label
        for line in wrap(fact.text, width - len(indent) - widest - 2):
            yield Styled.assemble(f"{indent}{label}", " " * (widest - cells(label) + 2), line)
            label = ""


def _note(note: Note, width: int, indent: str) -> Iterator[Styled]:
    mark, colour = MARKS[note.severity]
    inner = indent + " " * (len(mark) + 1)
    first, *others = wrap(f"{note.code}: {note.text}" if note.code else note.text, width - len(inner))
    line = Styled(f"{indent}{mark} {first}")
    line.stylize(colour, 0, len(inner) + len(note.code))
    yield line
    yield from (Styled(f"{inner}{line}") for line in others)
    yield from _wrapped(note.means, width, TONES["quiet"], inner)
    for action in note.do:
        yield from _wrapped(f"→ {action}", width, TONES["advice"], inner)


def _wrapped(text: str, width: int, style: str, indent: str) -> Iterator[Styled]:
    for line in wrap(text, width - len(indent)) if text else ():
        yield Styled(f"{indent}{line}", style)


def _bar(bar: Bar, room: int, indent: str) -> Styled:
    """A bar whose cells sum to its width: each part ends at its rounded running sum."""
    line = Styled(indent)
    so_far, drawn = 0, 0
    for part in bar.parts:
        so_far += part.value_ns
        reach = round(room * so_far / bar.whole_ns) if bar.whole_ns else 0
        line.append(("░" if part.name == "idle" else "█") * (reach - drawn), style=PART_COLOURS.get(part.name, ""))
        drawn = reach
    return line


def columns_of(table: Table) -> list[Cells]:
    """The table's columns as text."""
    return [
        Cells(
            title=column.title,
            texts=[shown(row[position], column.unit) for row in table.rows],
            is_right=column.is_right,
            is_key=column.key,
            can_shrink=column.unit == "text",
            is_prose=column.unit == "text",
            priority=column.priority,
        )
        for position, column in enumerate(table.columns)
    ]


def _table(table: Table, width: int, indent: str) -> Iterator[Styled]:
    room = width - len(indent)
    laid = lay_out(columns_of(table), room)
    yield Styled(f"{indent}{laid.head}", "bright_black")
    yield from (Styled(f"{indent}{line}") for line in laid.lines)
    notes = [note for note in (table.hidden_note, left_out_note(laid.left_out, width)) if note]
    if notes:
        yield from _wrapped(f"({'; '.join(notes)})", width, "bright_black", indent)


def _findings(findings: Findings, width: int, indent: str) -> Iterator[Styled]:
    inner = indent + INDENT
    for position, entry in enumerate(findings.entries):
        if position:
            yield Styled()
        yield from _wrapped(entry.name, width, "bold", indent)
        yield from _wrapped(entry.text, width, "", inner)
        yield from _facts(entry.facts, width, inner)
        verify = f"Verify: {entry.verify}" if entry.verify else ""
        for text, style in ((entry.where, "cyan"), (entry.how, "green"), (verify, "bright_black")):
            yield from _wrapped(text, width, style, inner)


def _commands(commands: Commands, width: int, indent: str) -> Iterator[Styled]:
    """Commands are never wrapped, so that they can be copied; a purpose that does not fit is dropped."""
    room = width - len(indent) - 2
    fitting = [cells(one.command) for one in commands.commands if cells(one.command) + cells(one.purpose) <= room]
    widest = max(fitting, default=0)
    for one in commands.commands:
        line = Styled(f"{indent}{one.command}", "green")
        length = cells(one.command)
        if one.purpose and length + cells(one.purpose) <= room:
            aligned = widest - length if widest + cells(one.purpose) <= room else 0
            line.append(f"{' ' * aligned}  {one.purpose}", style="bright_black")
        yield line
