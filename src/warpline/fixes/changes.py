"""What a fix changes in the graph: claims count these nodes, so that they say no more than was replayed."""

from __future__ import annotations

from dataclasses import dataclass

from warpline.replay.scene import Scene
from warpline.replay.whatif import Trial
from warpline.trace.columns import NONE, Bools, Floats


@dataclass(frozen=True, slots=True)
class Change:
    """What one fix does to the graph in the expected case; arrays run over all nodes."""

    work: Bools
    """GPU work of the steps that goes, takes another time, or moves to a stream of its own."""
    gone: Bools
    """Of that, what goes."""
    moved: Bools
    """Of that, what moves to a stream of its own."""
    host: Bools
    """CPU nodes of the steps that take another time."""
    relaunched: Bools
    """GPU work that stays, and whose launch costs another time."""
    saved_ns: Floats
    """How much less time each node takes."""


def change_of(scene: Scene, trial: Trial) -> Change:
    """What the replay's trial of a fix, in the expected case, did to the scene's own graph."""
    other_time = trial.duration != scene.graph.duration
    host = other_time & ~scene.is_work & scene.in_steps
    calls = scene.call_of_work
    relaunched = scene.is_work & scene.in_steps & ~trial.gone & (calls != NONE) & host[calls]
    touched = (other_time | trial.gone | trial.moved) & scene.is_work & scene.in_steps
    return Change(touched, trial.gone, trial.moved, host, relaunched, scene.graph.duration - trial.duration)
