"""Loops whose iterations may be independent: the slices they take, and the results that are joined after them."""

from __future__ import annotations

import numpy as np

from warpline.replay.graph_edit import NOTHING
from warpline.replay.labelled_graph import LabelledGraph
from warpline.replay.patterns.iterations import ADDING, VIEWS, Iteration
from warpline.replay.patterns.loops import RootOps, gathered_after
from warpline.replay.patterns.op_results import PRODUCTS, Key
from warpline.replay.patterns.tensor_lists import LONGEST_LIST
from warpline.trace.arrays import NONE, Bools, Int64s

SELECTING = ("aten::select", "aten::slice", "aten::narrow")
"""Ops that take one sample or head of a tensor: a loop that calls them in each iteration may iterate over a batch."""
CUTTING = ("aten::split", "aten::unbind", "aten::chunk", "aten::split_with_sizes", "aten::tensor_split")
"""Ops that take all of them at once."""
LOOKUPS = {"aten::embedding": 1, "aten::index_select": 2}
"""Ops that copy rows, and the position of the argument with the rows."""


class KernelLoop:
    """A run of equal groups of GPU activities, and the enclosing ops."""

    def __init__(
        self,
        labelled: LabelledGraph,
        ops: RootOps,
        nodes: Int64s,
        iterations: Int64s,
        first: Int64s,
        *,
        is_over_a_list: bool = False,
    ) -> None:
        self._labelled, self._ops, self.is_over_a_list = labelled, ops, is_over_a_list
        self.first = first
        """GPU activity of an incomplete first iteration: it lacks some work, or its sum starts with a number."""
        begun = int(first[0]) if len(first) else int(iterations[0, 0])
        before, root = int(np.searchsorted(nodes, begun)), int(labelled.root_op[begun])
        begin = int(labelled.launch_moment[nodes[before - 1]]) if before else labelled.graph.origin_ns
        end = int(labelled.launch_moment[begun])
        ahead = ops.between(int(labelled.trace.ops.thread[root]), begin, end) if root != NONE else NOTHING
        self._cuts = ahead[ops.named(ahead, *CUTTING)]
        self.cutting = ahead[ops.named(ahead, *CUTTING, *SELECTING)]
        """Rows of `ops` that slice a tensor for all iterations, before the first one."""
        self.gathering = gathered_after(labelled, nodes, int(iterations[-1, -1]))
        """GPU activity directly after the loop that joins the results of the iterations."""
        self._iteration, self._is_backward = Iteration(), False
        count = self._count(iterations)
        self.iterations = iterations.reshape(count, -1) if count and len(iterations) % count == 0 else iterations
        """GPU activity, one row per iteration: of equal layers all, if that many slices were taken."""

    def _count(self, iterations: Int64s) -> int:
        """The number of iterations, by the number of slices taken or joined; 0 if unknown."""
        if len(self._cuts):
            return len(self._ops.views(int(self._cuts[0])))
        taking = self._ops.iterations_with(iterations, *SELECTING)
        return taking + 1 if taking else len(self._gathered_shapes)

    @property
    def _gathered_shapes(self) -> list[tuple[int, ...]]:
        if not len(self.gathering):
            return []
        arguments = self._ops.call(int(self._labelled.root_op[self.gathering[0]])).arguments
        return [tensor.shape for tensor in arguments[0].tensors] if arguments else []

    @property
    def gathered_ns(self) -> int | None:
        """When the loop was dispatched."""
        if not len(self.gathering):
            return None
        return int(self._labelled.trace.ops.end_ns[self._labelled.root_op[self.gathering[-1]]])

    @property
    def is_independent(self) -> bool:
        """Whether its iterations look independent, judged by one in the middle; the same loop is judged once."""
        known = self._labelled.once(_judged_loops)
        key = self.iterations.shape, self.iterations.tobytes(), self._cuts.tobytes(), self.gathering.tobytes()
        if key not in known:
            known[key] = self._judged(), self._iteration
        verdict, self._iteration = known[key]
        return verdict

    def _judged(self) -> bool:
        ops, middle = self._ops, len(self.iterations) // 2
        iteration = self._iteration = Iteration()
        for row in self._cuts.tolist():
            _give(ops, iteration, row)
        parts = len(self._cuts)
        # Without recorded numbers, a selecting op is assumed to select another slice in every iteration.
        before, rows = ops.of_iteration(self.iterations, middle - 1).tolist(), ops.of_iteration(self.iterations, middle)
        for place in self._telling(rows).tolist():
            row, other = int(rows[place]), before[place] if place < len(before) else None
            if ops.names[row] in SELECTING and not _takes_the_same(ops, row, other):
                _give(ops, iteration, row)
                parts += 1
            else:
                iteration.see(ops.call(row), _viewed(ops, row) if ops.names[row] in VIEWS else None)
        for shape in self._gathered_shapes[:1]:
            iteration.gather(shape)
        if not iteration.results:
            return parts > 0 and (len(self.gathering) > 0 or iteration.is_added_up)
        if iteration.is_added_up:
            return True
        if self._all_are_gathered and not iteration.may_update_a_state(parts > 0, self._gathered_shapes):
            return True
        return not iteration.may_carry_a_state and (parts > 0 or len(self.gathering) > 0)

    def _telling(self, rows: Int64s) -> Int64s:
        """Positions of the ops that can change the judgement: they have shapes, or take a slice, or compute last."""
        telling = self._ops.has_shapes[rows] | self._ops.named(rows, *SELECTING)
        telling[np.flatnonzero(~self._ops.named(rows, *VIEWS))[-1:]] = True
        return np.flatnonzero(telling)

    @property
    def _all_are_gathered(self) -> bool:
        """Whether as many results are joined as there are iterations; lists that are too long are not recorded."""
        count, results = len(self.iterations), len(self._gathered_shapes)
        return results in (count, count + 1) or (len(self.gathering) > 0 and not results and count >= LONGEST_LIST)

    def leads_to(self, other: KernelLoop) -> bool:
        """Whether another loop is the backward pass of this one, and therefore as independent as this one."""
        ops, root_op = self._labelled.trace.ops, self._labelled.root_op
        forward = ops.forward_op[root_op[other.iterations[len(other.iterations) // 2]]]
        begin, end = ops.start_ns[root_op[self.iterations[[0, -1], [0, -1]]]]
        known = ops.start_ns[forward[forward != NONE]]
        other._is_backward = bool(len(known)) and bool(((known >= begin) & (known <= end)).all())
        return other._is_backward

    def shared(self, node: int) -> float:
        """Share of the bytes of a matmul common to all iterations: weights that are not sliced, or, in the backward
        pass, the accumulated gradient of a weight."""
        call = self._ops.call(int(self._labelled.root_op[node])) if self._labelled.root_op[node] != NONE else None
        if self._is_backward:
            return float(self._labelled.kernels("gemm")[node])
        if call is None or call.name.removeprefix("aten::") not in PRODUCTS or not self._iteration.parts:
            return 0.0
        sizes = {Key(tensor.shape, tensor.dtype): tensor.bytes for tensor in call.all_tensors() if tensor.shape}
        known = self._iteration.parts | self._iteration.results
        return sum(size for key, size in sizes.items() if key not in known) / max(sum(sizes.values()), 1)

    @property
    def sums_of_gradients(self) -> Bools:
        """Which GPU activity of an iteration accumulates gradients: a batched matmul does that itself."""
        own, root = (rows[self.iterations[0]] for rows in (self._labelled.op, self._labelled.root_op))
        engine = self._labelled.trace.ops.parent[own] == root
        return self._is_backward & engine & self._ops.named(own, *ADDING)

    def rows(self, op: int) -> int:
        """Rows that an op looks up; 0 for other ops."""
        if op == NONE or self._ops.names[op] not in LOOKUPS:
            return 0
        call = self._ops.call(op)
        index = call.maybe_tensor(LOOKUPS[call.name])
        return index.elements if index is not None else 0


def _judged_loops(labelled: LabelledGraph) -> dict[tuple[object, ...], tuple[bool, Iteration]]:
    """Every loop judged so far, with the iteration that was judged."""
    return {}


def _takes_the_same(ops: RootOps, row: int, other: int | None) -> bool:
    """Whether two ops have the same recorded numbers."""
    return other is not None and ops.concrete(row) != "" and ops.concrete(row) == ops.concrete(other)


def _give(ops: RootOps, iteration: Iteration, row: int) -> None:
    """The slice that an op takes for an iteration."""
    taken, shape = ops.call(row).maybe_tensor(0), _viewed(ops, row)
    iteration.give(Key(shape, taken.dtype) if taken is not None and shape else None)


def _viewed(ops: RootOps, row: int) -> tuple[int, ...] | None:
    """The shape of the result of a view, or of the first result of several."""
    return next(iter(ops.views(row)), None)
