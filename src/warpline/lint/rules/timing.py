"""Timings that show something else than the GPU's time."""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from operator import itemgetter

from warpline.lint.clocks import Region, is_clock, regions, synchronised_clock, whole_iteration
from warpline.lint.model import LintRule, LintSpot
from warpline.lint.source_file import Position, SourceFile, position
from warpline.lint.syncing import explicit, waits

TRAINS = frozenset(["backward", "step", "fit", "train"])
"""Work of a training loop: its times are logs, not benchmarks."""
TIMEIT = frozenset({"timeit.timeit", "timeit.repeat"})


def _unsynchronised(program: SourceFile) -> Iterator[LintSpot]:
    if not program.uses_gpu:
        return
    message = "the clock is read before the GPU has finished: this is the time to launch, not to run"
    for region in regions(program):
        if region.by_events or synchronised_clock(program, region.end):
            continue
        loop = whole_iteration(program, region)
        if loop is not None and program.has(loop, _waits_often):
            continue  # each iteration waits once, so that its length is right wherever the clock is read
        if program.once(_activity)[region.scope].ends_in_work(*region.span):
            yield LintSpot(region.end.lineno, region.end.col_offset + 1, message)
    yield from _with_timers(program, message)
    yield from _with_timeit(program, message)


def _with_timers(program: SourceFile, message: str) -> Iterator[LintSpot]:
    """`with Timer():` of a class in this file that reads a clock on leaving and does not wait before it."""
    timers = set()
    for node in ast.walk(program.tree):
        if isinstance(node, ast.ClassDef):
            leaving = [part for part in node.body if isinstance(part, ast.FunctionDef) and part.name == "__exit__"]
            inner = [part for method in leaving for part in ast.walk(method)]
            if any(is_clock(program, part) for part in inner) and not any(explicit(program, part) for part in inner):
                timers.add(node.name)
    for node in ast.walk(program.tree):
        if not isinstance(node, ast.With):
            continue
        calls = [item.context_expr for item in node.items if isinstance(item.context_expr, ast.Call)]
        inside = [part for line in node.body for part in ast.walk(line)]
        if any(program.names.last(call.func) in timers for call in calls) and _ends_in_work(program, inside):
            yield LintSpot(node.lineno, node.col_offset + 1, message)


def _with_timeit(program: SourceFile, message: str) -> Iterator[LintSpot]:
    for node in program.calls:
        timed = node.args[0] if program.names.full(node.func) in TIMEIT and node.args else None
        if isinstance(timed, ast.Lambda) and _ends_in_work(program, list(ast.walk(timed.body))):
            yield LintSpot(node.lineno, node.col_offset + 1, message)


@dataclass(slots=True)
class _Activity:
    """GPU work of one function and waits for it, other functions left out, in the order of the source."""

    work: list[tuple[Position, str]]
    """Where it is enqueued, and what it is called."""
    waits: list[Position]

    def ends_in_work(self, after: Position, before: Position) -> bool:
        """Whether GPU work is enqueued between two places, and nothing waits for it."""
        work = bisect_left(self.work, (before, ""))
        waiting = bisect_left(self.waits, before)
        last_wait = max(after, self.waits[waiting - 1]) if waiting else after
        return bool(work) and self.work[work - 1][0] > last_wait

    def names(self, after: Position, before: Position) -> set[str]:
        """What the work between two places is called."""
        first = bisect_right(self.work, after, key=itemgetter(0))
        return {name for _, name in self.work[first : bisect_left(self.work, (before, ""))]} - {""}


def _activity(program: SourceFile) -> defaultdict[ast.AST, _Activity]:
    """By function, or the module."""
    found = defaultdict[ast.AST, _Activity](lambda: _Activity([], []))
    for node in ast.walk(program.tree):
        if isinstance(node, ast.expr):
            if works(program, node):
                found[program.scope(node)].work.append((position(node), _key(program, node)))
            if waits(program, node):
                found[program.scope(node)].waits.append(position(node))
    for one in found.values():
        one.work.sort()
        one.waits.sort()
    return found


def _waits_often(program: SourceFile, node: ast.AST) -> bool:
    return waits(program, node) and program.hot(node)


def _ends_in_work(program: SourceFile, nodes: list[ast.AST]) -> bool:
    """Whether GPU work is enqueued, and nothing waits for it."""
    work = [position(node) for node in nodes if works(program, node)]
    waiting = [position(node) for node in nodes if waits(program, node)]
    return bool(work) and max(work) > max(waiting, default=(0, 0))


def works(program: SourceFile, node: ast.AST) -> bool:
    """Whether the node enqueues GPU work, also through a function of this file or a function given as an argument."""
    if program.kinds.is_work(node):
        return True
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return False
    called = program.functions.get(node.func.id)
    if called is not None:
        return program.works(called)
    scope = program.scope(node)
    if not isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    return scope.name in program.once(_given_work) and node.func.id in {one.arg for one in scope.args.args}


def _given_work(program: SourceFile) -> set[str]:
    """Functions that some call gives a torch function, a module, tensors on the GPU or a lambda with GPU work."""
    return {
        program.names.last(call.func)
        for call in program.calls
        for value in call.args
        if program.kinds.of(value) in {"gpu", "module"}
        or program.names.full(value).startswith("torch.")
        or (isinstance(value, ast.Lambda) and any(works(program, inner) for inner in ast.walk(value.body)))
    }


def _cold(program: SourceFile) -> Iterator[LintSpot]:
    if not program.uses_gpu:
        return
    seen: set[int] = set()
    for region in regions(program):
        if region.start.lineno in seen or program.loop_around(region.start) is not None:
            continue
        if program.loop_around(region.end) is not None:
            continue  # read again and again, as a log
        keys = program.once(_activity)[region.scope].names(*region.span)
        if keys and not {key.rpartition(".")[2] for key in keys} & TRAINS and not _warmed(program, region, keys):
            seen.add(region.start.lineno)
            message = "the first call is timed too: it loads kernels, plans and allocates"
            yield LintSpot(region.start.lineno, region.start.col_offset + 1, message)


def _warmed(program: SourceFile, region: Region, keys: set[str]) -> bool:
    """Whether the same work ran before, or something is called a warm-up."""
    named, first = program.once(_warm_lines), getattr(region.scope, "lineno", 1)
    place = bisect_left(named, first)
    if place < len(named) and named[place] <= region.start.lineno:
        return True
    return bool(keys & program.once(_activity)[region.scope].names((0, 0), position(region.start)))


def _warm_lines(program: SourceFile) -> list[int]:
    """Numbers of lines with `warm` in them."""
    return [number for number, line in enumerate(program.text.splitlines(), 1) if "warm" in line.lower()]


def _key(program: SourceFile, node: ast.AST) -> str:
    """What a piece of work is called."""
    if isinstance(node, ast.BinOp):
        return type(node.op).__name__
    if isinstance(node, ast.Call):
        target = node.func.value if isinstance(node.func, ast.Subscript) else node.func
        return program.names.dotted(target) or program.names.last(target)
    return ""


RULES = (
    LintRule(
        "unsynchronised-timing",
        "A clock is read while the GPU still works.",
        "call torch.cuda.synchronize() before reading the clock, or use CUDA events or warpline bench",
        _unsynchronised,
    ),
    LintRule(
        "no-warm-up",
        "The first call of something is timed.",
        "run it a few times before the clock starts, or use warpline bench",
        _cold,
    ),
)
