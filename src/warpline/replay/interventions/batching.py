"""The same small kernels, launched for one sample (or head) after the other, done once for a batch."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

import numpy as np

from warpline.replay.costs import constants
from warpline.replay.graph.model import SYNC
from warpline.replay.interventions.grids import LIBRARY_CLASSES, Grids
from warpline.replay.interventions.optimizers import in_optimizer
from warpline.replay.interventions.registry import intervention
from warpline.replay.patterns.gathering import gathered_after
from warpline.replay.patterns.iterations import ADDING, VIEWS, Turn
from warpline.replay.patterns.loops import RootOps, begun_before, loops
from warpline.replay.patterns.op_results import PRODUCTS, Key
from warpline.replay.patterns.tensor_lists import LONGEST_LIST, lists_of_tensors
from warpline.replay.scene import Scene
from warpline.replay.workbench import NOTHING, Workbench
from warpline.trace.columns import NONE, Bools, Floats, Int64s, integers

SMALL_KERNEL_NS = 20_000
"""A longer kernel fills the device by itself: a batch of it takes the sum."""
SELECTING = ("aten::select", "aten::slice", "aten::narrow")
"""Ops that take one sample or head out of a tensor: a loop that calls them in each turn may walk over a batch."""
CUTTING = ("aten::split", "aten::unbind", "aten::chunk", "aten::split_with_sizes", "aten::tensor_split")
"""Ops that take all of them out at once."""
OPS_OF_A_SPAN = 5
"""Where spans begin elsewhere in every turn, a batch needs these in addition for each dimension that they are cut in:
their begins go to the device, begin and end are compared with all positions, and what is inside is found."""
LOOKUPS = {"aten::embedding": 1, "aten::index_select": 2}
"""Ops that copy rows, and which of their arguments says how many."""


@intervention(
    "batch",
    40,
    "A group of small kernels that is repeated for one sample after the other is launched once for all of them.",
    "Turns do not depend on each other if tensors are cut into parts for them or their results are put together, and "
    "nothing but such parts goes into a turn with the shape and type of what it makes, as a state does; nor if their "
    "results are only added up. Their backward passes are as independent as they are, and so are updates and norms of "
    "tensors of different shapes.",
    "On the device the batch takes a little more than one turn, but never less than the roofline, nor than all turns "
    "where each fills the device; each row that is looked up takes a block.",
    "The CPU takes as long for the batch as for a typical turn, and a little for each tensor of a list; nothing is cut "
    "into turns or gathered from them.",
)
def batch(bench: Workbench, case: int) -> int:
    """Of each run of equal groups, the first stays, with the time of the batch."""
    scene, graph = bench.scene, bench.graph
    changed, removed = 0, [NOTHING]
    batched = _Batched(scene)
    for loop in _loops(bench):
        turns = loop.turns
        bench.remove_work(loop.first)
        graph.duration[turns[0]] = batched.duration_ns(loop, graph.duration, case)
        sums = loop.sums_of_gradients
        removed += [turns[1:].reshape(-1), turns[0, sums]]
        bench.remove_ops(loop.cutting)
        longer = 1 + (OPS_OF_A_SPAN * loop.uneven_spans - int(sums.sum())) / turns.shape[1]
        _keep_one_turn(bench, turns, loop.gathered_ns, longer)
        if loop.is_over_a_list and scene.call_of_work[turns[0, -1]] != NONE:
            graph.duration[scene.call_of_work[turns[0, -1]]] += turns.size * constants.FOREACH_TENSOR_NS.at(case)
        bench.remove_work(loop.gathering)
        changed += turns[1:].size
    bench.remove_work(np.concatenate(removed), dispatch=False)
    return changed


def _loops(bench: Workbench) -> Iterator[_Loop]:
    """Loops over small work whose turns do not depend on each other."""
    scene, graph = bench.scene, bench.graph
    names = scene.kind + "|" + np.where(scene.op == NONE, scene.name, scene.op_name)
    labels = names + "|" + scene.op_column("shapes")
    usable = scene.in_steps & ~bench.gone & scene.is_work
    ops: RootOps | None = None
    forwards: list[_Loop] = []
    optimizer = scene.once(in_optimizer)
    for lane in np.unique(graph.lane[usable]):
        nodes = scene.work[(graph.lane[scene.work] == lane) & usable[scene.work]]
        for turns in loops(nodes, np.unique(labels[nodes], return_inverse=True)[1], scene.step):
            small = np.median(graph.duration[turns], axis=0).max() <= SMALL_KERNEL_NS
            if small and (scene.kind[turns[0]] == "kernel").any() and not _waits(bench, turns):
                ops = ops or RootOps(scene)
                loop = _Loop(scene, ops, nodes, turns, begun_before(nodes, names, turns, scene.step))
                if loop.is_independent or any(forward.leads_to(loop) for forward in forwards):
                    forwards.append(loop)
                    usable[turns] = False
                    yield loop
        nodes = nodes[usable[nodes] & ~optimizer[nodes]]
        for turns in lists_of_tensors(scene, nodes, np.unique(names[nodes], return_inverse=True)[1]):
            ops = ops or RootOps(scene)
            yield _Loop(scene, ops, nodes, turns, NOTHING, is_over_a_list=True)


class _Batched:
    """What kernels take that do the work of all turns."""

    def __init__(self, scene: Scene) -> None:
        self._scene, self._floor = scene, scene.floor_ns()
        # A library's product of a batch has another grid than that of one turn.
        self._full = np.where(scene.kernels(*LIBRARY_CLASSES), 0.0, np.minimum(Grids(scene).waves, 1.0))
        self._full[scene.kind == "memcpy"] = 1.0

    def duration_ns(self, loop: _Loop, duration: Floats, case: int) -> Floats:
        """For each kernel of a turn, what one for all of them takes."""
        turns = loop.turns
        whole, typical = duration[turns].sum(0), np.median(duration[turns], axis=0)
        crowded = (duration[turns] * self._full[turns]).sum(0)
        shared = np.array([loop.shared(node) for node in turns[0].tolist()])
        floor = self._floor[turns]
        least = np.minimum((1 - shared) * floor.sum(0) + shared * floor.max(0), whole)
        rows = np.array([loop.rows(root) for root in self._scene.root_op[turns[0]].tolist()])
        looked_up = constants.LOOKUP_ROW_NS.at(case) * len(turns) * rows
        result: Floats = np.maximum.reduce([constants.BATCHED.at(case) * typical, crowded, least, looked_up])
        bounded: Floats = np.minimum(result, np.maximum(whole, looked_up))
        return bounded


class _Loop:
    """A run of equal groups of work, and the ops around it."""

    def __init__(
        self, scene: Scene, ops: RootOps, nodes: Int64s, turns: Int64s, first: Int64s, *, is_over_a_list: bool = False
    ) -> None:
        self._scene, self._ops, self.is_over_a_list = scene, ops, is_over_a_list
        self.first = first
        """The work of a turn before the others that lacks some of theirs, or whose sum begins with a number."""
        begun = int(first[0]) if len(first) else int(turns[0, 0])
        before, root = int(np.searchsorted(nodes, begun)), int(scene.root_op[begun])
        begin = int(scene.launch_moment[nodes[before - 1]]) if before else scene.graph.origin_ns
        end = int(scene.launch_moment[begun])
        ahead = ops.between(int(scene.op_spans[2][root]), begin, end) if root != NONE else NOTHING
        self._cuts = ahead[ops.named(ahead, *CUTTING)]
        self.cutting = ahead[ops.named(ahead, *CUTTING, *SELECTING)]
        """Rows of `ops` that take the turns' parts out of a tensor, ahead of the first."""
        self.gathering = gathered_after(scene, nodes, int(turns[-1, -1]))
        """The work right after the loop that puts the results of its turns together."""
        self._turn, self._is_backward = Turn(), False
        count = self._count(turns)
        self.turns = turns.reshape(count, -1) if count and len(turns) % count == 0 else turns
        """The work with a row a turn: of a network whose layers are alike, all layers, where so many parts were cut."""

    def _count(self, turns: Int64s) -> int:
        """How many turns there are by the parts that are cut or put together; 0 where that is not known."""
        if len(self._cuts):
            return len(self._ops.views(int(self._cuts[0])))
        taking = self._ops.turns_with(turns, *SELECTING)
        return taking + 1 if taking else len(self._gathered_shapes)

    @property
    def _gathered_shapes(self) -> list[tuple[int, ...]]:
        if not len(self.gathering):
            return []
        arguments = self._ops.call(int(self._scene.root_op[self.gathering[0]])).arguments
        return [tensor.shape for tensor in arguments[0].tensors] if arguments else []

    @property
    def gathered_ns(self) -> int | None:
        """When that was dispatched."""
        if not len(self.gathering):
            return None
        return int(self._scene.trace.ops["end_ns"][int(self._scene.root_op[self.gathering[-1]])])

    @property
    def is_independent(self) -> bool:
        """Whether its turns seem not to depend on each other: one in the middle is looked at."""
        ops, middle = self._ops, len(self.turns) // 2
        turn = self._turn = Turn()
        for row in self._cuts.tolist():
            _give(ops, turn, row)
        parts = len(self._cuts)
        # Without numbers, whatever selects is taken for one that selects another part in every turn.
        before = ops.of_turn(self.turns, middle - 1).tolist()
        for row, other in zip_longest(ops.of_turn(self.turns, middle).tolist(), before):
            if row is None:
                break
            same = other is not None and ops.concrete(row) and ops.concrete(row) == ops.concrete(other)
            if ops.names[row] in SELECTING and not same:
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

    @property
    def _all_are_gathered(self) -> bool:
        """Whether as many results are put together as there are turns; lists that are too long were not recorded."""
        turns, results = len(self.turns), len(self._gathered_shapes)
        return results in (turns, turns + 1) or (len(self.gathering) > 0 and not results and turns >= LONGEST_LIST)

    def leads_to(self, other: _Loop) -> bool:
        """Whether another loop is the backward pass of this one: as independent as this one is."""
        forward = integers(self._scene.trace.ops["forward_op"])[self._scene.root_op[other.turns[len(other.turns) // 2]]]
        begin, end = (int(self._scene.op_spans[0][self._scene.root_op[node]]) for node in self.turns[[0, -1], [0, -1]])
        known = self._scene.op_spans[0][forward[forward != NONE]]
        other._is_backward = bool(len(known)) and bool(((known >= begin) & (known <= end)).all())
        return other._is_backward

    def shared(self, node: int) -> float:
        """Share of a product's bytes that all turns have in common: weights that are not cut for a turn, or, backwards,
        what a weight's gradient is added up in."""
        call = self._ops.call(int(self._scene.root_op[node])) if self._scene.root_op[node] != NONE else None
        if self._is_backward:
            return float(self._scene.kernels("gemm")[node])
        if call is None or call.name.removeprefix("aten::") not in PRODUCTS or not self._turn.parts:
            return 0.0
        sizes = {Key(tensor.shape, tensor.dtype): tensor.bytes for tensor in call.all_tensors() if tensor.shape}
        known = self._turn.parts | self._turn.made
        return sum(size for key, size in sizes.items() if key not in known) / max(sum(sizes.values()), 1)

    @property
    def sums_of_gradients(self) -> Bools:
        """Which work of a turn adds its gradients to those of the turns before: products over a batch do that."""
        own, root = (rows[self.turns[0]] for rows in (self._scene.op, self._scene.root_op))
        engine = integers(self._scene.trace.ops["parent"])[own] == root
        found: Bools = self._is_backward & engine & self._ops.named(own, *ADDING)
        return found

    def rows(self, op: int) -> int:
        """Rows that an op looks up; 0 for other ops."""
        if op == NONE or self._ops.names[op] not in LOOKUPS:
            return 0
        call = self._ops.call(op)
        index = call.maybe_tensor(LOOKUPS[call.name])
        return index.elements if index is not None else 0

    @property
    def uneven_spans(self) -> int:
        """Dimensions in which parts are cut that do not follow each other from turn to turn."""
        ops, middle = self._ops, len(self.turns) // 2
        rows = [ops.of_turn(self.turns, middle + turn).tolist() for turn in (-1, 0, 1)]
        uneven: set[tuple[str, tuple[int, ...] | None]] = set()
        for three in zip(*rows, strict=False):
            if {str(ops.names[row]) for row in three} == {"aten::slice"}:
                first, second, third = (ops.call(row).integer(2, 0) for row in three)
                if second - first != third - second:
                    uneven.add((ops.call(three[1]).text(1), _viewed(ops, three[1])))
        return len(uneven)


def _give(ops: RootOps, turn: Turn, row: int) -> None:
    """The part that an op cuts out for a turn."""
    taken, shape = ops.call(row).maybe_tensor(0), _viewed(ops, row)
    turn.give(Key(shape, taken.dtype) if taken is not None and shape else None)


def _viewed(ops: RootOps, row: int) -> tuple[int, ...] | None:
    """The shape of what a view gives, or of the first of several."""
    return next(iter(ops.views(row)), None)


def _keep_one_turn(bench: Workbench, turns: Int64s, gathered_ns: int | None, longer: float) -> None:
    """The first turn keeps its CPU time, or a typical turn's where that is less: the first is often a cold one.

    The batch takes so many times `longer`. What follows it goes, to the end of the last turn, or of the op that gathers
    the results.
    """
    scene, graph = bench.scene, bench.graph
    calls = scene.call_of_work[turns[:, -1]]
    if NONE in calls:
        return
    lane = int(graph.lane[calls[0]])
    nodes = np.flatnonzero(~scene.is_work & (graph.lane == lane))
    ends = np.searchsorted(nodes, calls) + 1
    spent = np.append(0.0, graph.duration[nodes].cumsum())
    typical = float(np.median(np.diff(spent[ends])))
    # What precedes the loop lies in the segment before its first call: that stays as it is.
    first = nodes[max(ends[0] - int(np.median(np.diff(ends))) + 1, 0) : ends[0]]
    graph.duration[first] *= longer * min(1.0, typical / max(float(graph.duration[first].sum()), 1.0))
    bench.remove_cpu(lane, int(graph.measured_end[calls[0]]), gathered_ns or int(graph.measured_end[calls[-1]]))


def _waits(bench: Workbench, turns: Int64s) -> bool:
    """Whether the CPU waits for the device inside the loop, so that a turn may depend on the one before."""
    moments = bench.scene.launch_moment[turns]
    waiting = bench.graph.edge_to[bench.graph.edge_kind == SYNC]
    when = bench.graph.measured_start[waiting]
    return bool(((when > moments[0, 0]) & (when < moments[-1, -1])).any())
