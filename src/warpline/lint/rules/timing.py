"""Timings that show something else than the GPU's time."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from warpline.lint.clocks import Region, is_clock, regions, synchronised_clock, whole_iteration
from warpline.lint.model import Rule, Spot
from warpline.lint.program import Position, Program, position
from warpline.lint.syncing import explicit, waits

TRAINS = frozenset(["backward", "step", "fit", "train"])
"""Work of a training loop: its times are logs, not benchmarks."""
TIMEIT = frozenset({"timeit.timeit", "timeit.repeat"})


def _unsynchronised(program: Program) -> Iterator[Spot]:
    if not program.uses_gpu:
        return
    message = "the clock is read before the GPU has finished: this is the time to launch, not to run"
    for region in regions(program):
        if region.by_events or synchronised_clock(program, region.end):
            continue
        loop = whole_iteration(program, region)
        if loop is not None and any(waits(program, node) and program.hot(node) for node in ast.walk(loop)):
            continue  # each iteration waits once, so that its length is right wherever the clock is read
        if _ends_in_work(program, _inside(program, region.scope, *region.span)):
            yield Spot(region.end.lineno, region.end.col_offset + 1, message)
    yield from _with_timers(program, message)
    yield from _with_timeit(program, message)


def _with_timers(program: Program, message: str) -> Iterator[Spot]:
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
        made = [item.context_expr for item in node.items if isinstance(item.context_expr, ast.Call)]
        inside = [part for line in node.body for part in ast.walk(line)]
        if any(program.names.last(call.func) in timers for call in made) and _ends_in_work(program, inside):
            yield Spot(node.lineno, node.col_offset + 1, message)


def _with_timeit(program: Program, message: str) -> Iterator[Spot]:
    for node in program.calls:
        timed = node.args[0] if program.names.full(node.func) in TIMEIT and node.args else None
        if isinstance(timed, ast.Lambda) and _ends_in_work(program, list(ast.walk(timed.body))):
            yield Spot(node.lineno, node.col_offset + 1, message)


def _inside(program: Program, scope: ast.AST, after: Position, before: Position) -> list[ast.AST]:
    """What is evaluated between two places of a function, other functions left out."""
    return [
        node
        for node in ast.walk(scope)
        if isinstance(node, ast.expr) and after < position(node) < before and program.scope(node) is scope
    ]


def _ends_in_work(program: Program, nodes: list[ast.AST]) -> bool:
    """Whether GPU work is enqueued, and nothing waits for it."""
    work = [position(node) for node in nodes if works(program, node)]
    waiting = [position(node) for node in nodes if waits(program, node)]
    return bool(work) and max(work) > max(waiting, default=(0, 0))


def works(program: Program, node: ast.AST) -> bool:
    """Whether the node enqueues GPU work, also through a function of this file or a function given as an argument."""
    if program.kinds.is_work(node):
        return True
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return False
    called = program.functions.get(node.func.id)
    if called is not None:
        return any(program.kinds.is_work(inner) for inner in ast.walk(called))
    scope = program.scope(node)
    if not isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    return node.func.id in {argument.arg for argument in scope.args.args} and _given_work(program, scope.name)


def _given_work(program: Program, helper: str) -> bool:
    """Whether some call gives this helper a torch function, a module, tensors on the GPU or a lambda with GPU work."""
    given = [value for call in program.calls if program.names.last(call.func) == helper for value in call.args]
    return any(
        program.kinds.of(value) in {"gpu", "module"}
        or program.names.full(value).startswith("torch.")
        or (isinstance(value, ast.Lambda) and any(works(program, inner) for inner in ast.walk(value.body)))
        for value in given
    )


def _cold(program: Program) -> Iterator[Spot]:
    if not program.uses_gpu:
        return
    seen: set[int] = set()
    for region in regions(program):
        if region.start.lineno in seen or program.loop_around(region.start) is not None:
            continue
        if program.loop_around(region.end) is not None:
            continue  # read again and again, as a log
        inside = _inside(program, region.scope, *region.span)
        keys = {_key(program, node) for node in inside if works(program, node)} - {""}
        if keys and not {key.rpartition(".")[2] for key in keys} & TRAINS and not _warmed(program, region, keys):
            seen.add(region.start.lineno)
            message = "the first call is timed too: it loads kernels, plans and allocates"
            yield Spot(region.start.lineno, region.start.col_offset + 1, message)


def _warmed(program: Program, region: Region, keys: set[str]) -> bool:
    """Whether the same work ran before, or something is called a warm-up."""
    lines = program.text.splitlines()
    first = getattr(region.scope, "lineno", 1)
    if re.search(r"warm", "\n".join(lines[first - 1 : region.start.lineno]), re.IGNORECASE):
        return True
    before = [*_inside(program, region.scope, (0, 0), position(region.start))]
    return any(_key(program, node) in keys for node in before if works(program, node))


def _key(program: Program, node: ast.AST) -> str:
    """What a piece of work is called."""
    if isinstance(node, ast.BinOp):
        return type(node.op).__name__
    if isinstance(node, ast.Call):
        target = node.func.value if isinstance(node.func, ast.Subscript) else node.func
        return program.names.dotted(target) or program.names.last(target)
    return ""


RULES = (
    Rule(
        "unsynchronised-timing",
        "A clock is read while the GPU still works.",
        "call torch.cuda.synchronize() before reading the clock, or use CUDA events or warpline bench",
        _unsynchronised,
    ),
    Rule(
        "no-warm-up",
        "The first call of something is timed.",
        "run it a few times before the clock starts, or use warpline bench",
        _cold,
    ),
)
