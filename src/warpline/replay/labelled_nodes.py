"""The nodes of a graph with their labels: the step and the API call of each, and what each GPU operation is."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property

import numpy as np

from warpline import api_names
from warpline.kernels import KernelIdentity, identify
from warpline.replay.graph.model import EdgeKind, Graph, NodeKind
from warpline.replay.labels import Labels
from warpline.replay.steps import StepMarks
from warpline.trace.arrays import NONE, Bools, Int64s, grouped, integers
from warpline.trace.launches import launch_moments, launched_ns
from warpline.trace.steps.choice import on_device
from warpline.trace.table import Names
from warpline.trace.trace import Trace


class LabelledNodes:
    """A trace's graph with labelled nodes. Arrays have one entry per node unless documented otherwise."""

    def __init__(self, trace: Trace, graph: Graph, marks: StepMarks) -> None:
        self.trace, self.graph, self.marks = trace, graph, marks
        self.is_work: Bools = graph.kind == NodeKind.WORK
        self.work: Int64s = np.flatnonzero(self.is_work)
        self._texts: dict[str, Labels] = {}
        self._numbers: dict[str, Int64s] = {}
        self._classes: dict[tuple[str, ...], Bools] = {}

    @cached_property
    def work_of_lane(self) -> dict[int, Int64s]:
        """The operations on each lane that has any, in order."""
        return dict(grouped(self.work, self.graph.lane[self.work]))

    def mark(self, nodes: Bools) -> Bools:
        """Marked nodes that are kept, and not to be changed; where none is, all share one array."""
        found = nodes if nodes.any() else self._no_node
        found.setflags(write=False)
        return found

    @cached_property
    def _no_node(self) -> Bools:
        return np.zeros(len(self.graph), bool)

    # Steps.

    @cached_property
    def step(self) -> Int64s:
        """The step in which each node began, or was launched; NONE outside."""
        steps = self.trace.steps_in_view
        moment = self.graph.measured_start.copy()
        if not len(steps):
            return np.zeros(len(self.graph), np.int64)
        starts, ends = steps.start_ns, steps.end_ns
        if not on_device(steps):
            launched = launch_moments(self.trace.gpu, self.trace.api, int(starts[0]), int(ends[-1]))
            moment[self.work] = launched[self.graph.row[self.work]]
        index = np.searchsorted(starts, moment, side="right") - 1
        inside = (index >= 0) & (moment < ends[-1])
        result: Int64s = np.where(inside, index, NONE)
        return result

    @cached_property
    def has_step(self) -> Bools:
        """Whether the node began, or was launched, in a selected step."""
        inside: Bools = self.step != NONE
        return inside

    @cached_property
    def in_steps(self) -> Bools:
        """Whether the node belongs to a selected step; for steps found on the device, all CPU nodes do."""
        return self.has_step | ~self.is_work if on_device(self.trace.all_steps) else self.has_step

    @property
    def step_count(self) -> int:
        """Number of selected steps."""
        return max(1, self.marks.count)

    # Calls.

    @cached_property
    def call_name(self) -> Labels:
        """Name of the API call of calls and returns; empty elsewhere."""
        calls = np.flatnonzero(~self.is_work & (self.graph.row != NONE))
        return self._labels(self.trace.api.name, calls, self.graph.row[calls])

    def _labels(self, column: Names, nodes: Int64s, rows: Int64s) -> Labels:
        """For these nodes the texts of those rows (NONE for none) of a column; empty for all others."""
        names = column.words
        empty = names.index("") if "" in names else len(names)
        number = np.append(np.arange(len(names)), empty)
        codes = np.full(len(self.graph), empty, np.int64)
        codes[nodes] = np.append(number[column.codes], empty)[rows]
        return Labels.of([*names, ""][: max(len(names), empty + 1)], codes)

    def calls_like(self, pattern: str) -> Bools:
        """API calls whose name matches."""
        known = self.call_name.where(lambda name: re.search(pattern, name) is not None)
        result: Bools = known & (self.graph.kind == NodeKind.CALL)
        return result

    @cached_property
    def stream_waits(self) -> Bools:
        """Calls that wait for a stream or the device."""
        return self.calls_like(api_names.STREAM_WAIT)

    @cached_property
    def _body_of_segment(self) -> Int64s:
        graph = self.graph
        result = np.full(len(graph), NONE, np.int64)
        edges = (graph.edge_kind == EdgeKind.THREAD) & (graph.kind[graph.edge_from] == NodeKind.SEGMENT)
        result[graph.edge_from[edges]] = graph.edge_to[edges]
        return result

    @cached_property
    def segment_of_call(self) -> Int64s:
        """The segment before each call."""
        result = np.full(len(self.graph), NONE, np.int64)
        segments = np.flatnonzero(self._body_of_segment != NONE)
        result[self._body_of_segment[segments]] = segments
        return result

    @cached_property
    def call_of_work(self) -> Int64s:
        """The call that launched each GPU operation, NONE if unknown; for graphs, of each stream's first one."""
        graph = self.graph
        result = np.full(len(graph), NONE, np.int64)
        edges = graph.edge_kind == EdgeKind.LAUNCH
        source, target = graph.edge_from[edges], graph.edge_to[edges]
        result[target] = np.where(graph.kind[source] == NodeKind.CALL, source, self._body_of_segment[source])
        return result

    @cached_property
    def launch_moment(self) -> Int64s:
        """Measured launch time of each GPU operation; its own start if no launch is known."""
        moment = self.graph.measured_start.copy()
        moment[self.work] = launched_ns(self.trace.gpu, self.trace.api)[self.graph.row[self.work]]
        return moment

    # Work.

    def work_text(self, column: str) -> Labels:
        """A text column of `gpu` for each node; empty for CPU nodes and where nothing is recorded."""
        if column not in self._texts:
            self._texts[column] = self._labels(self.trace.gpu.column(column), self.work, self.graph.row[self.work])
        return self._texts[column]

    def work_number(self, column: str) -> Int64s:
        """A number of `gpu` for each node; 0 for CPU nodes and where nothing is recorded."""
        if column not in self._numbers:
            result = np.zeros(len(self.graph), np.int64)
            result[self.work] = integers(self.trace.stored("gpu")[column], 0)[self.graph.row[self.work]]
            result.setflags(write=False)
            self._numbers[column] = result
        return self._numbers[column]

    @cached_property
    def kind(self) -> Labels:
        """kernel, memcpy, memset, graph; empty for CPU nodes."""
        return self.work_text("kind")

    @cached_property
    def name(self) -> Labels:
        """Name of each GPU operation."""
        return self.work_text("name")

    @cached_property
    def _identities(self) -> tuple[list[KernelIdentity], Int64s]:
        """What each different kernel is, and for each node which of them it is; the number beyond for the others."""
        kernels = np.flatnonzero(self.kind == "kernel")
        names, which = np.unique(self.name.codes[kernels], return_inverse=True)
        result = np.full(len(self.graph), len(names), np.int64)
        result[kernels] = which
        known = list(self.name.numbers)
        return [identify(known[name]) for name in names.tolist()], result

    @property
    def kernel_archs(self) -> set[str]:
        """Architectures that the names of kernels contain."""
        return {identity.arch for identity in self._identities[0] if identity.arch}

    def kernels(self, *classes: str) -> Bools:
        """Kernels of these classes."""
        if classes not in self._classes:
            found = self.kernels_where(lambda identity: identity.kernel_class in classes)
            self._classes[classes] = self.mark(found)
        return self._classes[classes]

    def kernels_where(self, test: Callable[[KernelIdentity], bool]) -> Bools:
        """Kernels whose identity passes the test."""
        identities, which = self._identities
        result: Bools = np.array([*map(test, identities), False], bool)[which]
        return result

    @cached_property
    def bytes(self) -> Int64s:
        """Bytes of copies and memsets."""
        return self.work_number("bytes")
