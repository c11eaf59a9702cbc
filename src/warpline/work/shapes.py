"""Shape arithmetic shared by several families."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import zip_longest

from warpline.work.model import KernelLaunch, OpCall, Tensor, Unknowable

_OPAQUE = re.compile(r"OpaqueType<(\d+)")
_FIRST_TYPE = re.compile(r"(?:Functor|CatArrayBatchedCopy\w{0,80}+)<([\w:]+)")
_TYPE_WORDS = {
    "c10::BFloat16": "bf16",
    "__nv_bfloat16": "bf16",
    "c10::Half": "fp16",
    "__half": "fp16",
    "double": "fp64",
    "float": "fp32",
    "long": "int64",
    "int": "int32",
    "bool": "bool",
    "unsigned": "uint8",
    "signed": "int8",
}
_TYPE_WORD = re.compile(r"(?<![\w:])(" + "|".join(_TYPE_WORDS) + r")(?!\w)")
_BY_SIZE = {1: "uint8", 2: "bf16", 4: "fp32", 8: "fp64", 16: "complex128"}


def broadcast(shapes: Iterable[Sequence[int]]) -> tuple[int, ...]:
    """The common shape of operands, aligned at their last dimension."""
    result: list[int] = []
    for sizes in zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1):
        wide = {size for size in sizes if size != 1}
        if len(wide) > 1:
            raise Unknowable("shapes do not broadcast")
        result.append(wide.pop() if wide else 1)
    return tuple(reversed(result))


def item_type(launches: Iterable[KernelLaunch]) -> str:
    """The item type of a list of tensors, which Kineto does not record, from the kernels' template arguments."""
    for launch in launches:
        opaque = _OPAQUE.search(launch.name)
        if opaque:
            return _BY_SIZE.get(int(opaque.group(1)), "")
        # The first argument of a functor is the type of the data; later ones are those of its constants.
        first = _FIRST_TYPE.search(launch.name)
        word = _TYPE_WORD.search(first.group(1) if first else launch.name.partition("<")[2].split(">(", 1)[0])
        if word:
            return _TYPE_WORDS[word.group(1)]
    return ""


def list_type(call: OpCall) -> str:
    """The item type of the lists of an op."""
    dtype = item_type(call.launches)
    if not dtype:
        raise Unknowable(f"the types in the lists of {call.name} were not recorded")
    return dtype


def typed(items: Iterable[Tensor], call: OpCall) -> tuple[Tensor, ...]:
    """The items of a list with the type that the kernels show."""
    dtype = list_type(call)
    return tuple(Tensor(item.shape, dtype, item.strides) for item in items)


def reduced(shape: tuple[int, ...], dims: Sequence[int] | None) -> tuple[int, ...]:
    """The shape after reducing over some dimensions (by default all), which are dropped."""
    if not dims:
        return ()
    rank = len(shape)
    gone = {dim + rank if dim < 0 else dim for dim in dims}
    return tuple(size for position, size in enumerate(shape) if position not in gone)


def resized(call: OpCall) -> tuple[int, ...]:
    """The shape of the first argument with the sizes of the second as its last ones."""
    x, size = call.tensor(0), call.integers(1)
    if not size:
        raise Unknowable("the output's size was not recorded")
    return (*x.shape[: len(x.shape) - len(size)], *size)


def total_bytes(tensors: Iterable[Tensor | None]) -> int:
    """Bytes of all given tensors."""
    return sum(tensor.bytes for tensor in tensors if tensor is not None)


def dense_bytes(shape: Sequence[int], dtype: str) -> int:
    """Bytes of a new tensor."""
    return Tensor(tuple(shape), dtype).bytes


def size_at(shape: Sequence[int], dim: int) -> int:
    """The size of a dimension, counted from the end if negative; 1 for a zero-dimensional tensor."""
    if not shape:
        return 1
    if not -len(shape) <= dim < len(shape):
        raise Unknowable("a dimension is out of range")
    return shape[dim]
