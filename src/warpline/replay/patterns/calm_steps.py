"""Steps of a cold trace that show how long a warm step takes."""

from __future__ import annotations

import numpy as np

from warpline.replay.graph.model import NodeKind
from warpline.replay.graph_edit import GraphEdit
from warpline.replay.labelled_graph import LabelledGraph
from warpline.replay.patterns.preparation import HostSpan
from warpline.replay.replay import UNEVEN
from warpline.trace.arrays import NONE, Bools, Floats, Int64s

MIN_COLD_SHARE = 0.5
"""A long step is long because it is cold if removing the cold work removes this share of its excess over the median."""


def untouched(labelled: LabelledGraph, gone: list[HostSpan]) -> Bools:
    """Steps in which no removed node starts."""
    starts = labelled.trace.steps_in_view.start_ns
    result = np.ones(labelled.step_count, bool)
    begins = np.array([span.start_ns for span in gone], np.int64)
    result[np.searchsorted(starts, begins, side="right") - 1] = False
    return result


def settle(edit: GraphEdit, bare: Floats, steps: Int64s, step_of: Int64s) -> None:
    """Host times of warm steps: the minimum of each part over equal steps, because later steps are only warmer."""
    labelled, graph = edit.labelled, edit.graph
    alike: dict[tuple[tuple[int, ...], ...], list[Int64s]] = {}
    host = graph.of_kinds(NodeKind.SEGMENT, NodeKind.CALL, NodeKind.RELEASE)
    for step in steps.tolist():
        nodes, work = np.flatnonzero(host & (step_of == step)), np.flatnonzero(labelled.is_work & (step_of == step))
        nodes = nodes[np.argsort(graph.lane[nodes], kind="stable")]
        calls, kernels = labelled.call_name.codes[nodes], labelled.name.codes[work]
        alike.setdefault((tuple(calls.tolist()), tuple(kernels.tolist())), []).append(nodes)
    for group in alike.values():
        graph.duration[np.array(group)] = bare[np.array(group)].min(axis=0)


def step_that_follows(labelled: LabelledGraph) -> Int64s:
    """The step of each node; host time that spans two steps belongs to the later one. NONE after the last step."""
    result, marks = labelled.step.copy(), labelled.marks.node
    on_cpu = ~labelled.is_work[marks]
    result[marks[on_cpu]] = np.append(np.arange(len(marks) - 1), NONE)[on_cpu]
    return result


def calm_steps(before: Floats, after: Floats) -> Bools:
    """The steps that show how long a warm step takes: without those that are long mostly because they are cold."""
    usual = float(np.median(before))
    return (before <= UNEVEN * usual) | (before - after < MIN_COLD_SHARE * (before - usual))
