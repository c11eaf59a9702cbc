"""The arguments of an op, and its minimum work."""

from __future__ import annotations

from math import prod

from msgspec import Struct

from warpline.work.dtypes import SCALAR_TYPES, SIZES, TYPES, arithmetic

MATRIX = "matrix"
"""Multiply-adds of matmuls, which tensor cores can compute; each counts as two."""
VECTOR = "vector"
"""Everything else: one for each arithmetic step; a transcendental function is one step."""


class Unknowable(Exception):
    """The recorded arguments lack what the model needs."""


class Tensor(Struct, frozen=True):
    """A tensor argument."""

    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...] | None = None

    @property
    def elements(self) -> int:
        """The number of elements that the op sees."""
        return prod(self.shape)

    @property
    def stored_elements(self) -> int:
        """The number of elements in memory: a dimension expanded with stride 0 is stored once."""
        if self.strides is None or len(self.strides) != len(self.shape) or not self.elements:
            return self.elements
        return prod(size for size, stride in zip(self.shape, self.strides, strict=True) if stride != 0)

    @property
    def item_bytes(self) -> int:
        """Bytes per element."""
        return SIZES[self.dtype]

    @property
    def bytes(self) -> int:
        """Bytes that must be read to see all elements."""
        return self.stored_elements * self.item_bytes

    @property
    def dense_bytes(self) -> int:
        """Bytes of a new tensor of this shape and type."""
        return self.elements * self.item_bytes

    @property
    def is_number(self) -> bool:
        """Whether this is a zero-dimensional tensor (a scalar), which never determines the type of a result."""
        return not self.shape


class Argument(Struct, frozen=True):
    """One argument: a tensor, a list of tensors, or a scalar as text."""

    kind: str
    """Kineto's `Input type`."""
    tensor: Tensor | None = None
    tensors: tuple[Tensor, ...] = ()
    text: str = ""


class KernelLaunch(Struct, frozen=True):
    """A kernel that the op launched."""

    name: str
    blocks: int | None = None
    threads: int | None = None


class OpCall(Struct, frozen=True):
    """One call of an op, as recorded around the launch of its kernels."""

    name: str
    arguments: tuple[Argument, ...] = ()
    launches: tuple[KernelLaunch, ...] = ()
    parent: OpCall | None = None

    def tensor(self, position: int) -> Tensor:
        """The tensor at that position."""
        found = self.maybe_tensor(position)
        if found is None:
            raise Unknowable(f"argument {position} of {self.name} is not a recorded tensor")
        return found

    def maybe_tensor(self, position: int) -> Tensor | None:
        """The tensor at that position; None if there is none (an optional argument, a scalar)."""
        return self.arguments[position].tensor if 0 <= position < len(self.arguments) else None

    def all_tensors(self, first: int = 0) -> list[Tensor]:
        """Every tensor argument, in order."""
        return [argument.tensor for argument in self.arguments[first:] if argument.tensor is not None]

    def tensors(self, position: int) -> tuple[Tensor, ...]:
        """The list of tensors at that position."""
        if position >= len(self.arguments) or not self.arguments[position].tensors:
            raise Unknowable(f"the tensors in argument {position} of {self.name} were not recorded")
        return self.arguments[position].tensors

    def text(self, position: int) -> str:
        """A scalar as text; empty if it was not recorded."""
        return self.arguments[position].text if 0 <= position < len(self.arguments) else ""

    def integer(self, position: int, default: int | None = None) -> int:
        """An integer argument."""
        try:
            return int(self.text(position))
        except ValueError:
            if default is None:
                raise Unknowable(f"argument {position} of {self.name} was not recorded") from None
            return default

    def flag(self, position: int, default: bool = False) -> bool:
        """A boolean argument."""
        return {"true": True, "1": True, "false": False, "0": False}.get(self.text(position).lower(), default)

    def integers(self, position: int) -> tuple[int, ...] | None:
        """A list of integers, such as `[0, 2]`; None if it was not recorded."""
        items = self._items(position)
        try:
            return tuple(int(item) for item in items) if items is not None else None
        except ValueError:
            return None

    def flags(self, position: int) -> tuple[bool, ...] | None:
        """A list of booleans, such as `[True, False]`; None if it was not recorded."""
        items = self._items(position)
        return tuple(item.lower() in {"true", "1"} for item in items) if items is not None else None

    def _items(self, position: int) -> list[str] | None:
        text = self.text(position).strip()
        if not (text.startswith("[") and text.endswith("]")):
            return None
        return [item.strip() for item in text[1:-1].split(",") if item.strip()]

    def dtype(self, position: int, default: str) -> str:
        """A dtype argument."""
        return SCALAR_TYPES.get(self.integer(position, -1), default)


class Flops(Struct, frozen=True):
    """Floating-point (or integer) operations of one kind."""

    count: int
    dtype: str
    unit: str
    """`matrix` or `vector`."""


def vector_steps(count: int, dtype: str) -> tuple[Flops, ...]:
    """Steps of the CUDA cores on data of this type."""
    return (Flops(count, arithmetic(dtype), VECTOR),)


class Work(Struct, frozen=True):
    """The minimum work of an op: each input is read once, each output is written once."""

    model: str
    """The family of the model, for example `matmul`."""
    flops: tuple[Flops, ...] = ()
    read_bytes: int = 0
    written_bytes: int = 0
    link: str = "dram"
    """The link that carries the bytes: `dram`, `h2d`, `d2h` or `nvlink`."""
    estimate: str = ""
    """Why the figures are a bound or a guess; empty if they follow from the shapes."""
    additions: int = 0
    """Numbers added to indexed places in memory, which the caches process one by one."""
    extra_bytes: int = 0
    """Extra bytes that common algorithms cannot avoid: sectors around single elements, the passes of a sort."""

    @property
    def bytes(self) -> int:
        """Bytes read and written."""
        return self.read_bytes + self.written_bytes

    @property
    def total_flops(self) -> int:
        """All operations."""
        return sum(part.count for part in self.flops)

    @property
    def matrix_flops(self) -> int:
        """The operations of matmuls: what FlopCounterMode counts."""
        return sum([part.count for part in self.flops if part.unit == MATRIX])

    @property
    def main_flops(self) -> int:
        """The operations of matmuls; without any, all."""
        return self.matrix_flops or self.total_flops

    @property
    def vector_flops(self) -> int:
        """All other operations."""
        return sum([part.count for part in self.flops if part.unit != MATRIX])


def tensor_type(text: str) -> str:
    """Our name of a Kineto type; empty if it is not that of a tensor."""
    return TYPES.get(text, "")
