"""An answer as titled sections: order, titles, units, and what is hidden. Renderers only display it.

Values are numbers in the unit of their column; a renderer formats them. Sections do not depend on the width of a
terminal.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, TypeAlias, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from warpline.estimate import Estimate
from warpline.sanitise import sanitise, sanitise_lines
from warpline.sources.health import HealthEntry

Unit = Literal["text", "count", "ns", "change_ns", "bytes", "bytes_per_second", "share", "gain", "number"]
"""Unit of a column: `change_ns` has a sign, `share` is a fraction of one, `gain` a speed-up, `number` has no unit."""
Severity = Literal["error", "warning", "unknown", "info", "ok"]
"""How bad it is; `unknown` could not be checked, and `ok` is in order."""
Tone = Literal["plain", "strong", "quiet", "advice"]


Value: TypeAlias = "str | int | float | Estimate | None"
"""A cell of a table; an estimate is shown as its range."""


class Column(Struct, frozen=True):
    """One column of a table."""

    name: str
    """Key in JSON, with a unit suffix if needed."""
    title: str
    unit: Unit = "text"
    key: bool = False
    """Identifies the row: no renderer drops it."""
    priority: int = 1
    """If space is short, columns with the largest number are dropped first."""
    aligned: Literal["left", "right", "by unit"] = "by unit"
    has_bars: bool = False
    """Whether its numbers are also drawn to scale, where that is possible."""

    @property
    def is_right(self) -> bool:
        """Whether cells are right-aligned: by default all but text."""
        return self.unit != "text" if self.aligned == "by unit" else self.aligned == "right"


class Table(Struct, frozen=True):
    """Rows under typed columns, one of them the key."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]
    hidden: int = 0
    """Number of rows not shown."""
    hidden_note: str = ""
    """Their number, and how to show them."""

    @property
    def key(self) -> int:
        """Position of the key column."""
        return next(position for position, column in enumerate(self.columns) if column.key)

    def without_empty(self, *names: str) -> Table:
        """The table without those of the named columns in which no row has a value."""
        shown = [
            at
            for at, column in enumerate(self.columns)
            if column.name not in names or any(row[at] not in (None, "") for row in self.rows)
        ]
        columns = tuple(self.columns[at] for at in shown)
        return replace(self, columns=columns, rows=tuple(tuple(row[at] for at in shown) for row in self.rows))


class Text(Struct, frozen=True):
    """A paragraph."""

    text: str
    tone: Tone = "plain"


class Fact(Struct, frozen=True):
    """A label and its value."""

    label: str
    text: str


class Facts(Struct, frozen=True):
    """A list of facts."""

    facts: tuple[Fact, ...]


class Note(Struct, frozen=True):
    """A note with its stable code."""

    severity: Severity
    code: str
    """Empty if the text needs none."""
    text: str
    means: str = ""
    """Its consequence or cause."""
    do: tuple[str, ...] = ()
    """What to type or change, most useful first."""


class Notes(Struct, frozen=True):
    """Notes, the most severe first."""

    notes: tuple[Note, ...]


def health_notes(entries: Iterable[HealthEntry]) -> Notes:
    """Notes on how sound a profile is."""
    return Notes(tuple(Note(entry.severity, entry.code, entry.message) for entry in entries))


class Part(Struct, frozen=True):
    """A part of a whole."""

    name: str
    value_ns: int


MIN_NAMED_SHARE = 0.01
"""Smaller parts of a whole are summed as `other`."""


class Bar(Struct, frozen=True):
    """Parts that sum to a whole, drawn to scale if possible."""

    whole_ns: int
    parts: tuple[Part, ...]
    caption: str = ""
    """The same as text."""


class Figure(Struct, frozen=True):
    """A drawing in monospaced characters, at most 78 per line."""

    text: str
    caption: str = ""


class Explained(Struct, frozen=True):
    """One finding as text."""

    name: str
    text: str
    facts: tuple[Fact, ...] = ()
    where: str = ""
    how: str = ""
    verify: str = ""
    """How to check that the fix worked; backticks mark what to type."""


class Findings(Struct, frozen=True):
    """Findings as text, the first to fix at the top."""

    entries: tuple[Explained, ...]


class Command(Struct, frozen=True):
    """A command and its purpose."""

    command: str
    purpose: str


class Commands(Struct, frozen=True):
    """Next commands."""

    commands: tuple[Command, ...]


Content: TypeAlias = Text | Table | Facts | Notes | Bar | Figure | Findings | Commands


class Section(Struct, frozen=True):
    """A titled part of an answer."""

    name: str
    """Key in JSON."""
    title: str
    content: tuple[Content, ...] = ()
    is_lead: bool = False
    """Whether the title may be omitted if space is short."""


def next_section(commands: Iterable[Command], is_lead: bool = False) -> Section:
    """What to type next, at the end of an answer."""
    return Section("next", "Next", (Commands(tuple(commands)),), is_lead)


class Report(Struct, frozen=True):
    """A whole answer: a title line, and its sections in reading order."""

    title: str
    """Empty if the sections' own titles say enough."""
    sections: tuple[Section, ...] = ()


Record = TypeVar("Record", bound=Struct)


def sanitised(record: Record) -> Record:
    """The record with every text in it safe to show.

    Renderers call it once, so that who makes a section need not think of what a file's text may hold.
    """
    if isinstance(record, Figure):
        return replace(record, text=sanitise_lines(record.text), caption=sanitise(record.caption))
    return type(record)(**{name: _sanitised(getattr(record, name)) for name in record.__struct_fields__})


def _sanitised(value: Any) -> Any:
    match value:
        case str():
            return sanitise(value)
        case list() | tuple():
            return type(value)(map(_sanitised, value))
        case Struct():
            return sanitised(value)
        case _:
            return value
