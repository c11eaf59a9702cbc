"""Which ops a compiler fuses into one kernel, and what that kernel must move and compute.

The rules are inductor's: an elementwise op fuses with anything; a reduction fuses with ops over the same rows; an op
that needs the results of other rows is not fused.
"""

from __future__ import annotations

from collections import Counter
from math import prod

import numpy as np
from msgspec import Struct, field

from warpline.trace.arrays import Bools
from warpline.work.model import Tensor

Shape = tuple[int, ...]
Size = tuple[int, int]
"""Number of elements, and bytes per element."""

UNROLLED = 8
"""Rows shorter than this are reduced by one thread, like an elementwise op (inductor's threshold)."""
FEW_ROWS_PER_SM = 2
"""With fewer rows per SM than this, inductor splits long rows, and a second kernel combines the parts (split
reduction)."""
LONG_ROW = 8192
"""Elements from which a row is long enough to split."""
RESIDENT_ROW = 65_536
"""Bytes of a row that stay in the cache for the next pass. Measured: compiled norms read rows of 16 KiB once; a
compiled loss reads rows of 128 KiB 1.5 times."""
REREAD_SHARE = 0.5
"""Share of a row too long for the cache that another pass reads from memory again."""
BACK_STEPS = 2
"""Operations per element with which a softmax or a norm applies the result of the row."""
MAX_ITERATION_OPS = 64
"""Ops in one iteration of a loop."""
MIN_REPEATED_SHARE = 0.8
"""Share of a chain that repeats if the chain is a loop: other ops may come before and after the loop."""
MAXIMA = ("amax", "max")
"""A maximum and the following sum of exponentials are computed in one pass."""


class Unit(Struct, frozen=True):
    """One op as a compiler sees it."""

    name: str
    operands: tuple[Tensor, ...]
    """All tensors it reads."""
    shape: Shape
    """The elements it iterates over: its result, or the input of a reduction."""
    written: int
    """Bytes of its result."""
    dims: Shape = ()
    """Dimensions of `shape` that it reduces."""
    back: bool = False
    """Whether every element of a row receives the result of its reduction, as in a softmax."""
    steps: int = 1
    """Operations per element."""
    moves: bool = False
    """Whether it reads values from other positions than it writes."""
    in_place: bool = False
    """Whether it writes its result over its first operand."""
    alone: bool = False
    """Whether it cannot be fused with anything; nothing else is known about it then."""
    joins: bool = False
    """Whether it concatenates its operands into one tensor."""

    @property
    def elements(self) -> int:
        """How many elements it iterates over."""
        return prod(self.shape)

    @property
    def row(self) -> int:
        """Elements per row of a reduction; 1 for other ops."""
        return max(1, prod(self.shape[dim] for dim in self.dims))

    @property
    def rows(self) -> int:
        """How many results a reduction has."""
        return self.elements // self.row

    @property
    def result(self) -> Size:
        """Size of its result."""
        count = self.elements if self.back else self.rows
        return count, self.written // max(count, 1)


