"""What a rule is, and what it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from warpline.lint.source_file import SourceFile


@dataclass(frozen=True, slots=True)
class LintSpot:
    """A place in a program, and what is wrong there."""

    line: int
    column: int
    message: str


@dataclass(frozen=True, slots=True)
class LintRule:
    """One check."""

    code: str
    """Stable, in kebab-case; `# warpline: ignore[CODE]` silences it on a line."""
    meaning: str
    """What it finds, in one sentence."""
    fix: str
    """What to do, in one sentence."""
    find: Callable[[SourceFile], Iterator[LintSpot]]


@dataclass(frozen=True, slots=True)
class LintFinding:
    """One finding in a file."""

    file: str
    line: int
    column: int
    """From 1."""
    code: str
    message: str
    fix: str

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)
