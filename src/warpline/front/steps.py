"""The steps of a trace: a table to read, and a sequence to slice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import polars as pl

from warpline.errors import UsageError
from warpline.front.tables import to_query
from warpline.notebook import ShownAsCard
from warpline.sanitise import sanitise
from warpline.trace.steps.choice import StepChoice
from warpline.units import duration, several

if TYPE_CHECKING:
    from warpline.front.trace import Trace


class Steps(ShownAsCard):
    """The selected steps. `steps[1:3]` and `steps[2]` are traces of these steps only; `steps.table` is a DataFrame.

    Positions count from the first selected step, as in any Python sequence: `steps[-1]` is the last.

    >>> len(trace.steps)
    4
    >>> trace.steps[1:3].diagnose()
    >>> [step.step_ns for step in trace.steps]
    >>> trace.steps.table.select("name", "start_ns", "end_ns")
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    @property
    def table(self) -> pl.DataFrame:
        """One row per step: `id`, `index`, `name`, `start_ns`, `end_ns`, `thread`, `found_by`."""
        shown = to_query(self._trace.all_steps)
        positions = self._positions
        return shown[positions.start : positions.stop]

    def __len__(self) -> int:
        return len(self._positions)

    def __getitem__(self, chosen: int | slice) -> Trace:
        wanted = chosen if isinstance(chosen, slice) else slice(chosen, chosen + 1 if chosen != -1 else None)
        if wanted.step not in {None, 1}:
            raise UsageError("bad-steps", "a slice of steps cannot have a stride", "slice without a stride")
        positions = self._positions[wanted]
        if len(self) and not positions:
            raise UsageError(
                "no-such-step", f"the trace has {several(len(self), 'step')}, numbered from 0; none is in that range"
            )
        return self._trace.with_steps(StepChoice(positions.start, positions.stop))

    def __iter__(self) -> Iterator[Trace]:
        return (self[position] for position in range(len(self)))

    def __repr__(self) -> str:
        return sanitise(f"<Steps: {self.summary}>")

    @property
    def summary(self) -> str:
        """Number, duration and source of the steps, as text."""
        step_ns = self._trace.step_ns
        if step_ns is None:
            return "no steps"
        found_by = self._trace.all_steps.found_by[0]
        return f"{len(self)} step{'s' if len(self) != 1 else ''} of {duration(step_ns)}, found by {found_by}"

    @property
    def _positions(self) -> range:
        """The selected steps, as positions in the whole table."""
        everything = range(len(self._trace.all_steps))
        choice = self._trace.chosen_steps
        return everything if choice is None else everything[slice(choice.first, choice.beyond)]