class Flow(Struct):
    """What the ops of one kernel pass to each other, and what they read from and write to memory.

    Only the size of a tensor is recorded, not its identity. An op is assumed to read the latest unread result of that
    size, else a tensor read before, else a new one. Two operands are two tensors, unless they are multiplied; a tensor
    that was overwritten is gone. A backward pass multiplies by what the forward pass saved. Slices of a tensor, visible
    in the strides, are the same slice unless the same op reads them one after the other.
    """

    backward: bool = False
    read: int = 0
    full: int = 0
    """Bytes read of operands as large as the iteration space of the op."""
    unread: Counter[Size] = field(default_factory=Counter)
    """Unread results, by size."""
    known: Counter[Size] = field(default_factory=Counter)
    """Tensors that an op may read again."""
    pieces: Counter[Size] = field(default_factory=Counter)
    """Tensors of which slices were read, and how many elements."""
    cutting: set[Unit] = field(default_factory=set)
    """Ops that read slices."""

    def add(self, unit: Unit) -> None:
        """Adds an op."""
        again, twice = unit in self.cutting, unit.name == "mul" and not unit.in_place
        taken: Counter[Size] = Counter()
        added: Counter[Size] = Counter()
        for operand in unit.operands:
            whole = whole_elements(operand), operand.item_bytes
            count, known = operand.stored_elements, self.known[whole]
            taken[whole] += 1
            if self.unread[whole]:
                self.unread[whole] -= 1
                continue
            piece = count < whole[0]
            if (known >= taken[whole] or (known and twice)) and not (piece and again and whole in self.pieces):
                continue
            fresh = min(count, whole[0] - self.pieces[whole])
            self.read += fresh * whole[1]
            self.full += fresh * whole[1] if count == unit.elements else 0
            if piece:
                self.pieces[whole] += fresh
                self.cutting.add(unit)
            added[whole] += 1
        self.unread[unit.result] += 1
        added[unit.result] += not unit.in_place and not self.backward
        self.known.update(added)

    @property
    def written(self) -> int:
        """Bytes of the unread results."""
        return sum(prod(size) * count for size, count in self.unread.items())

    @property
    def largest_unread(self) -> int:
        """Elements of the largest unread result."""
        return max((size[0] for size, count in self.unread.items() if count), default=0)


