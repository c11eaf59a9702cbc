"""The nodes that a fix changes in the graph; claims count these, so that they state only what was replayed."""

from __future__ import annotations

from msgspec import Struct

from warpline.replay.labelled_graph import LabelledGraph
from warpline.replay.whatif import Trial
from warpline.trace.arrays import NONE, Bools, Floats


class Change(Struct, frozen=True):
    """The changes of one fix to the graph in the expected case; each array has one entry per node."""

    work: Bools
    """GPU operations of the steps that are removed, change their duration, or move to another stream."""
    gone: Bools
    """Those that are removed."""
    moved: Bools
    """Those that move to another stream."""
    host: Bools
    """CPU nodes of the steps whose duration changes."""
    relaunched: Bools
    """GPU operations that stay, but whose launch changes its duration."""
    saved_ns: Floats
    """Time saved by each node."""


def change_of(labelled: LabelledGraph, trial: Trial) -> Change:
    """The changes that a trial of a fix, in the expected case, made to the labelled's graph."""
    other_time = trial.duration != labelled.graph.duration
    host = other_time & ~labelled.is_work & labelled.in_steps
    calls = labelled.call_of_work
    relaunched = labelled.is_work & labelled.in_steps & ~trial.gone & (calls != NONE) & host[calls]
    touched = (other_time | trial.gone | trial.moved) & labelled.is_work & labelled.in_steps
    return Change(touched, trial.gone, trial.moved, host, relaunched, labelled.graph.duration - trial.duration)
