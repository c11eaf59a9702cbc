"""An answer as titled sections, once: order, titles, units, and what is hidden. Renderers only show it.

Values are numbers in the unit of their column; a renderer turns them into text. Nothing here knows how wide a
terminal is, or that there is one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Unit = Literal["text", "count", "ns", "bytes", "bytes_per_second", "share", "gain", "number"]
"""What a column's values are: `share` is a part of one, `gain` a speed-up, `number` has no unit."""
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
    """As programs call it; with its unit, where it has one that a program must know."""
    title: str
    unit: Unit = "text"
    key: bool = False
    """Names the row: no renderer leaves it out."""
    priority: int = 1
    """Where room is short, columns with the largest number are left out first."""
    aligned: Literal["left", "right", "by unit"] = "by unit"

    @property
    def is_right(self) -> bool:
        """Whether the cells end at the column's right edge: by default all but text."""
        return self.unit != "text" if self.aligned == "by unit" else self.aligned == "right"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under typed columns, one of them the key."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]
    hidden: int = 0
    """Rows that the answer has and the table leaves out."""
    hidden_note: str = ""
    """How many, and what shows them."""

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
    """A label and what is known under it."""

    label: str
    text: str


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts, one under the other."""

    facts: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class Note:
    """Something to doubt or to know, by its stable code."""

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
    """Parts that sum to a whole, drawn to scale where that is possible."""

    whole_ns: int
    parts: tuple[Part, ...]
    caption: str = ""
    """The same in words."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing in characters of equal width, at most 78 of them in a line."""

    text: str
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Explained:
    """One finding in words."""

    name: str
    text: str
    where: str = ""
    how: str = ""


@dataclass(frozen=True, slots=True)
class Findings:
    """Findings in words, the one to act on first at the top."""

    entries: tuple[Explained, ...]


@dataclass(frozen=True, slots=True)
class Command:
    """Something to type, and what for."""

    command: str
    purpose: str


@dataclass(frozen=True, slots=True)
class Commands:
    """What to type next."""

    commands: tuple[Command, ...]


Content: TypeAlias = Text | Table | Facts | Notes | Bar | Figure | Findings | Commands


@dataclass(frozen=True, slots=True)
class Section:
    """A titled part of an answer."""

    name: str
    """As programs call it."""
    title: str
    content: tuple[Content, ...]
    is_lead: bool = False
    """Speaks for itself: where lines are few, its title may be left out."""


@dataclass(frozen=True, slots=True)
class Report:
    """A whole answer: one line that says what was looked at, and its sections in the order to read them."""

    title: str
    sections: tuple[Section, ...] = field(default=())
