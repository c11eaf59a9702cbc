"""Ops as a compiler sees them: what they iterate over, reduce, read and write."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from warpline.replay.compiler.grouping import BACK_STEPS, UNROLLED, Shape, Unit, groups
from warpline.replay.labelled_graph import LabelledGraph
from warpline.trace.arrays import NONE, Bools, Floats, Int64s
from warpline.trace.table import filled
from warpline.work.elementwise import SIGNATURES, in_place
from warpline.work.model import KernelLaunch, OpCall, Tensor, Unknowable, Work
from warpline.work.norm import FORWARD_STEPS as NORM_FORWARD_STEPS
from warpline.work.shapes import broadcast, typed
from warpline.work.softmax import FORWARD_STEPS

REDUCING = {
    "sum": 1,
    "nansum": 1,
    "prod": 1,
    "mean": 1,
    "amax": 1,
    "amin": 1,
    "logsumexp": 1,
    "max": 1,
    "min": 1,
    "argmax": 1,
    "argmin": 1,
    "any": 1,
    "all": 1,
    "norm": 2,
    "linalg_vector_norm": 2,
    "var": 1,
    "std": 1,
    "var_mean": 1,
    "std_mean": 1,
}
"""Ops that reduce, and the position of the argument with the dimensions."""
SOFTMAX = {"_softmax": 1, "_log_softmax": 1, "_softmax_backward_data": 2, "_log_softmax_backward_data": 2}
"""The same for softmax ops, which apply the result of the row to each element."""
SOFTMAX_STEPS = 12
"""Cost per element of a compiled softmax, in additions. Measured: entropies over 65,536 words take 256 µs."""
NORMS = ("native_layer_norm", "native_layer_norm_backward", "_fused_rms_norm", "_fused_rms_norm_backward", "rms_norm")
GROUP_NORM, GROUPS_OF_NORM = "native_group_norm", 6
"""The op, and the position of the argument with the number of groups."""
NORM_STEPS = 15
"""Likewise. Measured: compiled layer norms of 16.8 M elements take 25 µs, with an addition 31 µs."""
REDUCING_STEPS = 3
"""Likewise. Measured on distances of 64-element vectors (a difference, a square, a sum)."""
ROOT, TANH, ERF = 3, 5, 12
"""Cost of compiled functions, in additions: logarithms, exponentials, roots and quotients (measured on a focal loss and
on option prices), tanh (an activation), and erf (option prices, two exact GELUs)."""
POWER = 12
"""The exponential of a multiplied logarithm, with signs and rounding handled."""
POWERS = {"1": 1, "2": 1, "3": 2, "4": 2, "0.5": ROOT, "-0.5": ROOT, "-1": ROOT}
"""Powers computed as multiplications or roots."""
COMPOUND = 3
"""Other functions of at least this many steps count as several ops."""
FUNCTIONS = {
    name: steps
    for steps, names in {
        ROOT: "exp exp2 log log2 log10 sqrt rsqrt reciprocal div divide true_divide sin cos",
        TANH: "tanh expm1 log1p tan sinh cosh logaddexp logaddexp2 xlogy atan2 hypot fmod remainder softplus elu celu",
        1 + 2 * ROOT: "sigmoid",
        2 + 2 * ROOT: "silu swish log_sigmoid logit",
        ERF: "erf erfc erfinv asin acos atan asinh acosh atanh lgamma digamma",
        4 + 2 * ROOT: "silu_backward",
        4 + ERF: "gelu mish",
        8 + ERF + ROOT: "gelu_backward mish_backward",
    }.items()
    for name in names.split()
}
"""Functions that cost more than an addition, and their cost in additions."""
SCATTERING = (
    "scatter",
    "scatter_add",
    "scatter_reduce",
    "index_put",
    "_index_put_impl",
    "index_add",
    "index_copy",
    "index_fill",
    "index_reduce",
    "masked_scatter",
    "embedding_dense_backward",
)
"""Ops that write to data-dependent positions: always a kernel of their own."""
PICKING = ("index", "index_select", "gather", "embedding", "roll", "flip", "take", "take_along_dim")
"""Ops that read from any position of their input."""
JOINING = ("cat", "stack", "_cat")
PICKING_STEPS = 3
"""Cost of computing the index. Measured: a compiled stencil of 23 additions and multiplications on 8 shifted grids."""
JOINING_STEPS = 3
"""For each joined tensor: computing the index, and testing whether the element is in this tensor."""
MIXING_STEPS = 9
"""The same if neighbouring elements come from different tensors, so that loads are not vectorised. Measured: compiled
unpacking of interleaved 4-bit numbers."""
BY_ELEMENT = ("elementwise", "fill", "copy", "random", "dropout", "dropout backward")
"""Work models in which each result element depends on one element of each operand."""

MAX_REDUCTIONS = 4
"""Reductions in one kernel: a hand-written norm or softmax has two or three; a loop of them is not one kernel."""
MAX_JOINS = 4
"""Concatenations in one chain, as in rotary embeddings. More are a loop in which a tensor grows."""
MISSING = (0.0, 0, 0)
"""Bytes and operations of a kernel that does not exist or is unknown."""


class Fused(Struct, frozen=True):
    """The kernels that a compiler generates for chains of GPU activities."""

    nodes: Int64s
    """The GPU activities of the chains, in order."""
    starts: Int64s
    """Where among them each fused kernel begins."""
    known: Bools
    """Whether all ops of a kernel are known."""
    parts: Floats
    """Bytes and operations of each kernel and of its second kernel, if any; the last number is 1 if it exists."""
    cut_up: Bools
    """Whether a second kernel combines the parts of its rows (split reduction)."""
    begins_iteration: Bools
    """Whether an iteration of a loop begins with it."""


class _Pattern(Struct, frozen=True):
    """The fused kernels of a chain, by its ops; equal chains share it."""

    first_ops: Int64s
    known: list[bool]
    parts: list[tuple[tuple[float, int, int], tuple[float, int, int]]]
    cut_up: list[bool]
    begins_iteration: list[bool]


class _Compiler:
    """The ops of a trace, and the fused kernels of their chains; cached, because every trial asks."""

    def __init__(self, labelled: LabelledGraph) -> None:
        self._op, self._name, self._calls = labelled.op, labelled.name.texts, labelled.op_calls
        self._of_autograd = labelled.of_autograd
        self._sms = int(filled(labelled.trace.devices.sm_count, 0).max(initial=0))
        self._numbers: dict[object, int] = {}
        self._units: list[Unit | None] = [None]
        self._names = [""]
        self._patterns: dict[tuple[tuple[int, ...], bool], _Pattern] = {}
        self._found: dict[bytes, Fused] = {}

    def fused(self, nodes: Int64s, begins: Bools) -> Fused:
        """The fused kernels of consecutive chains; `begins` marks the first activity of each chain."""
        key = nodes.tobytes() + begins.tobytes()
        if key not in self._found:
            self._found[key] = self._fuse(nodes, begins)
        return self._found[key]

    def _fuse(self, nodes: Int64s, begins: Bools) -> Fused:
        rows = self._op[nodes]
        op_starts = np.flatnonzero(begins | (np.diff(rows, prepend=NONE) != 0) | (rows == NONE))
        names, bounds = self._name[nodes].tolist(), [*op_starts.tolist(), len(nodes)]
        called = zip(rows[op_starts].tolist(), pairwise(bounds), strict=True)
        numbers = [self._number(op, tuple(names[first:beyond])) for op, (first, beyond) in called]
        first_ops = np.flatnonzero(begins[op_starts]).tolist()
        backward = self._of_autograd[nodes[begins]].tolist()
        chains = [tuple(numbers[first:beyond]) for first, beyond in pairwise([*first_ops, len(numbers)])]
        patterns = list(map(self._pattern, chains, backward))
        starts = [first + pattern.first_ops for first, pattern in zip(first_ops, patterns, strict=True)]
        return Fused(
            nodes,
            op_starts[np.concatenate([np.empty(0, np.int64), *starts])],
            np.array([one for pattern in patterns for one in pattern.known], bool),
            np.array([one for pattern in patterns for one in pattern.parts], np.float64),
            np.array([one for pattern in patterns for one in pattern.cut_up], bool),
            np.array([one for pattern in patterns for one in pattern.begins_iteration], bool),
        )

    def _pattern(self, numbers: tuple[int, ...], backward: bool) -> _Pattern:
        key = numbers, backward
        if key not in self._patterns:
            units = [self._units[number] for number in numbers]
            if not any(units):
                return self._patterns.setdefault(key, _unshaped([self._names[number] for number in numbers]))
            found = groups(units, self._sms, backward=backward)
            kernels = [[(*one, 1) for one in group.kernels] if group.known else [] for group in found]
            self._patterns[key] = _Pattern(
                np.array([group.members[0] for group in found], np.int64),
                [group.known for group in found],
                [(one[0] if one else MISSING, one[1] if len(one) > 1 else MISSING) for one in kernels],
                [group.cut_up for group in found],
                [group.begins_iteration for group in found],
            )
        return self._patterns[key]

    def _number(self, op: int, kernels: tuple[str, ...]) -> int:
        """The number of the unit for the op that launched these kernels."""
        if op == NONE:
            return 0
        key = self._calls.number(op), kernels
        if key not in self._numbers:
            launches = tuple(map(KernelLaunch, kernels))
            self._numbers[key] = len(self._units)
            self._units.append(unit_of(self._calls.call(op, launches), self._calls.work(op, launches)))
            self._names.append(self._calls.recorded(op)[0].removeprefix("aten::").split(".")[0])
        return self._numbers[key]


def cuts(names: Sequence[str]) -> list[int]:
    """Positions at which kernels begin in a chain of ops whose shapes were not recorded, by their names.

    If there are many joins, each is a kernel of its own, because it copies all earlier data. A repeated in-place op
    works on another tensor.
    """
    starts, reductions = [0], 0
    joining = JOINING if sum(name in JOINING for name in names) > MAX_JOINS else ()
    for position, (before, name) in enumerate(pairwise(names), 1):
        reductions += before in REDUCING
        alone = before in joining or name in joining
        if alone or reductions >= MAX_REDUCTIONS or (name == before and in_place(name)):
            starts.append(position)
            reductions = 0
    return starts


def _unshaped(names: list[str]) -> _Pattern:
    starts = cuts(names)
    none = [False] * len(starts)
    return _Pattern(np.array(starts, np.int64), none, [(MISSING, MISSING)] * len(starts), none, none)


def fused(labelled: LabelledGraph, nodes: Int64s, begins: Bools) -> Fused:
    """The kernels that a compiler would generate for chains of GPU activities; `begins` marks where a chain begins."""
    return labelled.once(_Compiler).fused(nodes, begins)


def unit_of(call: OpCall, work: Work | None) -> Unit | None:
    """The op as a compiler sees it; None if its shapes were not recorded or the op is unknown."""
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
    # A copy writes into a tensor that was allocated for it.
    return replace(unit, in_place=True) if unit and over and work.model == "elementwise" else unit


def _unit(name: str, call: OpCall, work: Work) -> Unit | None:
    # An output tensor that is not resized yet is recorded as an empty tensor.
    given = [tensor for tensor in call.all_tensors() if tensor.elements]
    tensors = [tensor for tensor in given if not tensor.is_number] or given
    if name in JOINING:
        pieces = typed(call.tensors(0), call)
        elements = sum(piece.elements for piece in pieces)
        steps = _joining_steps(call, pieces) * len(pieces)
        return Unit(name, pieces, (elements,), work.written_bytes, steps=steps, moves=True, joins=True)
    if not tensors:
        return None
    first = tensors[0]
    if name in PICKING:
        elements = work.written_bytes // first.item_bytes
        places = (tensor for tensor in tensors[1:] if tensor.elements <= elements)
        read: tuple[Tensor, ...] = (Tensor((elements,), first.dtype), *places)
        return Unit(name, read, (elements,), work.written_bytes, steps=PICKING_STEPS, moves=True)
    if name in REDUCING and work.model == "reduction":
        dims = _dims(call, REDUCING[name], len(first.shape))
        return _reduction(Unit(name, (first,), first.shape, work.written_bytes, dims, steps=REDUCING_STEPS))
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
    whole_shape = broadcast(tensor.shape for tensor in tensors)
    return Unit(name, operands, whole_shape, work.written_bytes, steps=_steps(name, call))


def _steps(name: str, call: OpCall) -> int:
    """Cost of an elementwise op, in additions."""
    if name == "pow":
        return POWERS.get(call.text(1).removesuffix(".0").removesuffix("."), POWER)
    signature = SIGNATURES.get(f"aten::{name}")
    compound = signature.steps if signature and signature.steps >= COMPOUND else 1
    return FUNCTIONS.get(name, compound)


def _joining_steps(call: OpCall, pieces: tuple[Tensor, ...]) -> int:
    """Steps per joined tensor."""
    dim = call.integer(1, 0)
    rest = (prod(piece.shape[dim % len(piece.shape) :]) for piece in pieces if piece.shape and piece.elements)
    return MIXING_STEPS if min(rest, default=UNROLLED) < UNROLLED else JOINING_STEPS


def _reduction(unit: Unit) -> Unit:
    """A reduction; for short rows, an elementwise op that loops over each row."""
    if unit.row >= UNROLLED:
        return unit
    return Unit(unit.name, unit.operands, (unit.rows,), unit.written, steps=unit.row)


def _rows_of(name: str, call: OpCall, x: Tensor) -> Shape:
    """The dimensions that a softmax or a norm reduces."""
    rank = len(x.shape)
    if name in SOFTMAX:
        return _dims(call, SOFTMAX[name], rank)
    normal = next((sizes for sizes in (call.integers(position) for position in (1, 2)) if sizes), x.shape[-1:])
    return tuple(range(max(rank - len(normal), 0), rank))


def _dims(call: OpCall, position: int, rank: int) -> Shape:
    """The dimensions given as a list or a number, as non-negative indices; all dimensions if none are given."""
    text = call.text(position)
    given = call.integers(position) or ((int(text),) if text.lstrip("-").isdigit() else ())
    if not given or len(call.arguments) <= 1:
        return tuple(range(rank))
    if not all(-rank <= dim < rank for dim in given):
        raise Unknowable(f"{call.name} names a dimension that its input lacks")
    return tuple(sorted(dim % rank for dim in given))