def whole_elements(tensor: Tensor) -> int:
    """Elements of the tensor that this one is a slice of, by its strides; its own elements if it is whole."""
    stored, strides = tensor.stored_elements, tensor.strides
    if strides is None or len(strides) != len(tensor.shape) or not stored:
        return stored
    steps = [(size, stride) for size, stride in zip(tensor.shape, strides, strict=True) if size > 1 and stride > 0]
    extent = 1 + sum((size - 1) * stride for size, stride in steps)
    widest = max((stride for _, stride in steps), default=1)
    return max(stored, -(-extent // widest) * widest)


class Group(Struct):
    """Ops that become one kernel."""

    members: list[int] = field(default_factory=list)
    """Positions of its ops in their chain."""
    sms: int = 0
    """SMs of the device; 0 if unknown."""
    units: list[Unit] = field(default_factory=list)
    flow: Flow = field(default_factory=Flow)
    known: bool = True
    """Whether all ops are known."""
    begins_iteration: bool = False
    """Whether an iteration of a loop begins with it."""
    reduction: Unit | None = None
    """The first op that reduces rows; the other ops must match its shape."""

    @property
    def cut_up(self) -> bool:
        """Whether its rows are so few and long that a second kernel combines their parts (split reduction)."""
        one = self.reduction
        return one is not None and one.rows < FEW_ROWS_PER_SM * self.sms and one.row > LONG_ROW

    def takes(self, unit: Unit | None) -> bool:
        """Whether the op can be part of this kernel; an unknown op is assumed to fit."""
        if unit is None or not self.units:
            return True
        if unit.alone or self.units[-1].alone or self._repeats(unit):
            return False
        one = self.reduction
        if one is None:
            return not unit.dims or unit.elements >= self.flow.largest_unread
        if not unit.dims and unit.elements <= one.rows:
            return True
        if self.cut_up or unit.elements != one.elements:
            return False
        if unit.dims:
            return (unit.shape, unit.dims) == (one.shape, one.dims)
        whole = any(each.elements == unit.elements for each in unit.operands)
        return whole or all(_of_rows(each.shape, unit.shape, one.dims) for each in unit.operands)

    def _repeats(self, unit: Unit) -> bool:
        """Whether this op repeats all that the kernel does so far, in place or on the parts it joins. It then works on
        another tensor, and nothing is shared."""
        return (unit.in_place or unit.joins) and all(each == unit for each in self.units)

    def add(self, position: int, unit: Unit | None) -> None:
        """Adds the op."""
        self.members.append(position)
        self.known = self.known and unit is not None and not unit.alone
        if unit is None:
            return
        self.units.append(unit)
        self.flow.add(unit)
        if unit.dims and self.reduction is None:
            self.reduction = unit

    @property
    def bytes(self) -> float:
        """Bytes that the kernel reads and writes: what its ops do not pass to each other."""
        full = self.flow.full
        return self.flow.read + self.flow.written + self._passes_again(full) * full

    def _passes_again(self, full: int) -> float:
        """How often rows that are too long for the cache are read again."""
        one = self.reduction
        if one is None or self.cut_up or one.row * full <= RESIDENT_ROW * one.elements:
            return 0.0
        walks = [unit for unit in self.units if unit.elements == one.elements and unit.name not in MAXIMA]
        last = bool(walks) and (walks[-1].back or not walks[-1].dims)
        return REREAD_SHARE * max(0, sum(bool(unit.dims) for unit in walks) + last - 1)

    @property
    def operations(self) -> int:
        """Operations of the kernel, counted per element."""
        total = 0
        joined: dict[int, int] = {}
        for unit in reversed(self.units):
            # The producers of a joined part are computed for every element of the joined tensor.
            total += unit.steps * max(unit.elements, joined.get(unit.elements, 0))
            if unit.joins:
                joined.update({piece.elements: unit.elements for piece in unit.operands})
        return total

    @property
    def kernels(self) -> list[tuple[float, int]]:
        """Bytes and operations of the actual kernels: two if rows are split and each element needs the result of its
        row."""
        one = self.reduction
        if one is None or not (self.cut_up and one.back):
            return [(self.bytes, self.operations)]
        after = BACK_STEPS * one.elements
        return [(one.operands[0].bytes, self.operations - after), (self.bytes, after)]


def groups(units: list[Unit | None], sms: int = 0, *, backward: bool = False) -> list[Group]:
    """The kernels that a chain of ops becomes on a device with this many SMs; None stands for an unknown op."""
    iterations = _iterations(units)
    found = [Group(sms=sms, flow=Flow(backward))]
    for position, unit in enumerate(units):
        if position in iterations or not found[-1].takes(unit):
            if found[-1].members:
                found.append(Group(sms=sms, flow=Flow(backward)))
            found[-1].begins_iteration = position in iterations
        found[-1].add(position, unit)
    return found


def _iterations(units: list[Unit | None]) -> set[int]:
    """Where the iterations begin, if most of the chain is a loop whose ops are not all elementwise.

    Independent iterations share nothing; dependent iterations that move or reduce values need all results of the
    previous one. Iterations that write in place are assumed to write to one tensor after the other.
    """
    number: dict[Unit | None, int] = {}
    codes = np.array([number.setdefault(unit, len(number)) for unit in units], np.int64)
    for period in range(2, min(len(units) // 2, MAX_ITERATION_OPS) + 1):
        first, length = _longest_run(codes[:-period] == codes[period:])
        if length < max(period, MIN_REPEATED_SHARE * (len(units) - period)):
            continue
        iteration = [unit for unit in units[first : first + period] if unit is not None]
        alone = any(unit.moves or unit.dims or unit.in_place for unit in iteration)
        return set(range(first, first + length + 1, period)) if alone else set()
    return set()


def _longest_run(same: Bools) -> tuple[int, int]:
    """Where the longest run of true values begins, and how long it is."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], same, [False]])))
    begins, ends = edges[::2], edges[1::2]
    if not len(begins):
        return 0, 0
    longest = int(np.argmax(ends - begins))
    return int(begins[longest]), int(ends[longest] - begins[longest])


def _of_rows(shape: Shape, full: Shape, dims: Shape) -> bool:
    """Whether a tensor has only one element per row of the full shape."""
    aligned = (1,) * (len(full) - len(shape)) + shape
    return all(aligned[dim] == 1 for dim in dims)
