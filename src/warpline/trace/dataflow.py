"""Which op writes the tensor that another one reads, from the `dataflow` table.

Ids of tensors and storages are addresses, which are reused. A *buffer* is a storage from the op that makes it to the
next op that makes one at the same address. Views share the buffer of their base.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cached_property

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from warpline.trace.arrays import NONE, Bools, Int64s, greatest_of
from warpline.trace.schema import Dataflow
from warpline.trace.steps.same_ops import OpOrder, same_ops
from warpline.trace.trace import Trace

Shapes = dict[tuple[int, int, int], str]
MOST_WRITERS = 256
"""Writes to a buffer that are searched for those that a read depends on; beyond, it depends on the last of them."""


class ShapeChange(Struct, frozen=True):
    """A tensor that has another shape in the next step."""

    call: int
    op: str
    before: str
    after: str


class DataflowGraph:
    """The calls and tensors of a few steps; a call is a position in `calls`."""

    def __init__(self, table: Dataflow) -> None:
        self.calls = table[np.flatnonzero(np.diff(table.call, prepend=NONE) != 0)]
        """One row per call, in order of start, without its tensors."""
        self.tensors = table[table.direction.codes != NONE]
        """One row per tensor of a call, in order of calls."""
        self.steps = len(np.unique(self.calls.step[self.calls.step != NONE]))
        self._parents: list[int] = self.calls.parent.tolist()
        self._call, self._storage = self.tensors.call, self.tensors.storage
        self._first, self._size = self.tensors.offset, self.tensors.extent
        self._reads = self.tensors.access.equal("read", "update")
        self._writes = self.tensors.access.equal("write", "update", "make")

    @classmethod
    def of(cls, trace: Trace) -> DataflowGraph | None:
        """The data flow recorded with a trace, or None."""
        return cls(trace.dataflow) if len(trace.dataflow) else None

    def calls_of(self, trace: Trace) -> Int64s:
        """For each op of a recording of the same program, its call; NONE for ops that do not match."""
        return same_ops(OpOrder.of_trace(trace), OpOrder.of_dataflow(self.calls))

    @cached_property
    def buffer(self) -> Int64s:
        """The buffer of each of `tensors`."""
        # A composite op and the op within it make the same tensor: the buffer begins with the outer one.
        order = np.lexsort((self._call, self._storage))
        begins = np.zeros(len(order), bool)
        begins[order] = np.diff(self._storage[order], prepend=NONE) != 0
        begins |= self.tensors.access.equal("make") & ~self._is_new_within()
        count = np.empty(len(order), np.int64)
        count[order] = np.cumsum(begins[order])
        return count

    def _is_new_within(self) -> Bools:
        """Which new tensors an enclosing op makes too: there the buffer begins already."""
        new = np.flatnonzero(self.tensors.access.equal("make"))
        calls, storages = self._call[new].tolist(), self._storage[new].tolist()
        keys = set(zip(calls, storages, strict=True))
        result = np.zeros(len(self._call), bool)
        result[new] = [
            any((above, storage) in keys for above in self._above(call))
            for call, storage in zip(calls, storages, strict=True)
        ]
        return result

    def _above(self, call: int) -> Iterator[int]:
        """The calls that enclose a call, the innermost first."""
        parents = self._parents
        while (call := parents[call]) != NONE:
            yield call

    @cached_property
    def edges(self) -> Int64s:
        """Pairs of calls, producer and consumer: the second reads what the first has written last. Each pair once."""
        pairs: set[tuple[int, int]] = set()
        for rows in self._rows_by_buffer():
            written: list[int] = []
            for row in rows.tolist():
                if self._reads[row]:
                    pairs.update((int(self._call[at]), int(self._call[row])) for at in self._sources(written, row))
                if self._writes[row]:
                    written.append(row)
        return np.array(sorted(pair for pair in pairs if pair[0] != pair[1]), np.int64).reshape(-1, 2)

    def _sources(self, written: list[int], row: int) -> list[int]:
        """Which of these writes a read sees: backwards, up to one that covers all of it, and the ops around that one
        that write it too: theirs may come last."""
        found: list[int] = []
        begin, end = int(self._first[row]), int(self._first[row] + self._size[row])
        wanted: set[int] | None = None
        for at in reversed(written[-MOST_WRITERS:]):
            call, first, last = int(self._call[at]), int(self._first[at]), int(self._first[at] + self._size[at])
            if first >= end or last <= begin or (wanted is not None and call not in wanted):
                continue
            if call == self._call[row]:
                continue
            found.append(at)
            if wanted is None and first <= begin and last >= end:
                wanted = set(self._above(call)) - set(self._above(int(self._call[row])))
                if not wanted:
                    break
        return found

    def _rows_by_buffer(self) -> list[Int64s]:
        order = np.argsort(self.buffer, kind="stable")
        return np.split(order, np.flatnonzero(np.diff(self.buffer[order])) + 1) if len(order) else []

    def producers_of(self, call: int) -> list[int]:
        """The calls that wrote what this call reads."""
        return self.edges[self.edges[:, 1] == call, 0].tolist()

    def readers_of(self, call: int) -> list[int]:
        """The calls that read what this call writes."""
        return self.edges[self.edges[:, 0] == call, 1].tolist()

    @cached_property
    def never_read(self) -> Bools:
        """Which calls write only tensors that are gone or overwritten before anybody reads them.

        A tensor that is still there at the end may be read later. Tensors on the CPU are left out, because reads by
        NumPy and Python are not recorded.
        """
        on_cpu = self.tensors.device.like("^cpu")
        lost = self._ends() | self._is_overwritten()
        result = np.zeros(len(self.calls), bool)
        result[self._call[self._writes]] = True
        result[self._call[self._writes & (on_cpu | ~lost)]] = False
        result[self.edges[:, 0]] = False
        return result

    def _ends(self) -> Bools:
        """Tensors whose memory is another tensor's later."""
        storages, which = np.unique(self._storage, return_inverse=True)
        last = greatest_of(len(storages), which, self.buffer)
        return self.buffer < last[which]

    def _is_overwritten(self) -> Bools:
        """Tensors that a later call overwrites as a whole."""
        result = np.zeros(len(self._call), bool)
        over = self.tensors.access.equal("write")
        for rows in self._rows_by_buffer():
            latest = rows[over[rows]][-1:]
            if len(latest):
                first, beyond = self._first[latest], self._first[latest] + self._size[latest]
                inside = (self._first[rows] >= first) & (self._first[rows] + self._size[rows] <= beyond)
                result[rows] = inside & (self._call[rows] < self._call[latest])
        return result

    @cached_property
    def copies_needed(self) -> Bools:
        """Which calls copy a tensor (read one, write another) that could not be read in its place: the copy is written
        to later, or the original is, before the copy is read for the last time."""
        result = np.zeros(len(self.calls), bool)
        last_write, last_read = (self._last(which) for which in (self._writes, self._reads))
        reads = dict(zip(self._call[self._reads].tolist(), self.buffer[self._reads].tolist(), strict=True))
        for call, buffer in zip(self._call[self._writes].tolist(), self.buffer[self._writes].tolist(), strict=True):
            source = reads.get(call)
            if source is None or source == buffer:
                continue
            written = last_write[buffer] > call and not self._is_within(last_write[buffer], call)
            result[call] |= written or call < last_write.get(source, NONE) < last_read.get(buffer, NONE)
        return result

    def _last(self, chosen: Bools) -> dict[int, int]:
        """The last of these calls for each buffer."""
        return dict(zip(self.buffer[chosen].tolist(), self._call[chosen].tolist(), strict=True))

    def _is_within(self, inner: int, outer: int) -> bool:
        return inner == outer or outer in self._above(inner)

    @cached_property
    def same_in_first_step(self) -> Int64s:
        """For each call, the same call in the first step; NONE for those without one."""
        order = OpOrder.of_dataflow(self.calls)
        result = np.where(order.step == 0, np.arange(len(order.step)), NONE)
        later = order.step > 0
        found = same_ops(order, _only(order, order.step == 0))
        result[later] = found[later]
        return result

    @cached_property
    def growing(self) -> list[ShapeChange]:
        """Tensors whose shape changes from the first step to the second, in order of calls."""
        order = OpOrder.of_dataflow(self.calls)
        partner = same_ops(_only(order, order.step == 0), _only(order, order.step == 1))
        shapes = self._shapes()
        return [
            ShapeChange(call, self.calls.op.text(call) or "", before, after)
            for call, later in enumerate(partner.tolist())
            for before, after in dict.fromkeys(_pairs(shapes.get(call, {}), shapes.get(later, {})))
            if before != after
        ]

    def _shapes(self) -> dict[int, Shapes]:
        """The shapes of each call's tensors by their place: direction, argument, and position in a list of tensors."""
        found: dict[int, Shapes] = {}
        place: Counter[tuple[int, int, int]] = Counter()
        tensors = self.tensors
        columns = (tensors.call, tensors.direction.codes, tensors.argument)
        for *key, shape in zip(*(column.tolist() for column in columns), tensors.shape.texts, strict=True):
            call, direction, argument = key
            found.setdefault(call, {})[direction, argument, place[call, direction, argument]] = shape
            place[call, direction, argument] += 1
        return found

    def are_independent(self, groups: list[Int64s], adding: Bools) -> bool | None:
        """Whether no group of calls reads what another wrote; calls that only sum over the groups (`adding`) may.

        None where a call is unknown, and where the groups read the same and nothing else: then they are no iterations
        over parts of something.
        """
        of = np.full(len(self.calls), NONE, np.int64)
        for number, calls in enumerate(groups):
            if NONE in calls:
                return None
            of[calls] = number
        producer, consumer = self.edges.T
        inside = (of[producer] != NONE) & (of[consumer] != NONE)
        producer, consumer = producer[inside], consumer[inside]
        sums, crosses = adding[consumer], of[producer] != of[consumer]
        # A sum over the groups may be summed further; a group that goes on with it depends on those before it.
        summed = np.zeros(len(self.calls), bool)
        found = crosses & sums
        while (found & ~summed[consumer]).any():
            summed[consumer[found]] = True
            found = sums & summed[producer]
        if (~sums & (crosses | summed[producer])).any():
            return False
        taken = [self._taken(calls) for calls in groups]
        return True if len(set(taken)) == len(taken) else None

    def _taken(self, calls: Int64s) -> frozenset[tuple[int, int]]:
        """Buffers and offsets that these calls read."""
        rows = np.flatnonzero(self._reads & np.isin(self._call, calls))
        return frozenset(zip(self.buffer[rows].tolist(), self._first[rows].tolist(), strict=True))

    def connected(self, calls: Int64s) -> Int64s:
        """Which of these calls hang together through tensors that they write or read: the same number for those."""
        group: dict[int, int] = {}

        def root(item: int) -> int:
            while group.setdefault(item, item) != item:
                group[item] = item = group[group[item]]
            return item

        many = self.tensors.elements > 1
        rows_of = np.searchsorted(self._call, calls), np.searchsorted(self._call, calls, side="right")
        for call, begin, end in zip(calls.tolist(), *(bounds.tolist() for bounds in rows_of), strict=True):
            for buffer in self.buffer[begin:end][many[begin:end]].tolist():
                group[root(-2 - buffer)] = root(call)
        number: dict[int, int] = {}
        return np.array([number.setdefault(root(call), len(number)) for call in calls.tolist()], np.int64)


def _pairs(before: Shapes, after: Shapes) -> Iterator[tuple[str, str]]:
    """Recorded shapes of the tensors that are in both."""
    for place, shape in before.items():
        if shape and after.get(place):
            yield shape, after[place]


def _only(order: OpOrder, keep: Bools) -> OpOrder:
    """The same ops, with only these in a step."""
    return replace(order, step=np.where(keep, 0, NONE))
