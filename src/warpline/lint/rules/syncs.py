"""Waits for the GPU, and calls that imply one, in every iteration of a loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from warpline.lint.clocks import timed_loop
from warpline.lint.model import LintRule, LintSpot
from warpline.lint.source_file import SourceFile
from warpline.lint.syncing import explicit, implicit, reason


def _implicit(program: SourceFile) -> Iterator[LintSpot]:
    if not program.uses_gpu:
        return
    for node in ast.walk(program.tree):
        what = implicit(program, node)
        place = node.test if isinstance(node, ast.If | ast.While | ast.Assert) else node
        if what and isinstance(place, ast.expr) and program.hot(place):
            message = f"{what} makes the CPU wait for the GPU in every iteration: {reason(what)}"
            yield LintSpot(_line(place), place.col_offset + 1, message)


def _line(node: ast.expr) -> int:
    """The line of the call's own name: a chain may begin some lines above."""
    return node.func.end_lineno or node.lineno if isinstance(node, ast.Call) else node.lineno


def _explicit(program: SourceFile) -> Iterator[LintSpot]:
    if not program.uses_gpu:
        return
    for node in program.calls:
        what = explicit(program, node)
        loop = program.loop_around(node)
        if what and program.hot(node) and not (loop is not None and timed_loop(program, loop)):
            yield LintSpot(node.lineno, node.col_offset + 1, f"{what} drains the GPU's queue in every iteration")


def _empty_cache(program: SourceFile) -> Iterator[LintSpot]:
    for node in program.calls:
        if program.names.full(node.func) == "torch.cuda.empty_cache" and program.hot(node):
            message = "torch.cuda.empty_cache() frees memory that the next iteration has to allocate again, and waits"
            yield LintSpot(node.lineno, node.col_offset + 1, message)


RULES = (
    LintRule(
        "sync-in-loop",
        "A value of the GPU is read on the CPU in every iteration: the CPU waits, and the GPU then waits for launches.",
        "keep the value on the GPU (detach()), and read it after the loop or every n-th iteration; where the size of a "
        "result depends on values, use a fixed size: torch.where with three arguments, a mask, topk",
        _implicit,
    ),
    LintRule(
        "synchronize-in-loop",
        "The CPU waits for the GPU in every iteration, and nothing is timed there.",
        "remove it; the order on a stream is kept without it",
        _explicit,
    ),
    LintRule(
        "empty-cache-in-loop",
        "The allocator's cache is emptied in every iteration.",
        "remove it, or call it once before the loop",
        _empty_cache,
    ),
)
