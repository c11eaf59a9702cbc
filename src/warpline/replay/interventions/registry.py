"""What an intervention is, and the list of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from warpline.errors import UsageError
from warpline.replay.workbench import Workbench

OPTIMISTIC, EXPECTED, PESSIMISTIC = range(3)


@dataclass(frozen=True, slots=True)
class Range:
    """A constant that is known within limits: best for the step, expected, worst; and where it comes from."""

    best: float
    expected: float
    worst: float
    source: str

    def at(self, case: int) -> float:
        """The value in one of the three cases."""
        return (self.best, self.expected, self.worst)[case]


Apply = Callable[[Workbench, int], int]
"""Changes the graph on the bench for a case, and says how many things it changed; 0 means it does not apply."""


@dataclass(frozen=True, slots=True)
class Intervention:
    """A fix that can be tried on a graph."""

    name: str
    summary: str
    assumptions: tuple[str, ...]
    apply: Apply
    order: int
    """Fixes that change kernels come before those that change how they are launched."""


_REGISTERED: dict[str, Intervention] = {}


def intervention(name: str, order: int, summary: str, *assumptions: str) -> Callable[[Apply], Apply]:
    """Registers a function as the intervention of that name."""

    def register(function: Apply) -> Apply:
        _REGISTERED[name] = Intervention(name, summary, assumptions, function, order)
        return function

    return register


def interventions() -> dict[str, Intervention]:
    """All interventions by name."""
    return dict(sorted(_REGISTERED.items()))


def find_interventions(names: list[str]) -> list[Intervention]:
    """Those with these names, in the order in which they are to be applied."""
    known = interventions()
    for name in names:
        if name not in known:
            raise UsageError("unknown-fix", f"there is no fix {name!r}", f"the fixes are {', '.join(known)}")
    if not names:
        raise UsageError("no-fix", "no fix was named", f"--fix takes one of {', '.join(known)}")
    return sorted({known[name] for name in names}, key=lambda item: (item.order, item.name))
