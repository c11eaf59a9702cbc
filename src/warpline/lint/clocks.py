"""Timed regions of a program: from one reading of a clock to the next, and between two CUDA events."""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from warpline.lint.source_file import LOOPS, Position, SourceFile, position
from warpline.lint.syncing import explicit

CLOCKS = frozenset(
    [
        "time.time",
        "time.perf_counter",
        "time.monotonic",
        "time.perf_counter_ns",
        "time.time_ns",
        "time.monotonic_ns",
        "time.process_time",
        "timeit.default_timer",
        "datetime.datetime.now",
        "datetime.datetime.utcnow",
    ]
)


@dataclass(frozen=True, slots=True)
class Region:
    """What runs between two readings."""

    start: ast.Call
    end: ast.Call
    scope: ast.AST
    by_events: bool = False

    @property
    def span(self) -> tuple[Position, Position]:
        """From the end of the first reading to the end of the second."""
        return position(self.start), position(self.end)


def is_clock(program: SourceFile, node: ast.AST) -> bool:
    """Whether this reads a clock, also through a function of the file that returns a reading."""
    if not isinstance(node, ast.Call):
        return False
    if program.names.full(node.func) in CLOCKS:
        return True
    called = program.functions.get(program.names.last(node.func))
    returned = called.body[-1] if called is not None else None
    return (
        isinstance(returned, ast.Return)
        and isinstance(returned.value, ast.Call)
        and (program.names.full(returned.value.func) in CLOCKS)
    )


def synchronised_clock(program: SourceFile, node: ast.Call) -> bool:
    """Whether the reading itself waits for the GPU first."""
    called = program.functions.get(program.names.last(node.func))
    return called is not None and program.has(called, explicit)


def regions(program: SourceFile) -> Iterator[Region]:
    """Every timed region: `clock() - start`, `end - start`, and `start.elapsed_time(end)`."""
    readings, recorded = program.once(_readings), program.once(_recorded)
    for node in ast.walk(program.tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            scope = program.scope(node)
            start = _last_before(readings.get((program.names.dotted(node.right), scope), []), node)
            direct = node.left if isinstance(node.left, ast.Call) and is_clock(program, node.left) else None
            end = direct or _last_before(readings.get((program.names.dotted(node.left), scope), []), node)
            if start is not None and isinstance(end, ast.Call) and position(start) < position(end):
                yield Region(start, end, scope)
        elif isinstance(node, ast.Call) and program.names.last(node.func) == "elapsed_time" and node.args:
            assert isinstance(node.func, ast.Attribute)
            scope = program.scope(node)
            start, end = (
                _last_before(recorded.get((f"{program.names.dotted(event)}.record", scope), []), node)
                for event in (node.func.value, node.args[0])
            )
            if start is not None and end is not None and position(start) < position(end):
                yield Region(start, end, scope, by_events=True)


Named = dict[tuple[str, ast.AST], list[ast.Call]]
"""Calls by a name and the function that it is in, in the order of the source."""


def _readings(program: SourceFile) -> Named:
    """What holds a reading of a clock."""
    found: Named = defaultdict(list)
    for node in ast.walk(program.tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and is_clock(program, node.value):
            for name in filter(None, map(program.names.dotted, node.targets)):
                found[name, program.scope(node)].append(node.value)
    return {key: sorted(calls, key=position) for key, calls in found.items()}


def _recorded(program: SourceFile) -> Named:
    """Every `event.record()`."""
    found: Named = defaultdict(list)
    for call in program.calls:
        if _records(program, call):
            found[program.names.dotted(call.func), program.scope(call)].append(call)
    return {key: sorted(calls, key=position) for key, calls in found.items()}


def _last_before(calls: list[ast.Call], node: ast.AST) -> ast.Call | None:
    place = bisect_left(calls, position(node), key=position)
    return calls[place - 1] if place else None


def whole_iteration(program: SourceFile, region: Region) -> ast.AST | None:
    """The loop, if the region is one iteration of it: its name is set again after the reading, for the next one."""
    loop, assigned = program.loop_around(region.end), program.parents.get(region.start)
    if loop is None or loop is program.loop_around(region.start) or not isinstance(assigned, ast.Assign):
        return None
    assignments, end = program.once(_assignments), position(loop)
    for places in (assignments[program.names.dotted(target)] for target in assigned.targets):
        following = bisect_right(places, position(region.end))
        if following < len(places) and places[following] <= end:
            return loop
    return None


def _assignments(program: SourceFile) -> dict[str, list[Position]]:
    """Where each name is assigned, in the order of the source."""
    found: dict[str, list[Position]] = defaultdict(list)
    for node in ast.walk(program.tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                found[program.names.dotted(target)].append(position(node))
    return {name: sorted(places) for name, places in found.items()}


def timed_loop(program: SourceFile, loop: ast.AST) -> bool:
    """Whether a loop measures its iterations: it reads a clock or records events."""
    return isinstance(loop, LOOPS) and (program.has(loop, is_clock) or program.has(loop, _records))


def _records(program: SourceFile, node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and program.names.last(node.func) == "record"
