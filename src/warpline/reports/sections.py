"""An answer as titled sections: order, titles, units, and what is hidden. Renderers only display it.

Values are numbers in the unit of their column; a renderer formats them. Sections do not depend on the width of a
terminal.
"""

from __future__ import annotations

from dataclasses import field
from typing import Literal, TypeAlias

from warpline.records import dataclass

Unit = Literal["text", "count", "ns", "change_ns", "bytes", "bytes_per_second", "share", "gain", "number"]
"""Unit of a column: `change_ns` has a sign, `share` is a fraction of one, `gain` a speed-up, `number` has no unit."""
Severity = Literal["error", "warning", "info"]
Tone = Literal["plain", "strong", "quiet", "advice"]


@dataclass(frozen=True, slots=True)
class Range:
    """From a low to a high value of the column's unit."""

    low: float
    high: float


Value: TypeAlias = "str | int | float | Range | None"


@dataclass(frozen=True, slots=True)
class Column:
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

    @property
    def is_right(self) -> bool:
        """Whether cells are right-aligned: by default all but text."""
        return self.unit != "text" if self.aligned == "by unit" else self.aligned == "right"


@dataclass(frozen=True, slots=True)
class Table:
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


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph."""

    text: str
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True)
class Fact:
    """A label and its value."""

    label: str
    text: str


@dataclass(frozen=True, slots=True)
class Facts:
    """A list of facts."""

    facts: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class Note:
    """A note with its stable code."""

    severity: Severity
    code: str
    text: str


@dataclass(frozen=True, slots=True)
class Notes:
    """Notes, the most severe first."""

    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a whole."""

    name: str
    value_ns: int


@dataclass(frozen=True, slots=True)
class Bar:
    """Parts that sum to a whole, drawn to scale if possible."""

    whole_ns: int
    parts: tuple[Part, ...]
    caption: str = ""
    """The same as text."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing in monospaced characters, at most 78 per line."""

    text: str
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Explained:
    """One finding as text."""

    name: str
    text: str
    where: str = ""
    how: str = ""


@dataclass(frozen=True, slots=True)
class Findings:
    """Findings as text, the first to fix at the top."""

    entries: tuple[Explained, ...]


@dataclass(frozen=True, slots=True)
class Command:
    """A command and its purpose."""

    command: str
    purpose: str


@dataclass(frozen=True, slots=True)
class Commands:
    """Next commands."""

    commands: tuple[Command, ...]


Content: TypeAlias = Text | Table | Facts | Notes | Bar | Figure | Findings | Commands


@dataclass(frozen=True, slots=True)
class Section:
    """A titled part of an answer."""

    name: str
    """Key in JSON."""
    title: str
    content: tuple[Content, ...]
    is_lead: bool = False
    """Whether the title may be omitted if space is short."""


@dataclass(frozen=True, slots=True)
class Report:
    """A whole answer: a title line, and its sections in reading order."""

    title: str
    sections: tuple[Section, ...] = field(default=())
