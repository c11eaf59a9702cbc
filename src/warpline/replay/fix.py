"""The replay's view of a fix: its name, its assumptions, and how it changes the graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol, TypeVar

from warpline.errors import UsageError, meant
from warpline.replay.graph_edit import GraphEdit

Apply = Callable[[GraphEdit, int], int]
"""Changes a graph for a case, and returns the number of changed nodes; 0 means not applicable."""


class GraphFix(Protocol):
    """A fix that can be tried on a graph."""

    @property
    def name(self) -> str:
        """Name of the fix."""

    @property
    def summary(self) -> str:
        """What it does, in one sentence."""

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Assumptions of the prediction."""

    @property
    def apply(self) -> Apply:
        """How it changes the graph."""


F = TypeVar("F", bound=GraphFix)


def chosen_fixes(fixes: Mapping[str, F], names: Iterable[str]) -> list[F]:
    """Those with these names, in the order in which the mapping has them: that of application."""
    wanted, known = list(names), ", ".join(sorted(fixes))
    for name in wanted:
        if name not in fixes:
            raise UsageError("unknown-fix", f"there is no fix {name!r}", meant(name, fixes))
    if not wanted:
        raise UsageError("no-fix", "no fix was named", f"--fix takes one of {known}")
    return [fix for name, fix in fixes.items() if name in wanted]
