"""Loops whose iterations may be independent: the slices they take, and the results that are joined after them."""

from __future__ import annotations

import numpy as np

from warpline.replay.graph_edit import NOTHING
from warpline.replay.labelled_graph import LabelledGraph
from warpline.replay.patterns.gathering import gathered_after
from warpline.replay.patterns.iterations import ADDING, VIEWS, Turn
from warpline.replay.patterns.loops import RootOps
from warpline.replay.patterns.op_results import PRODUCTS, Key
from warpline.replay.patterns.tensor_lists import LONGEST_LIST
from warpline.trace.arrays import NONE, Bools, Int64s

SELECTING = ("aten::select", "aten::slice", "aten::narrow")
"""Ops that take one sample or head of a tensor: a loop that calls them in each iteration may iterate over a batch."""
CUTTING = ("aten::split", "aten::unbind", "aten::chunk", "aten::split_with_sizes", "aten::tensor_split")
"""Ops that take all of them at once."""
LOOKUPS = {"aten::embedding": 1, "aten::index_select": 2}
"""Ops that copy rows, and the position of the argument with the rows."""


class Loop:
    """A run of equal groups of GPU activities, and the enclosing ops."""

    def __init__(
        self,
        labelled: LabelledGraph,
        ops: RootOps,
        nodes: Int64s,
        turns: Int64s,
        first: Int64s,
        *,
        is_over_a_list: bool = False,
    ) -> None:
        self._labelled, self._ops, self.is_over_a_list = labelled, ops, is_over_a_list
        self.first = first
        """GPU activity of an incomplete first iteration: it lacks some work, or its sum starts with a number."""
        begun = int(first[0]) if len(first) else int(turns[0, 0])
        before, root = int(np.searchsorted(nodes, begun)), int(labelled.root_op[begun])
        begin = int(labelled.launch_moment[nodes[before - 1]]) if before else labelled.graph.origin_ns
        end = int(labelled.launch_moment[begun])
        ahead = ops.between(int(labelled.op_spans[2][root]), begin, end) if root != NONE else NOTHING
        self._cuts = ahead[ops.named(ahead, *CUTTING)]
        self.cutting = ahead[ops.named(ahead, *CUTTING, *SELECTING)]
        """Rows of `ops` that slice a tensor for all iterations, before the first one."""
        self.gathering = gathered_after(labelled, nodes, int(turns[-1, -1]))
        """GPU activity directly after the loop that joins the results of the iterations."""
        self._turn, self._is_backward = Turn(), False
        count = self._count(turns)
        self.turns = turns.reshape(count, -1) if count and len(turns) % count == 0 else turns
        """GPU activity, one row per iteration: of equal layers all, if that many slices were taken."""

    def _count(self, turns: Int64s) -> int:
        """The number of iterations, by the number of slices taken or joined; 0 if unknown."""
        if len(self._cuts):
            return len(self._ops.views(int(self._cuts[0])))
        taking = self._ops.turns_with(turns, *SELECTING)
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
        return int(self._labelled.trace.stored("ops")["end_ns"][int(self._labelled.root_op[self.gathering[-1]])])

    @property
    def is_independent(self) -> bool:
        """Whether its iterations look independent, judged by one in the middle; the same loop is judged once."""
        known = self._labelled.once(_judged_loops)
        key = self.turns.shape, self.turns.tobytes(), self._cuts.tobytes(), self.gathering.tobytes()
        if key not in known:
            known[key] = self._judged(), self._turn
        verdict, self._turn = known[key]
        return verdict

    def _judged(self) -> bool:
        ops, middle = self._ops, len(self.turns) // 2
        turn = self._turn = Turn()
        for row in self._cuts.tolist():
            _give(ops, turn, row)
        parts = len(self._cuts)
        # Without recorded numbers, a selecting op is assumed to select another slice in every iteration.
        before, rows = ops.of_turn(self.turns, middle - 1).tolist(), ops.of_turn(self.turns, middle)
        for place in self._telling(rows).tolist():
            row, other = int(rows[place]), before[place] if place < len(before) else None
            if ops.names[row] in SELECTING and not _takes_the_same(ops, row, other):
                _give(ops, turn, row)
                parts += 1
            else:
                turn.see(ops.call(row), _viewed(ops, row) if ops.names[row] in VIEWS else None)
        for shape in self._gathered_shapes[:1]:
            turn.gather(shape)
        if not turn.made:
            return parts > 0 and (len(self.gathering) > 0 or turn.is_added_up)
        if turn.is_added_up:
            return True
        if self._all_are_gathered and not turn.may_update_a_state(parts > 0, self._gathered_shapes):
            return True
        return not turn.may_carry_a_state and (parts > 0 or len(self.gathering) > 0)

    def _telling(self, rows: Int64s) -> Int64s:
        """Positions of the ops that can change the judgement: they have shapes, or take a slice, or compute last."""
        telling = self._ops.has_shapes[rows] | self._ops.named(rows, *SELECTING)
        telling[np.flatnonzero(~self._ops.named(rows, *VIEWS))[-1:]] = True
        return np.flatnonzero(telling)

    @property
    def _all_are_gathered(self) -> bool:
        """Whether as many results are joined as there are iterations; lists that are too long are not recorded."""
        turns, results = len(self.turns), len(self._gathered_shapes)
        return results in (turns, turns + 1) or (len(self.gathering) > 0 and not results and turns >= LONGEST_LIST)

    def leads_to(self, other: Loop) -> bool:
        """Whether another loop is the backward pass of this one, and therefore as independent as this one."""
        forward = self._labelled.trace.ops.forward_op[self._labelled.root_op[other.turns[len(other.turns) // 2]]]
        begin, end = (
            int(self._labelled.op_spans[0][self._labelled.root_op[node]]) for node in self.turns[[0, -1], [0, -1]]
        )
        known = self._labelled.op_spans[0][forward[forward != NONE]]
        other._is_backward = bool(len(known)) and bool(((known >= begin) & (known <= end)).all())
        return other._is_backward

    def shared(self, node: int) -> float:
        """Share of the bytes of a matmul common to all iterations: weights that are not sliced, or, in the backward
        pass, the accumulated gradient of a weight."""
        call = self._ops.call(int(self._labelled.root_op[node])) if self._labelled.root_op[node] != NONE else None
        if self._is_backward:
            return float(self._labelled.kernels("gemm")[node])
        if call is None or call.name.removeprefix("aten::") not in PRODUCTS or not self._turn.parts:
            return 0.0
        sizes = {Key(tensor.shape, tensor.dtype): tensor.bytes for tensor in call.all_tensors() if tensor.shape}
        known = self._turn.parts | self._turn.made
        return sum(size for key, size in sizes.items() if key not in known) / max(sum(sizes.values()), 1)

    @property
    def sums_of_gradients(self) -> Bools:
        """Which GPU activity of an iteration accumulates gradients: a batched matmul does that itself."""
        own, root = (rows[self.turns[0]] for rows in (self._labelled.op, self._labelled.root_op))
        engine = self._labelled.trace.ops.parent[own] == root
        found: Bools = self._is_backward & engine & self._ops.named(own, *ADDING)
        return found

    def rows(self, op: int) -> int:
        """Rows that an op looks up; 0 for other ops."""
        if op == NONE or self._ops.names[op] not in LOOKUPS:
            return 0
        call = self._ops.call(op)
        index = call.maybe_tensor(LOOKUPS[call.name])
        return index.elements if index is not None else 0


def _judged_loops(labelled: LabelledGraph) -> dict[tuple[object, ...], tuple[bool, Turn]]:
    """Every loop judged so far, with the iteration that was judged."""
    return {}


def _takes_the_same(ops: RootOps, row: int, other: int | None) -> bool:
    """Whether two ops have the same recorded numbers."""
    return other is not None and ops.concrete(row) != "" and ops.concrete(row) == ops.concrete(other)


def _give(ops: RootOps, turn: Turn, row: int) -> None:
    """The slice that an op takes for an iteration."""
    taken, shape = ops.call(row).maybe_tensor(0), _viewed(ops, row)
    turn.give(Key(shape, taken.dtype) if taken is not None and shape else None)


def _viewed(ops: RootOps, row: int) -> tuple[int, ...] | None:
    """The shape of the result of a view, or of the first result of several."""
    return next(iter(ops.views(row)), None)
