"""Timed regions of a program: from one reading of a clock to the next, and between two CUDA events."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from warpline.lint.program import LOOPS, Position, Program, position
from warpline.lint.syncing import explicit
from warpline.records import dataclass

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


def is_clock(program: Program, node: ast.AST) -> bool:
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


def synchronised_clock(program: Program, node: ast.Call) -> bool:
    """Whether the reading itself waits for the GPU first."""
    called = program.functions.get(program.names.last(node.func))
    return called is not None and any(explicit(program, inner) for inner in ast.walk(called))


def regions(program: Program) -> Iterator[Region]:
    """Every timed region: `clock() - start`, `end - start`, and `start.elapsed_time(end)`."""
    readings = _readings(program)
    for node in ast.walk(program.tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            scope = program.scope(node)
            start = _last(readings, program, scope, node.right, node)
            direct = node.left if isinstance(node.left, ast.Call) and is_clock(program, node.left) else None
            end = direct or _last(readings, program, scope, node.left, node)
            if start is not None and isinstance(end, ast.Call) and position(start) < position(end):
                yield Region(start, end, scope)
        elif isinstance(node, ast.Call) and program.names.last(node.func) == "elapsed_time" and node.args:
            yield from _by_events(program, node)


def _readings(program: Program) -> list[tuple[str, ast.AST, ast.Call]]:
    """Names that hold a reading, with their scope."""
    found: list[tuple[str, ast.AST, ast.Call]] = []
    for node in ast.walk(program.tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and is_clock(program, node.value):
            found += [(program.names.dotted(target), program.scope(node), node.value) for target in node.targets]
    return found


def _last(
    readings: list[tuple[str, ast.AST, ast.Call]], program: Program, scope: ast.AST, name: ast.expr, before: ast.AST
) -> ast.Call | None:
    dotted = program.names.dotted(name)
    fitting = [
        call
        for known, where, call in readings
        if known == dotted and dotted and where is scope and position(call) < position(before)
    ]
    return max(fitting, key=position) if fitting else None


def _by_events(program: Program, node: ast.Call) -> Iterator[Region]:
    assert isinstance(node.func, ast.Attribute)
    scope = program.scope(node)

    def recorded(name: ast.expr) -> ast.Call | None:
        dotted = f"{program.names.dotted(name)}.record"
        calls = [
            call for call in program.calls if program.names.dotted(call.func) == dotted and program.scope(call) is scope
        ]
        return max((call for call in calls if position(call) < position(node)), key=position, default=None)

    start, end = recorded(node.func.value), recorded(node.args[0])
    if start is not None and end is not None and position(start) < position(end):
        yield Region(start, end, scope, by_events=True)


def whole_iteration(program: Program, region: Region) -> ast.AST | None:
    """The loop, if the region is one iteration of it: its name is set again after the reading, for the next one."""
    loop, assigned = program.loop_around(region.end), program.parents.get(region.start)
    if loop is None or loop is program.loop_around(region.start) or not isinstance(assigned, ast.Assign):
        return None
    names = {program.names.dotted(target) for target in assigned.targets}
    again = [
        node
        for node in ast.walk(loop)
        if isinstance(node, ast.Assign) and names & {program.names.dotted(target) for target in node.targets}
    ]
    return loop if any(position(node) > position(region.end) for node in again) else None


def timed_loop(program: Program, loop: ast.AST) -> bool:
    """Whether a loop measures its iterations: it reads a clock or records events."""
    return isinstance(loop, LOOPS) and any(
        is_clock(program, node) or (isinstance(node, ast.Call) and program.names.last(node.func) == "record")
        for node in ast.walk(loop)
    )
