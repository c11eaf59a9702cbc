"""The evidence for the rules: the trace, its idle time, and the replay that answers what-if questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
from msgspec import Struct

from warpline.analyses.framework import Framework, framework_of
from warpline.analyses.platform import platform_of
from warpline.analyses.serving import Engine, engine_of
from warpline.analyses.user_frames import Site, UserFrames
from warpline.analyses.wait_expressions import wait_expressions
from warpline.fixes.claim import Place
from warpline.fixes.words import StepNoun
from warpline.hardware.vocabulary import Platform
from warpline.intervals import difference, union
from warpline.replay.fix import GraphFix
from warpline.replay.graph.model import NodeKind
from warpline.replay.labelled_graph import LabelledGraph
from warpline.replay.whatif import Prediction, Trial, WhatIf
from warpline.trace.arrays import NONE, Bools, Floats, Int64s
from warpline.trace.nesting import nearest_marked
from warpline.trace.trace import Trace
from warpline.work.parse import recorded_sizes

LISTED_PLACES = 5
WARM_STEPS_IN_A_LONG_RUN = 6
"""With more steps for each cold one, the cold start of a run is past."""


class GraphChange(Struct, frozen=True):
    """The changes of one fix to the graph in the expected case; claims count these, so that they state only what was
    replayed. Each array has one entry per node."""

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


class Evidence:
    """A trace prepared for the rules of these fixes; everything is computed on first use."""

    def __init__(self, trace: Trace, fixes: Mapping[str, GraphFix], recorded_steps: int | None = None) -> None:
        self.trace = trace
        self.recorded_steps = len(trace.steps_in_view) if recorded_steps is None else recorded_steps
        """Number of steps in view; the replayed steps stand for all of them."""
        self.question = WhatIf(trace, fixes)
        self.bare, self.labelled = self.question.bare, self.question.labelled
        self.steps = max(self.question.replay.marks.count, 1)
        self._changes: dict[str, GraphChange] = {}

    def ask(self, fix: str) -> Prediction:
        """The prediction for a fix."""
        return self.question.ask(fix)

    def gains(self, fix: str, least: float) -> bool:
        """Whether a fix changes something and is expected to gain at least `least`."""
        return self.question.gains(fix, least)

    def trial(self, *fixes: str) -> Trial:
        """The fixes applied to the graph, in the expected case."""
        return self.question.trial(*fixes)

    def changed(self, fix: str) -> GraphChange:
        """The nodes that the fix changes, which a claim may count; computed once."""
        if fix not in self._changes:
            self._changes[fix] = _change_of(self.labelled, self.trial(fix))
        return self._changes[fix]

    @property
    def step_ns(self) -> float:
        """Replayed step time without the profiler."""
        return self.bare.expected_ns

    @property
    def mostly_cold(self) -> bool:
        """Whether a cold start takes most of the recorded steps' time, and few warm steps follow it: then the recording
        is of a cold start, whatever the warm steps could gain."""
        cold = self.trace.cold
        return (
            cold is not None
            and cold.once_ns >= cold.recorded_ns / 2
            and cold.recorded <= WARM_STEPS_IN_A_LONG_RUN * cold.count
        )

    @cached_property
    def noun(self) -> StepNoun:
        """What the numbers of claims are about: steps, or the recording."""
        return StepNoun.of(has_steps=len(self.trace.steps_in_view) > 0)

    @cached_property
    def framework(self) -> Framework:
        """What the program is written with."""
        return framework_of(self.trace)

    @cached_property
    def platform(self) -> Platform:
        """Whose words to use: NVIDIA's or AMD's."""
        return platform_of(self.trace)

    @cached_property
    def engine(self) -> Engine | None:
        """The serving engine that runs the program, if any."""
        return engine_of(self.trace)

    @property
    def user_frames(self) -> UserFrames:
        """Frames of the user's code."""
        return self.trace.once(UserFrames)

    @property
    def idle(self) -> dict[str, int]:
        """Idle time of the busiest device by cause, over the window."""
        return self.bare.recorded_gaps.totals()

    @property
    def captured_share(self) -> float:
        """Share of the window in which the busiest device is idle while a graph is captured."""
        return self.bare.recorded_gaps.captured_ns / max(self.trace.window.length_ns, 1)

    def in_steps(self, nodes: Bools) -> Bools:
        """Nodes that start, or are launched, in the steps in view."""
        return nodes & self.labelled.has_step

    def per_step(self, nodes: Bools) -> float:
        """Number of the nodes per step."""
        return float(self.in_steps(nodes).sum()) / self.steps

    def time_per_step(self, nodes: Bools) -> float:
        """Measured GPU time of the nodes per step, in nanoseconds."""
        graph, chosen = self.labelled.graph, self.in_steps(nodes) & (self.labelled.graph.kind == NodeKind.WORK)
        return float((graph.measured_end - graph.measured_start)[chosen].sum()) / self.steps

    def exposed_per_step(self, nodes: Bools) -> float:
        """Time of the nodes per step during which their own device runs no other kernel, in nanoseconds; devices add
        up, since another device's kernels hide nothing."""
        graph, chosen = self.labelled.graph, self.in_steps(nodes)
        others = self.labelled.is_kernel & ~nodes
        device, total = self.labelled.work_number("device"), 0
        for number in np.unique(device[chosen]):
            here = device == number
            spans = [
                union(graph.measured_start[part], graph.measured_end[part]) for part in (chosen & here, others & here)
            ]
            total += difference(*spans).total_ns()
        return total / self.steps

    def host_time_saved(self, fix: str) -> float:
        """CPU time per step that the fix removes, in nanoseconds."""
        change = self.changed(fix)
        return float(change.saved_ns[change.host].sum()) / self.steps

    def time_in_calls(self, calls: Bools) -> float:
        """Time per step in these API calls, waiting included, in nanoseconds."""
        rows = self.labelled.graph.row[self.in_steps(calls)]
        lengths = self.trace.api.end_ns[rows] - self.trace.api.start_ns[rows]
        return float(lengths.sum()) / self.steps

    def places(self, nodes: Bools) -> tuple[Place, ...]:
        """The ops that launched these nodes, with the user's source line if known, the most frequent first."""
        return self._op_places(nodes, np.ones(len(nodes)))

    def costliest_places(self, nodes: Bools) -> tuple[Place, ...]:
        """The same, the longest total time first."""
        graph = self.labelled.graph
        return self._op_places(nodes, (graph.measured_end - graph.measured_start).astype(np.float64))

    def written_ops(self, nodes: Bools) -> Int64s:
        """The op in the program that led to each of these nodes; for a backward op, its forward op."""
        return self._forward_ops[self.labelled.op[self._under_ops(nodes)]]

    def _under_ops(self, nodes: Bools) -> Int64s:
        return np.flatnonzero(self.in_steps(nodes) & (self.labelled.op != NONE))

    def _op_places(self, nodes: Bools, weight: Floats) -> tuple[Place, ...]:
        chosen, written = self._under_ops(nodes), self.trace.ops[self.written_ops(nodes)]
        names = self.labelled.op_name
        return self._places(names.words, names.codes[chosen], written.thread, written.start_ns, weight[chosen])

    @cached_property
    def _forward_ops(self) -> Int64s:
        """For each op, the op that the program called: for a backward op, the forward op that it differentiates."""
        table = self.trace.ops
        forward = np.append(table.forward_op, NONE)
        around = np.append(nearest_marked(table.parent, forward[:-1] != NONE), NONE)
        written = forward[around[:-1]]
        return np.where(written == NONE, np.arange(len(table)), written)

    def host_places(self, nodes: Bools, weight: Floats | None = None) -> tuple[Place, ...]:
        """The outermost ops around these API calls, or after these segments; else the calls themselves."""
        chosen, rows = self._api_rows(nodes)
        moments = self.trace.api.thread[rows], self.trace.api.start_ns[rows]
        return self._places(*self._call_labels(rows), *moments, None if weight is None else weight[chosen])

    def host_labels(self, nodes: Bools) -> list[str]:
        """The outermost op around each of these API calls, or the call's own name."""
        labels, which = self._call_labels(self._api_rows(nodes)[1])
        return [labels[number] for number in which.tolist()]

    def host_expressions(self, nodes: Bools) -> list[str | None]:
        """What the program wrote at each of these API calls, where frames or the op tell."""
        rows = self._api_rows(nodes)[1]
        return wait_expressions(self.trace, rows, self.labelled.roots[self.trace.api.op_id[rows]])

    def _api_rows(self, nodes: Bools) -> tuple[Int64s, Int64s]:
        graph = self.labelled.graph
        chosen = np.flatnonzero(self.in_steps(nodes))
        rows = np.where(graph.kind == NodeKind.SEGMENT, graph.before, graph.row)[chosen]
        return chosen[rows != NONE], rows[rows != NONE]

    def _call_labels(self, rows: Int64s) -> tuple[list[str], Int64s]:
        """Distinct labels of these calls, and for each call which of them it has."""
        ops, calls = self.trace.ops.name, self.trace.api.name
        op = self.labelled.roots[self.trace.api.op_id[rows]]
        texts = [*ops.words, *calls.words]
        known = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        number = np.array([known[text] for text in texts], np.int64)
        of_call = len(ops.words) + calls.codes[rows]
        return list(known), number[np.where(op == NONE, of_call, np.append(ops.codes, NONE)[op])]

    def places_at(
        self, labels: Sequence[str], threads: Int64s, moments: Int64s, weight: Floats | None = None
    ) -> tuple[Place, ...]:
        """Places at these moments, by label and user source line, the largest weight first."""
        known = {label: number for number, label in enumerate(dict.fromkeys(labels))}
        which = np.array([known[label] for label in labels], np.int64)
        return self._places(list(known), which, threads, moments, weight)

    def _places(
        self, labels: list[str], which: Int64s, threads: Int64s, moments: Int64s, weight: Floats | None = None
    ) -> tuple[Place, ...]:
        """The same for distinct labels, and for each moment which of them it has."""
        if not len(which):
            return ()
        frames, frame = self.user_frames.distinct_sites(threads, moments)
        found, place, counts = np.unique(which * len(frames) + frame, return_inverse=True, return_counts=True)
        weights = np.bincount(place, weight).tolist()
        spots = [(labels[pair // len(frames)], frames[pair % len(frames)] or "") for pair in found.tolist()]
        rows = sorted(zip(spots, weights, counts.tolist(), strict=True), key=lambda row: (-row[1], row[0]))
        return tuple(_place(label, spot, count) for (label, spot), _, count in rows[:LISTED_PLACES])

    def costliest_shapes(self, nodes: Bools) -> str:
        """Shapes of the op with the longest total time among these nodes; empty if none were recorded."""
        graph, shapes = self.labelled.graph, self.labelled.op_shapes
        chosen = self.in_steps(nodes) & shapes.where(bool)
        time_ns = np.zeros(len(shapes.words), np.int64)
        np.add.at(time_ns, shapes.codes[chosen], (graph.measured_end - graph.measured_start)[chosen])
        present = set(shapes[chosen].present())
        totals = [(-ns, text) for text, ns in zip(shapes.words, time_ns.tolist(), strict=True) if text in present]
        return _matrices(min(totals)[1]) if totals else ""


def _change_of(labelled: LabelledGraph, trial: Trial) -> GraphChange:
    """The changes that a trial of a fix, in the expected case, made to the graph."""
    other_time = trial.duration != labelled.graph.duration
    host = other_time & ~labelled.is_work & labelled.in_steps
    calls = labelled.call_of_work
    relaunched = labelled.is_work & labelled.in_steps & ~trial.gone & (calls != NONE) & host[calls]
    touched = (other_time | trial.gone | trial.moved) & labelled.is_work & labelled.in_steps
    return GraphChange(touched, trial.gone, trial.moved, host, relaunched, labelled.graph.duration - trial.duration)


def _place(label: str, frame: str, count: int) -> Place:
    site = Site.parse(frame)
    return Place.at(label, site, count)


def _matrices(shapes: str) -> str:
    """Shapes of a GEMM's matrices as text: 4096x2047 by 2047x4093."""
    matrices = [sizes for sizes in recorded_sizes(shapes) if len(sizes) >= 2]
    return " by ".join("x".join(map(str, sizes)) for sizes in matrices) or shapes
