"""The loops of a running program, seen from the calls that are made in them.

A call comes with the frames above it: where each of them stands in its bytecode, and which loops of its code hold that
position. A position that goes back, or that comes again, shows that a loop has gone round.
"""

from __future__ import annotations

import dis
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import NamedTuple

MAX_FRAMES = 200
_OURS = str(Path(__file__).parent)
_WRAPPERS = ("/torch/nn/modules/module.py", "/torch/optim/optimizer.py", "/torch/optim/lr_scheduler.py")
"""Files whose frames lie between a call in the program and our listeners."""
_AWAIT = "JUMP_BACKWARD_NO_INTERRUPT"
"""The jump that `await` and `yield from` make while they wait: no loop of the program."""


class Position(NamedTuple):
    """Where a frame stands."""

    frame: int
    """Its address; a later frame may have the same."""
    code: CodeType
    offset: int


class Order(NamedTuple):
    """A loop among those around a call: an outer one comes first."""

    depth: int
    """The index of its frame."""
    first: int
    """The offset of its first instruction."""


OUTERMOST = Order(-1, -1)
"""The program as a whole, which repeats a call where no loop of Python's holds it."""


class LoopKey(NamedTuple):
    """A loop below another one: the calls that lead to it, its code, and its first instruction."""

    calls: tuple[tuple[int, int], ...]
    code: CodeType
    first: int


def call_stack() -> list[Position]:
    """The frames of the program above this call, outermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _between(frame.f_code.co_filename):
        frame = frame.f_back
    found: list[Position] = []
    while frame is not None and len(found) < MAX_FRAMES:
        found.append(Position(id(frame), frame.f_code, frame.f_lasti))
        frame = frame.f_back
    found.reverse()
    return found


def _between(file: str) -> bool:
    return file.startswith(_OURS) or file.endswith(_WRAPPERS)


class CallPlace(NamedTuple):
    """A line of the program."""

    file: str
    """As torch.profiler writes it: without the folder from which Python imports it."""
    line: int
    function: str


def place_outside(folder: str) -> CallPlace | None:
    """The line of the program that leads to this call through the files of a library's folder."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith((_OURS, folder)):
        frame = frame.f_back
    if frame is None:
        return None
    file = frame.f_code.co_filename
    prefix = max((path for path in sys.path if path and file.startswith(path + os.sep)), key=len, default="")
    return CallPlace(file[len(prefix) + 1 :] if prefix else file, frame.f_lineno, frame.f_code.co_name)


_spans: dict[int, tuple[CodeType, list[tuple[int, int]]]] = {}


def loop_spans(code: CodeType) -> list[tuple[int, int]]:
    """The first and last instruction of each loop of a function, outer loops first."""
    known = _spans.get(id(code))
    if known is None:
        last: dict[int, int] = {}
        jumps = {*dis.hasjrel, *dis.hasjabs}
        for each in dis.get_instructions(code):
            if each.opcode in jumps and each.opname != _AWAIT and each.argval <= each.offset:
                last[each.argval] = max(last.get(each.argval, 0), each.offset)
        known = _spans[id(code)] = code, sorted(last.items(), key=lambda span: (span[0], -span[1]))
    return known[1]


def loops_around(stack: Sequence[Position]) -> list[tuple[Order, LoopKey]]:
    """The loops that hold a call, outermost first."""
    found = []
    calls: list[tuple[int, int]] = []
    for depth, at in enumerate(stack):
        for first, last in loop_spans(at.code):
            if first <= at.offset <= last:
                found.append((Order(depth, first), LoopKey(tuple(calls), at.code, first)))
                calls = []
        calls.append((id(at.code), at.offset))
    return found


def went_round(before: Sequence[Position], now: Sequence[Position]) -> Order | None:
    """The loop that went round between two calls; None if the program only went on to a later line."""
    deepest = OUTERMOST
    for depth, (old, new) in enumerate(zip(before, now)):  # noqa: B905 - Python 3.9
        if old.frame != new.frame or old.code is not new.code:
            break
        if new.offset > old.offset:
            return None
        shared = [first for first, last in loop_spans(new.code) if first <= new.offset and old.offset <= last]
        if shared:
            deepest = Order(depth, shared[-1])
        if new.offset < old.offset:
            # Going back without a loop takes a new call, whose frame has the address of the last one.
            break
    return deepest


def line_of(key: LoopKey) -> int:
    """The line of a loop's first instruction."""
    found = key.code.co_firstlineno
    for offset, line in dis.findlinestarts(key.code):
        if offset > key.first:
            break
        found = line or found
    return found
