"""Calm steps of a cold trace: those that show what a warm step takes."""

from __future__ import annotations

import numpy as np

from warpline.replay.graph.model import CALL, RELEASE, SEGMENT
from warpline.replay.patterns.preparation import Stretch
from warpline.replay.replay import UNEVEN
from warpline.replay.scene import Scene
from warpline.replay.workbench import Workbench
from warpline.trace.columns import NONE, Bools, Floats, Int64s, integers

MOSTLY = 0.5
"""A long step is long for being cold if this part of what it takes beyond the usual goes with it."""


def untouched(scene: Scene, gone: list[Stretch]) -> Bools:
    """Steps in which nothing that is gone began."""
    starts = integers(scene.trace.steps_in_view["start_ns"])
    result = np.ones(scene.step_count, bool)
    begins = np.array([start for _, start, _ in gone], np.int64)
    result[np.searchsorted(starts, begins, side="right") - 1] = False
    return result


def settle(bench: Workbench, bare: Floats, steps: Int64s, step_of: Int64s) -> None:
    """In these steps the CPU takes what it took: of alike steps each part the least, since it only gets warmer."""
    scene, graph = bench.scene, bench.graph
    alike: dict[tuple[tuple[str, ...], ...], list[Int64s]] = {}
    for step in steps.tolist():
        mine = np.flatnonzero(step_of == step)
        nodes, work = mine[np.isin(graph.kind[mine], [SEGMENT, CALL, RELEASE])], mine[scene.is_work[mine]]
        nodes = nodes[np.argsort(graph.lane[nodes], kind="stable")]
        alike.setdefault((tuple(scene.call_name[nodes]), tuple(scene.name[work])), []).append(nodes)
    for group in alike.values():
        graph.duration[np.array(group)] = bare[np.array(group)].min(axis=0)


def step_that_follows(scene: Scene) -> Int64s:
    """The step of each node; of CPU time that one step begins and the next ends, the next. NONE after the last."""
    result, marks = scene.step.copy(), scene.marks.node
    on_cpu = ~scene.is_work[marks]
    result[marks[on_cpu]] = np.append(np.arange(len(marks) - 1), NONE)[on_cpu]
    return result


def calm_steps(before: Floats, after: Floats) -> Bools:
    """The steps that show what a warm one takes: not those that were long, and mostly for being cold."""
    usual = float(np.median(before))
    calm: Bools = (before <= UNEVEN * usual) | (before - after < MOSTLY * (before - usual))
    return calm
