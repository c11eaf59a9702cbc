"""Which ops a compiler makes one kernel of, and what that kernel must move and compute.

The rules are inductor's: what is computed element by element joins anything; a reduction joins what has the same rows;
and nothing joins that needs the results of other rows, or of all of them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from math import prod

import numpy as np

from warpline.trace.columns import Bools
from warpline.work.model import Tensor

Shape = tuple[int, ...]
Size = tuple[int, int]
"""Elements, and bytes of each."""

UNROLLED = 8
"""Rows shorter than this are added up by one thread, as elementwise ops are (inductor's threshold)."""
FEW_ROWS_PER_SM = 2
"""With fewer rows than so many for each multiprocessor, inductor cuts a long row up, and a second kernel adds up the
parts."""
LONG_ROW = 8192
RESIDENT_ROW = 65_536
"""Bytes of a row that the next pass over it finds in the cache: compiled norms of rows of 16 KiB read them once, a
compiled loss on rows of 128 KiB half as much again."""
AGAIN = 0.5
BACK_STEPS = 2
"""Operations with which a softmax or a norm gives an element the result of its row."""
LONGEST_TURN = 64
MOST = 0.8
"""Of a chain that is a loop, this much repeats itself: something may come before the loop and after it."""
MAXIMA = ("amax", "max")
"""A maximum and the sum of exponentials after it are found in one pass."""


@dataclass(frozen=True, slots=True)
class Unit:
    """One op as a compiler sees it."""

    name: str
    operands: tuple[Tensor, ...]
    """What it reads, all of it."""
    shape: Shape
    """What it walks over: its result, or the input of a reduction."""
    written: int
    """Bytes of its result."""
    dims: Shape = ()
    """Dimensions of `shape` that it reduces."""
    back: bool = False
    """Whether every element of a row receives the result of its reduction, as in a softmax."""
    steps: int = 1
    """Operations for each element that it walks over."""
    moves: bool = False
    """Whether values come from other places than where they go."""
    in_place: bool = False
    """Whether it writes its result over its first operand."""
    alone: bool = False
    """Whether nothing can be part of the same kernel; then only that is known."""
    joins: bool = False
    """Whether it puts its operands together into one tensor."""

    @property
    def elements(self) -> int:
        """How many elements it walks over."""
        return prod(self.shape)

    @property
    def row(self) -> int:
        """Elements that a reduction adds up; 1 for what reduces nothing."""
        return max(1, prod(self.shape[dim] for dim in self.dims))

    @property
    def rows(self) -> int:
        """How many results a reduction has."""
        return self.elements // self.row

    @property
    def result(self) -> Size:
        """Its result."""
        count = self.elements if self.back else self.rows
        return count, self.written // max(count, 1)


@dataclass(slots=True)
class Flow:
    """What ops that become one kernel hand to each other, and what they read and write besides.

    Which tensor an op reads was not recorded, only its size. An op is taken to read the latest result of that size
    that nobody has read, else what was read before, and only then something new. Two operands are two tensors, unless
    they are multiplied, and what was overwritten is no more. A backward pass multiplies by what the forward one left.
    Pieces of a tensor, which strides betray, are the same piece unless the same op takes them one after the other.
    """

    backward: bool = False
    read: int = 0
    full: int = 0
    """Of what is read, what has an element for each that the op walks over."""
    unread: Counter[Size] = field(default_factory=Counter)
    """Results by their size that nobody has read."""
    known: Counter[Size] = field(default_factory=Counter)
    """Tensors that an op may read again."""
    pieces: Counter[Size] = field(default_factory=Counter)
    """Tensors of which pieces were read, and how many elements."""
    cutting: set[Unit] = field(default_factory=set)
    """Ops that read pieces."""

    def add(self, unit: Unit) -> None:
        """Takes an op in."""
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
        """Bytes of what nobody has read."""
        return sum(prod(size) * count for size, count in self.unread.items())

    @property
    def largest_unread(self) -> int:
        """Elements of the largest result that nobody has read."""
        return max((size[0] for size, count in self.unread.items() if count), default=0)


def whole_elements(tensor: Tensor) -> int:
    """Elements of the tensor that this one is a piece of, by its strides; its own where it is whole."""
    stored, strides = tensor.stored_elements, tensor.strides
    if strides is None or len(strides) != len(tensor.shape) or not stored:
        return stored
    steps = [(size, stride) for size, stride in zip(tensor.shape, strides, strict=True) if size > 1 and stride > 0]
    extent = 1 + sum((size - 1) * stride for size, stride in steps)
    widest = max((stride for _, stride in steps), default=1)
    return max(stored, -(-extent // widest) * widest)


@dataclass(slots=True)
class Group:
    """Ops that become one kernel."""

    members: list[int] = field(default_factory=list)
    """Positions of its ops in their chain."""
    sms: int = 0
    """Multiprocessors of the device; 0 where they are not known."""
    units: list[Unit] = field(default_factory=list)
    flow: Flow = field(default_factory=Flow)
    known: bool = True
    """Whether all of them are known."""
    begins_turn: bool = False
    """Whether a turn of a loop begins with it."""
    reduction: Unit | None = None
    """The first that reduces rows: the others must fit it."""

    @property
    def cut_up(self) -> bool:
        """Whether its rows are so few and long that a second kernel adds up their parts."""
        one = self.reduction
        return one is not None and one.rows < FEW_ROWS_PER_SM * self.sms and one.row > LONG_ROW

    def takes(self, unit: Unit | None) -> bool:
        """Whether the op can be part of this kernel; one that is not known is given the benefit of the doubt."""
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
        """Whether all that the kernel does so far is what this op does again, in place or to pieces that it joins: then
        it does so to another tensor, and nothing is shared."""
        return (unit.in_place or unit.joins) and all(each == unit for each in self.units)

    def add(self, position: int, unit: Unit | None) -> None:
        """Takes the op in."""
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
        """What the kernel reads and writes: what its ops do not hand to each other."""
        full = self.flow.full
        return self.flow.read + self.flow.written + self._passes_again(full) * full

    def _passes_again(self, full: int) -> float:
        """How often rows that are too long for the cache are read again."""
        one = self.reduction
        if one is None or self.cut_up or one.row * full <= RESIDENT_ROW * one.elements:
            return 0.0
        walks = [unit for unit in self.units if unit.elements == one.elements and unit.name not in MAXIMA]
        last = bool(walks) and (walks[-1].back or not walks[-1].dims)
        return AGAIN * max(0, sum(bool(unit.dims) for unit in walks) + last - 1)

    @property
    def operations(self) -> int:
        """What the kernel computes, an op of an element at a time."""
        total = 0
        joined: dict[int, int] = {}
        for unit in reversed(self.units):
            # What a piece is made of is computed for every element of what the pieces are joined to.
            total += unit.steps * max(unit.elements, joined.get(unit.elements, 0))
            if unit.joins:
                joined.update({piece.elements: unit.elements for piece in unit.operands})
        return total

    @property
    def kernels(self) -> list[tuple[float, int]]:
        """Bytes and operations of what it really becomes: two kernels where rows are cut up and each element needs the
        result of its row."""
        one = self.reduction
        if one is None or not (self.cut_up and one.back):
            return [(self.bytes, self.operations)]
        after = BACK_STEPS * one.elements
        return [(one.operands[0].bytes, self.operations - after), (self.bytes, after)]


def groups(units: list[Unit | None], sms: int = 0, *, backward: bool = False) -> list[Group]:
    """The kernels that a chain of ops becomes on so many multiprocessors; None for an op that is not known."""
    turns = _turns(units)
    found = [Group(sms=sms, flow=Flow(backward))]
    for position, unit in enumerate(units):
        if position in turns or not found[-1].takes(unit):
            if found[-1].members:
                found.append(Group(sms=sms, flow=Flow(backward)))
            found[-1].begins_turn = position in turns
        found[-1].add(position, unit)
    return found


def _turns(units: list[Unit | None]) -> set[int]:
    """Where the turns of a loop begin that is most of the chain, unless all that they do is elementwise.

    Turns that do not depend on each other have nothing to share; turns that do, and that move or add up values, need
    all of the last one's results. Turns that write in place are taken to do so to one tensor after the other.
    """
    number: dict[Unit | None, int] = {}
    codes = np.array([number.setdefault(unit, len(number)) for unit in units], np.int64)
    for period in range(2, min(len(units) // 2, LONGEST_TURN) + 1):
        first, length = _longest_run(codes[:-period] == codes[period:])
        if length < max(period, MOST * (len(units) - period)):
            continue
        turn = [unit for unit in units[first : first + period] if unit is not None]
        alone = any(unit.moves or unit.dims or unit.in_place for unit in turn)
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
    """Whether a tensor has but one element for each row of the full shape."""
    aligned = (1,) * (len(full) - len(shape)) + shape
    return all(aligned[dim] == 1 for dim in dims)
