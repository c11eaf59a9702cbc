"""Reads a pickle without running it: only dicts, lists, tuples, texts, bytes, numbers, truth values and None are built.

A pickle is a program for a small stack machine, and some of its instructions import and call anything. This machine has
no such instruction: a file that needs one is refused. The format is that of Python's `pickletools`, protocols 2 to 5.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, TypeAlias

from warpline.sources.valid_text import valid_text

Plain: TypeAlias = Any
"""What such a pickle holds: `None`, bool, int, float, str, bytes, and lists, tuples and dicts of these."""

MAX_OBJECTS = 20_000_000
"""Containers and entries of the memo. A history of a million allocations has up to six million: three containers each,
and an entry for each."""
BYTES_PER_OBJECT = 6
"""The shortest entry of a history takes 31 bytes of the file for its dict, its empty list and both in the memo."""
SPARE_OBJECTS = 1_000_000
"""Allowed whatever the length of the file. They take 100 MB."""
MAX_MARKS = 1_000
"""Containers that are open at once: a snapshot has six."""
MAX_INTEGER_BYTES = 16
SMALL_KEY = 1 << 32
"""Integers below it are spread over a dict; larger ones could be chosen to collide."""

_CALLS = {
    **{0x63: "GLOBAL", 0x93: "STACK_GLOBAL", 0x52: "REDUCE", 0x69: "INST", 0x6F: "OBJ", 0x81: "NEWOBJ"},
    **{0x92: "NEWOBJ_EX", 0x62: "BUILD", 0x82: "EXT1", 0x83: "EXT2", 0x84: "EXT4", 0x50: "PERSID", 0x51: "BINPERSID"},
}
"""Instructions that import, call or change something outside of the pickle."""
_PROTOCOLS = range(2, 6)


class UnsafePickle(Exception):
    """The pickle would run code."""


class DamagedPickle(Exception):
    """The pickle is cut short, is no pickle, or is beyond a limit."""


def load_plain(content: bytes) -> Plain:
    """The value in a pickle of plain values; `UnsafePickle` or `DamagedPickle` for any other file."""
    return _Machine(content).run()


class _Machine:
    """The stack machine: its stack, the stacks below each open mark, and the memo."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.at = 0
        self.stack: list[Plain] = []
        self.below: list[list[Plain]] = []
        self.memo: dict[int, Plain] = {}
        self.objects_left = min(MAX_OBJECTS, SPARE_OBJECTS + len(content) // BYTES_PER_OBJECT)
        self.done = False

    def run(self) -> Plain:
        content = self.content
        if len(content) < 2 or content[0] != 0x80 or content[1] not in _PROTOCOLS:
            raise DamagedPickle("it is not a pickle of protocol 2 to 5")
        try:
            while not self.done:
                code = self.byte()
                instruction = _INSTRUCTIONS.get(code)
                if instruction is None:
                    self._refuse(code)
                else:
                    instruction(self)
            return self.stack.pop()
        except (IndexError, struct.error) as error:
            reason = "it ends too early" if self.at >= len(content) else f"it makes no sense at byte {self.at:,}"
            raise DamagedPickle(reason) from error
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise DamagedPickle(f"it makes no sense at byte {self.at:,}") from error

    def _refuse(self, code: int) -> None:
        if code in _CALLS:
            raise UnsafePickle(f"{_CALLS[code]} at byte {self.at - 1:,}")
        raise DamagedPickle(f"instruction 0x{code:02x} at byte {self.at - 1:,} is none of a memory snapshot")

    def take(self, count: int) -> bytes:
        """The next bytes of the file."""
        end = self.at + count
        if end > len(self.content):
            self.at = len(self.content)
            raise DamagedPickle("it ends too early")
        taken = self.content[self.at : end]
        self.at = end
        return taken

    def byte(self) -> int:
        """The next byte of the file as a number."""
        self.at += 1
        return self.content[self.at - 1]

    def number(self, count: int) -> int:
        """An unsigned number of so many bytes."""
        return int.from_bytes(self.take(count), "little")

    def push_container(self, container: Plain) -> None:
        """Puts a new container on the stack."""
        self.count_object()
        self.stack.append(container)

    def count_object(self) -> None:
        """Refuses what takes far more memory than a snapshot of this length."""
        self.objects_left -= 1
        if self.objects_left < 0:
            raise DamagedPickle("it has more lists, dicts and entries of its memo than a snapshot of its length")

    def pop_marked(self) -> list[Plain]:
        """What lies above the last mark."""
        items = self.stack
        self.stack = self.below.pop()
        return items


def _mark(machine: _Machine) -> None:
    if len(machine.below) >= MAX_MARKS:
        raise DamagedPickle("it is nested too deeply")
    machine.below.append(machine.stack)
    machine.stack = []


def _tuple(machine: _Machine, count: int) -> None:
    stack = machine.stack
    if len(stack) < count:
        raise IndexError
    items = tuple(stack[len(stack) - count :])
    del stack[len(stack) - count :]
    machine.push_container(items)


def _append(machine: _Machine) -> None:
    item = machine.stack.pop()
    _list(machine).append(item)


def _appends(machine: _Machine) -> None:
    items = machine.pop_marked()
    _list(machine).extend(items)


def _list(machine: _Machine) -> list[Plain]:
    target = machine.stack[-1]
    if not isinstance(target, list):
        raise TypeError
    return target


def _set_item(machine: _Machine) -> None:
    value = machine.stack.pop()
    key = machine.stack.pop()
    _set(machine, [key, value])


def _set_items(machine: _Machine) -> None:
    _set(machine, machine.pop_marked())


def _set(machine: _Machine, items: list[Plain]) -> None:
    target = machine.stack[-1]
    if not isinstance(target, dict) or len(items) % 2:
        raise TypeError
    for place in range(0, len(items), 2):
        key = items[place]
        if not isinstance(key, str) and not (isinstance(key, int) and -SMALL_KEY < key < SMALL_KEY):
            raise TypeError
        target[key] = items[place + 1]


def _signed(machine: _Machine, width: int) -> None:
    machine.stack.append(int.from_bytes(machine.take(width), "little", signed=True))


def _long(machine: _Machine) -> None:
    width = machine.byte()
    if width > MAX_INTEGER_BYTES:
        raise ValueError
    _signed(machine, width)


def _text(machine: _Machine, width: int) -> None:
    machine.stack.append(valid_text(machine.take(machine.number(width)).decode("utf-8", "surrogatepass")))


def _bytes(machine: _Machine, width: int) -> None:
    machine.stack.append(machine.take(machine.number(width)))


def _put(machine: _Machine, number: int) -> None:
    machine.count_object()
    machine.memo[number] = machine.stack[-1]


def _stop(machine: _Machine) -> None:
    machine.done = True


_Instruction = Callable[[_Machine], Any]
_INSTRUCTIONS: dict[int, _Instruction] = {
    0x80: lambda machine: machine.take(1),  # PROTO
    0x95: lambda machine: machine.take(8),  # FRAME
    0x2E: _stop,
    0x28: _mark,
    0x7D: lambda machine: machine.push_container({}),  # EMPTY_DICT
    0x5D: lambda machine: machine.push_container([]),  # EMPTY_LIST
    0x29: lambda machine: machine.stack.append(()),  # EMPTY_TUPLE
    0x74: lambda machine: machine.push_container(tuple(machine.pop_marked())),  # TUPLE
    0x85: lambda machine: _tuple(machine, 1),
    0x86: lambda machine: _tuple(machine, 2),
    0x87: lambda machine: _tuple(machine, 3),
    0x61: _append,
    0x65: _appends,
    0x73: _set_item,
    0x75: _set_items,
    0x94: lambda machine: _put(machine, len(machine.memo)),  # MEMOIZE
    0x71: lambda machine: _put(machine, machine.byte()),  # BINPUT
    0x72: lambda machine: _put(machine, machine.number(4)),  # LONG_BINPUT
    0x68: lambda machine: machine.stack.append(machine.memo[machine.byte()]),  # BINGET
    0x6A: lambda machine: machine.stack.append(machine.memo[machine.number(4)]),  # LONG_BINGET
    0x4B: lambda machine: machine.stack.append(machine.byte()),  # BININT1
    0x4D: lambda machine: machine.stack.append(machine.number(2)),  # BININT2
    0x4A: lambda machine: _signed(machine, 4),  # BININT
    0x8A: _long,  # LONG1
    0x47: lambda machine: machine.stack.append(struct.unpack(">d", machine.take(8))[0]),  # BINFLOAT
    0x8C: lambda machine: _text(machine, 1),
    0x58: lambda machine: _text(machine, 4),
    0x8D: lambda machine: _text(machine, 8),
    0x43: lambda machine: _bytes(machine, 1),
    0x42: lambda machine: _bytes(machine, 4),
    0x8E: lambda machine: _bytes(machine, 8),
    0x4E: lambda machine: machine.stack.append(None),
    0x88: lambda machine: machine.stack.append(True),
    0x89: lambda machine: machine.stack.append(False),
}
