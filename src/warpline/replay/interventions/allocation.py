"""Fixes of memory: no calls to the driver's allocator inside the step, no growing by copying."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from warpline.kernels import KernelIdentity
from warpline.replay.interventions.casts import keeps_type
from warpline.replay.interventions.registry import PESSIMISTIC, Range, intervention
from warpline.replay.patterns.expansions import Expansions
from warpline.replay.patterns.tensor_lists import LONGEST_LIST
from warpline.replay.scene import Scene
from warpline.replay.workbench import NOTHING, Workbench
from warpline.trace import api_names
from warpline.trace.columns import NONE, Bools, Floats, Int64s, integers
from warpline.trace.names import named
from warpline.work.parse import json_list

APPENDED = Range(0.01, 0.03, 0.3, "not measured yet: a cautious range")
"""Share of a concatenation that remains when only the new part is written into a buffer."""


FILLS = (
    "aten::zeros",
    "aten::zeros_like",
    "aten::new_zeros",
    "aten::ones",
    "aten::ones_like",
    "aten::new_ones",
    "aten::full",
    "aten::full_like",
    "aten::new_full",
)
TURNING = {
    f"aten::{name}"
    for name in (
        "tril",
        "triu",
        "tril_",
        "triu_",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "logical_not",
        "bitwise_not",
        "mul",
        "sub",
        "rsub",
        "neg",
    )
}
"""Ops that make another constant of a constant."""
MAKES_COPIES = ("aten::clone", "aten::contiguous", "aten::_to_copy", "aten::cat")
MOST_GROWING = 3
"""Pieces that a growing tensor is joined of: what was there, on one side or both, and what is new."""
LARGE_FILL_NS = 5_000
"""Fills shorter than this are not worth keeping a buffer for."""


COLLECTING = r"^<built-in (function|method) collect\b"
"""The frame of gc.collect."""
COLLECTION_NS = 1_000_000
"""Python that is silent for longer before memory is freed collects garbage: gc.collect and empty_cache go together, and
walking the objects of a program that has imported torch takes tens of milliseconds."""


def _calls(scene: Scene, pattern: str) -> Int64s:
    return np.flatnonzero(scene.calls_like(pattern) & scene.in_steps)


def _drop(bench: Workbench, calls: Int64s) -> None:
    """The calls go; what the program did before them stays."""
    bench.graph.duration[calls] = 0.0
    bench.stop_waiting(calls)


@intervention(
    "no_empty_cache",
    35,
    "The allocator's cache is not emptied inside the step, so that nothing is freed and allocated anew.",
    "Frees and allocations of device memory within steps come from emptying the cache.",
    "Garbage is no longer collected for it (gc.collect): a long silence of Python before memory is freed, outside ops, "
    "or what frames show.",
    "The worst case keeps the allocations and drops only the frees, with their implicit synchronisation.",
)
def no_empty_cache(bench: Workbench, case: int) -> int:
    """No frees, no allocations."""
    frees = _calls(bench.scene, api_names.EMPTY_CACHE_FREE)
    if not len(frees):
        return 0
    calls = frees if case == PESSIMISTIC else np.union1d(frees, _calls(bench.scene, api_names.ALLOCATION))
    _drop(bench, calls)
    if case != PESSIMISTIC:
        bench.graph.duration *= 1 - collecting(bench.scene)
    return len(calls)


def collecting(scene: Scene) -> Floats:
    """Share of each CPU segment within steps in which garbage is collected, for memory that is then freed."""
    frames = scene.trace.python.filter(named(COLLECTING))
    if len(frames):
        shown = scene.covered(*(integers(frames[name]) for name in ("start_ns", "end_ns", "thread")))
        return np.where(scene.in_steps, shown, 0.0)
    frees = _calls(scene, api_names.EMPTY_CACHE_FREE)
    before = scene.segment_of_call[frees[scene.op_of_call[frees] == NONE]]
    before = before[before != NONE]
    silent = 1 - scene.op_share[before]
    long = (silent * scene.graph.duration[before] > COLLECTION_NS) & (scene.input_share[before] == 0)
    result = np.zeros(len(scene.graph))
    result[before[long]] = silent[long]
    return result


def _concatenates(identity: KernelIdentity) -> bool:
    return identity.op in {"cat", "concat", "stack"}


def joins(scene: Scene) -> Bools:
    """Kernels that join tensors, but for those that autograd puts together itself: its gradients are made anew whatever
    the program writes."""
    joining = scene.kernels_where(_concatenates) | scene.under_op("aten::cat")
    return joining & scene.is_work & ~scene.of_autograd


def joins_old_pieces(scene: Scene) -> Bools:
    """Joins of more pieces than work ran since the join before, or since the step began: they are not all new."""
    result, chosen = np.zeros(len(scene.graph), bool), scene.once(joins)
    for lane in np.unique(scene.graph.lane[chosen]):
        nodes = scene.work[scene.graph.lane[scene.work] == lane]
        spots = np.flatnonzero(chosen[nodes])
        begins = np.flatnonzero(np.diff(scene.step[nodes], prepend=scene.step[nodes[:1]] - 1))
        since = np.maximum(begins[np.searchsorted(begins, spots, side="right") - 1], np.append(0, spots[:-1] + 1))
        pieces = np.array([_pieces(scene, node) for node in nodes[spots].tolist()], np.int64)
        result[nodes[spots]] = pieces > np.maximum(spots - since, MOST_GROWING)
    return result


def _pieces(scene: Scene, node: int) -> int:
    """How many tensors a join takes, by its recorded shapes; 0 where none were recorded."""
    shapes, strides = (json_list(scene.op_column(column)[node])[:1] for column in ("shapes", "strides"))
    # Where strides are recorded, so are the shapes in lists, but for long ones.
    long = shapes == strides == [[]]
    return LONGEST_LIST + 1 if long else len(_piece_shapes(scene, node))


def _piece_shapes(scene: Scene, node: int) -> list[list[int]]:
    """The recorded shapes of the tensors that a join takes."""
    shapes = json_list(scene.op_column("shapes")[node])[:1]
    listed = shapes[0] if shapes and isinstance(shapes[0], list) else []
    return [shape for shape in listed if isinstance(shape, list)]


def grows(scene: Scene) -> Bools:
    """Joins of a tensor with a few smaller ones: what was there is copied for the sake of what is new."""
    return _joins_of_few(scene, lambda sizes: 2 * max(sizes) > sum(sizes))


def joins_equals(scene: Scene) -> Bools:
    """Joins of a few tensors none of which is as large as the others together: halves, branches of a network."""
    return _joins_of_few(scene, lambda sizes: 2 * max(sizes) <= sum(sizes))


def _joins_of_few(scene: Scene, like: Callable[[list[int]], bool]) -> Bools:
    result = np.zeros(len(scene.graph), bool)
    for node in np.flatnonzero(scene.once(joins)).tolist():
        sizes = [prod(shape) for shape in _piece_shapes(scene, node)]
        result[node] = 1 < len(sizes) <= MOST_GROWING and like(sizes)
    return result


def turned_into(scene: Scene, fill: int) -> Int64s:
    """The kernels right after a fill that make a constant of what it filled, such as a triangular mask."""
    nodes = scene.work[scene.graph.lane[scene.work] == scene.graph.lane[fill]]
    size, found = _only_size(scene, fill), list[int]()
    for node in nodes[np.searchsorted(nodes, fill) + 1 :].tolist():
        if not size or scene.op_name[node] not in TURNING or _only_size(scene, node) != size:
            break
        found.append(node)
    return np.array(found, np.int64)


def _only_size(scene: Scene, node: int) -> int:
    """Elements of the one tensor that the op around a node takes; 0 where it takes more, or none is recorded."""
    if scene.op[node] == NONE:
        return 0
    tensors = [tensor for tensor in scene.op_calls.alone(int(scene.op[node])).all_tensors() if not tensor.is_number]
    return tensors[0].elements if len(tensors) == 1 else 0


@intervention(
    "preallocate",
    35,
    "Buffers are allocated once, before the loop, and filled in place.",
    "Allocations inside the step disappear.",
    "Concatenations that grow a tensor write only the new part; those of more pieces than work ran since the last one "
    "join what was there before, and go; those of two or three tensors of like size stay.",
    "Gradients that autograd joins or fills stay.",
    "Large buffers are not filled anew, and what is copied into their parts is written there in the first place.",
    "Constants that are made of such a fill at once (ones().tril() == 0) are kept.",
)
def preallocate(bench: Workbench, case: int) -> int:
    """No allocations, short concatenations."""
    scene = bench.scene
    # Memory that is given back inside the step comes from emptying the cache: another fix.
    frees = len(_calls(scene, api_names.EMPTY_CACHE_FREE))
    calls = NOTHING if frees else _calls(scene, api_names.ALLOCATION)
    _drop(bench, calls)
    joined = np.flatnonzero(scene.once(joins) & ~scene.once(joins_equals) & scene.in_steps & ~bench.gone)
    old = joined[scene.once(joins_old_pieces)[joined]] if case != PESSIMISTIC else NOTHING
    bench.remove_work(old)
    grown = np.setdiff1d(joined, old)
    now = bench.graph.duration[grown]
    bench.shorten(grown, np.maximum(now * APPENDED.at(case), np.minimum(now, 1_500.0)))
    filled = scene.under_op(*FILLS) & ~scene.of_autograd
    zeros = np.flatnonzero(filled & scene.is_work & scene.in_steps & ~bench.gone)
    large = zeros[bench.graph.duration[zeros] >= LARGE_FILL_NS]
    masks = {fill: turned_into(scene, fill) for fill in large.tolist()}
    bench.remove_work(np.concatenate([large, *masks.values()]))
    plain_copy = (scene.op_name == "aten::copy_") & ~scene.under_op(*MAKES_COPIES)
    into = np.flatnonzero(plain_copy & scene.in_steps & ~bench.gone)
    into = into[scene.work_text("copy_kind")[into] != "HtoD"]
    if not all(len(mask) for mask in masks.values()) and case != PESSIMISTIC:
        bench.remove_work(into)
    return len(calls) + len(joined) + len(large)


@intervention(
    "drop_copies",
    13,
    "Clones, contiguous copies and changes of layout on the device that nothing needs are left out.",
    "What reads the copy can read the original: products take either layout, and nobody writes to it.",
    "Copies that autograd makes itself, of gradients, stay.",
    "Tensors that were expanded or repeated are read where they are: kernels that the bytes of such a copy bound take "
    "as much less time as there are fewer.",
    "The worst case keeps half of them.",
)
def drop_copies(bench: Workbench, case: int) -> int:
    """No kernels of clone, contiguous and repeat, nor of `to` that keeps the type."""
    scene = bench.scene
    usable = scene.in_steps & ~bench.gone & scene.is_work
    copying = scene.under_op("aten::clone", "aten::contiguous", "aten::repeat")
    copies = np.flatnonzero((copying | scene.once(keeps_type)) & usable & ~scene.of_autograd)
    copies = copies[~np.isin(scene.work_text("copy_kind")[copies], ["HtoD", "DtoH"])]
    dropped = copies[::2] if case == PESSIMISTIC else copies
    bench.remove_work(dropped)
    Expansions(bench, dropped).shorten_readers()
    return len(copies)
