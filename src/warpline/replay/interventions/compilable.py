"""Ops as a compiler sees them: what they walk over, what they reduce, and what they read and write."""

from __future__ import annotations

from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import numpy as np

from warpline.analyses.op_calls import OpCalls
from warpline.replay.interventions.fusing import BACK_STEPS, UNROLLED, Shape, Unit, groups
from warpline.replay.model import Int64s
from warpline.replay.scene import Scene
from warpline.trace.nesting import NONE
from warpline.work.elementwise import SIGNATURES, in_place
from warpline.work.model import Launch, OpCall, Tensor, Unknowable, Work
from warpline.work.norm import FORWARD_STEPS as NORM_FORWARD_STEPS
from warpline.work.shapes import broadcast, typed
from warpline.work.softmax import FORWARD_STEPS

REDUCING = {
    "sum": 1, "nansum": 1, "prod": 1, "mean": 1, "amax": 1, "amin": 1, "logsumexp": 1, "max": 1, "min": 1, "argmax": 1,
    "argmin": 1, "any": 1, "all": 1, "norm": 2, "linalg_vector_norm": 2, "var": 1, "std": 1, "var_mean": 1,
    "std_mean": 1,
}  # fmt: skip
"""Ops that reduce, and which argument says over what."""
SOFTMAX = {"_softmax": 1, "_log_softmax": 1, "_softmax_backward_data": 2, "_log_softmax_backward_data": 2}
"""The same for those that give each element its share of the result."""
SOFTMAX_STEPS = 9
"""As many ops as a compiled one takes the time of: entropies over 65,536 words, 256 µs in all, say 9."""
NORMS = ("native_layer_norm", "native_layer_norm_backward", "_fused_rms_norm", "_fused_rms_norm_backward", "rms_norm")
GROUP_NORM, GROUPS_OF_NORM = "native_group_norm", 6
"""That op, and which argument says how many groups an image has."""
NORM_STEPS = 10
"""Likewise: compiled layer norms of 16.8 M elements take 25 µs, with an addition 31."""
COMPOUND = 3
"""Functions of at least so many steps are more than one op."""
SCATTERING = (
    "scatter", "scatter_add", "scatter_reduce", "index_put", "_index_put_impl", "index_add", "index_copy", "index_fill",
    "index_reduce", "masked_scatter", "embedding_dense_backward",
)  # fmt: skip
"""Ops that write to places which only the data tell: a kernel of their own, between what comes before and after."""
PICKING = ("index", "index_select", "gather", "embedding", "roll", "flip", "take", "take_along_dim")
"""Ops whose elements come from anywhere in their input."""
JOINING = ("cat", "stack", "_cat")
JOINING_STEPS = 2
"""For each of the pieces, whichever of them an element comes from: where it would be, and whether it is there."""
BY_ELEMENT = ("elementwise", "fill", "copy", "random", "dropout", "dropout backward")
"""Families of work in which an element of the result comes from one of each operand."""


@dataclass(frozen=True, slots=True)
class Fused:
    """Work that a compiler makes one kernel of."""

    nodes: Int64s
    parts: tuple[tuple[float, int], ...] | None
    """Bytes and operations of that kernel, or of the two that it really is; None where an op is not known."""
    cut_up: bool
    """Whether a second kernel adds up the parts of its rows."""
    begins_turn: bool
    """Whether a turn of a loop begins with it."""


class _Compiler:
    """The ops of a trace, and what becomes of chains of them; found once, since every trial asks."""

    def __init__(self, scene: Scene) -> None:
        # The scene is what this is found by, and must not be held by it.
        self._op, self._name, self._calls = scene.op, scene.name, OpCalls(scene.trace)
        self._units: dict[object, Unit | None] = {}
        self._chains: dict[bytes, list[Fused]] = {}

    def fused(self, chain: Int64s) -> list[Fused]:
        """What a chain of work becomes."""
        key = chain.tobytes()
        if key not in self._chains:
            rows = self._op[chain]
            ops = np.split(chain, np.flatnonzero((np.diff(rows) != 0) | (rows[1:] == NONE)) + 1)
            self._chains[key] = [
                Fused(
                    np.concatenate([ops[member] for member in group.members]),
                    tuple(group.kernels) if group.known else None,
                    group.cut_up,
                    group.begins_turn,
                )
                for group in groups([self._unit(nodes) for nodes in ops])
            ]
        return self._chains[key]

    def _unit(self, nodes: Int64s) -> Unit | None:
        """The op that launched these kernels."""
        op = int(self._op[nodes[0]])
        if op == NONE:
            return None
        launches = tuple(Launch(name) for name in self._name[nodes].tolist())
        key = self._calls.recorded(op), launches
        if key not in self._units:
            self._units[key] = unit_of(self._calls.call(op, launches), self._calls.work(op, launches))
        return self._units[key]


