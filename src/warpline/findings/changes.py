"""What a fix changes in the graph: claims count these nodes, so that they say no more than was replayed."""

from __future__ import annotations

from dataclasses import dataclass

from warpline.replay.bench import Bench
from warpline.replay.interventions import interventions
from warpline.replay.interventions.registry import EXPECTED
from warpline.replay.model import Bools, Floats
from warpline.replay.scene import Scene
from warpline.trace.nesting import NONE


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


def change_of(scene: Scene, fix: str) -> Change:
    """Applies the fix once more, as the replay did for the expected case, and looks at what it did."""
    bench = Bench(scene, scene.graph)
    interventions()[fix].apply(bench, EXPECTED)
    other_time = bench.graph.duration != scene.graph.duration
    host = other_time & ~scene.is_work & scene.in_steps
    calls = scene.call_of_work
    relaunched = scene.is_work & scene.in_steps & ~bench.gone & (calls != NONE) & host[calls]
    touched = (other_time | bench.gone | bench.moved) & scene.is_work & scene.in_steps
    return Change(touched, bench.gone, bench.moved, host, relaunched, scene.graph.duration - bench.graph.duration)
