"""The processes of the group that is measured now, as a live table shows them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from statistics import fmean, median

from msgspec import Struct

from warpline.trial.process import VariantProcess
from warpline.trial.rows import BASELINE


class LiveRow(Struct, frozen=True):
    """One process."""

    name: str
    state: str
    """starts, ready, runs, decided, or why it failed."""
    windows: int
    step_s: float | None
    """Of the windows so far, the median."""
    gain: float | None
    """The baselines' step over its own: a first impression, without a range."""


def live_rows(group: Sequence[VariantProcess], measured: Collection[VariantProcess]) -> tuple[LiveRow, ...]:
    """A row for each; `measured`: those that take part in this round."""
    steps = {id(one): median(window.step_s for window in one.windows) for one in group if one.windows}
    bases = [steps[id(one)] for one in group if one.name == BASELINE and id(one) in steps]
    rows = []
    for one in group:
        step_s = steps.get(id(one))
        gain = fmean(bases) / step_s if step_s and bases and one.name != BASELINE else None
        rows.append(LiveRow(one.name, _state(one, measured), len(one.windows), step_s, gain))
    return tuple(rows)


def _state(one: VariantProcess, measured: Collection[VariantProcess]) -> str:
    if one.error:
        return one.error
    if one.report is None:
        return "starts"
    if not one.windows:
        return "ready"
    return "runs" if one in measured else "decided"