_COMPILERS: WeakKeyDictionary[Scene, _Compiler] = WeakKeyDictionary()


def fused(scene: Scene, chain: Int64s) -> list[Fused]:
    """The kernels that a compiler would make of a chain of work."""
    if scene not in _COMPILERS:
        _COMPILERS[scene] = _Compiler(scene)
    return _COMPILERS[scene].fused(chain)


def unit_of(call: OpCall, work: Work | None) -> Unit | None:
    """The op as a compiler sees it; None where its shapes were not recorded, or nothing is known about it."""
    name = call.name.removeprefix("aten::").split(".")[0]
    over = in_place(name)
    name = name.removesuffix("_") if over else name
    if name in SCATTERING:
        return Unit(name, (), (1,), 0, alone=True)
    if work is None or not call.name.startswith("aten::"):
        return None
    try:
        unit = _unit(name, call, work)
    except Unknowable:
        return None
    # A copy writes into a tensor that was made for it.
    return replace(unit, in_place=True) if unit and over and work.model == "elementwise" else unit


def _unit(name: str, call: OpCall, work: Work) -> Unit | None:
    tensors = [tensor for tensor in call.all_tensors() if not tensor.is_number] or call.all_tensors()
    if name in JOINING:
        pieces = typed(call.tensors(0), call)
        elements = sum(piece.elements for piece in pieces)
        steps = JOINING_STEPS * len(pieces)
        return Unit(name, pieces, (elements,), work.written_bytes, steps=steps, moves=True, joins=True)
    if not tensors:
        return None
    first = tensors[0]
    if name in PICKING:
        elements = work.written_bytes // first.item_bytes
        places = (tensor for tensor in tensors[1:] if tensor.elements <= elements)
        return Unit(name, (Tensor((elements,), first.dtype), *places), (elements,), work.written_bytes, moves=True)
    if name in REDUCING and work.model == "reduction":
        dims = _dims(call, REDUCING[name], len(first.shape))
        return _reduction(Unit(name, (first,), first.shape, work.written_bytes, dims))
    if name in SOFTMAX or name in NORMS:
        whole = tuple(tensor for tensor in tensors if tensor.shape == first.shape)
        whole_op, parts = (SOFTMAX_STEPS, FORWARD_STEPS) if name in SOFTMAX else (NORM_STEPS, NORM_FORWARD_STEPS)
        steps = max(BACK_STEPS, whole_op * work.vector_flops // max(parts * first.elements, 1))
        dims = _rows_of(name, call, first)
        return Unit(name, whole, first.shape, work.written_bytes, dims, back=True, steps=steps)
    if name == GROUP_NORM:
        rows = first.shape[0] * call.integer(GROUPS_OF_NORM)
        shape = rows, first.elements // max(rows, 1)
        return Unit(name, (first,), shape, work.written_bytes, (1,), back=True, steps=NORM_STEPS)
    if work.model not in BY_ELEMENT:
        return None
    operands = tuple(tensors[1:] if name == "copy" else [] if work.model == "fill" else tensors)
    signature = SIGNATURES.get(f"aten::{name}")
    steps = signature.steps if signature and signature.steps >= COMPOUND else 1
    return Unit(name, operands, broadcast(tensor.shape for tensor in tensors), work.written_bytes, steps=steps)


def _reduction(unit: Unit) -> Unit:
    """A reduction; of short rows, an elementwise op that walks over them."""
    if unit.row >= UNROLLED:
        return unit
    return Unit(unit.name, unit.operands, (unit.rows,), unit.written, steps=unit.row)


def _rows_of(name: str, call: OpCall, x: Tensor) -> Shape:
    """The dimensions that a softmax or a norm takes together."""
    rank = len(x.shape)
    if name in SOFTMAX:
        return _dims(call, SOFTMAX[name], rank)
    normal = next((sizes for sizes in (call.integers(position) for position in (1, 2)) if sizes), x.shape[-1:])
    return tuple(range(max(rank - len(normal), 0), rank))


def _dims(call: OpCall, position: int, rank: int) -> Shape:
    """The dimensions given as a list or a number, counted from the first; all of them where none are given."""
    text = call.text(position)
    given = call.integers(position) or ((int(text),) if text.lstrip("-").isdigit() else ())
    if not given or len(call.arguments) <= 1:
        return tuple(range(rank))
    if not all(-rank <= dim < rank for dim in given):
        raise Unknowable(f"{call.name} names a dimension that its input lacks")
    return tuple(sorted(dim % rank for dim in given))
