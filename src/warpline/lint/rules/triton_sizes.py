"""Sizes of the data as `tl.constexpr`: Triton compiles a kernel again for each value."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

from warpline.lint.model import LintRule, LintSpot
from warpline.lint.source_file import FUNCTIONS, Function, SourceFile

ROUNDED = frozenset(["next_power_of_2", "cdiv", "min", "max"])
"""Functions that map many sizes to few values."""
COUNTS = frozenset(["numel", "nelement"])
TELLING = frozenset(["n_elements", "numel", "num_elements"])
"""Names that mean a number of elements, where no launch is in the file."""


def _recompiles(program: SourceFile) -> Iterator[LintSpot]:
    for kernel in _kernels(program):
        arguments = [*kernel.args.posonlyargs, *kernel.args.args, *kernel.args.kwonlyargs]
        constant = [a.arg for a in arguments if a.annotation is not None and _is_constexpr(program, a.annotation)]
        launches = program.once(_launches).get(kernel.name, [])
        for name in constant:
            place = [argument.arg for argument in arguments].index(name)
            given = [value for call in launches if (value := _given(call, place, name)) is not None]
            if any(_varies(program, value) for value in given) or (not launches and name.lower() in TELLING):
                message = f"{name} is the size of the data and tl.constexpr: each size compiles the kernel again"
                yield LintSpot(kernel.lineno, kernel.col_offset + 1, message)


def _kernels(program: SourceFile) -> Iterator[Function]:
    for node in ast.walk(program.tree):
        if isinstance(node, ast.FunctionDef):
            made_by = [part.func if isinstance(part, ast.Call) else part for part in node.decorator_list]
            if any(program.names.full(part) in {"triton.jit", "triton.runtime.jit.jit"} for part in made_by):
                yield node


def _is_constexpr(program: SourceFile, node: ast.expr) -> bool:
    return program.names.full(node) == "triton.language.constexpr"


def _launches(program: SourceFile) -> dict[str, list[ast.Call]]:
    """Calls such as `kernel[grid](…)`, by the kernel's name."""
    found: dict[str, list[ast.Call]] = defaultdict(list)
    for call in program.calls:
        if isinstance(call.func, ast.Subscript) and isinstance(call.func.value, ast.Name):
            found[call.func.value.id].append(call)
    return found


def _given(call: ast.Call, place: int, name: str) -> ast.expr | None:
    by_name = next((word.value for word in call.keywords if word.arg == name), None)
    return by_name if by_name is not None else call.args[place] if place < len(call.args) else None


def _varies(program: SourceFile, node: ast.expr, depth: int = 0) -> bool:
    """Whether a value is a size that differs from call to call: any but a tensor's last one, which a model fixes."""
    if isinstance(node, ast.Call):
        name = program.names.last(node.func)
        if name in ROUNDED:
            return False
        if name in COUNTS or (isinstance(node.func, ast.Name) and name == "len"):
            return True
        return name == "size" and bool(node.args) and not _is_last(node.args[0])
    if isinstance(node, ast.Subscript) and program.names.last(node.value) == "shape":
        return not _is_last(node.slice)
    if isinstance(node, ast.BinOp):
        return _varies(program, node.left, depth) or _varies(program, node.right, depth)
    return isinstance(node, ast.Name) and depth == 0 and _assigned_size(program, node)


def _assigned_size(program: SourceFile, name: ast.Name) -> bool:
    """Whether the last assignment of a name before its use gave it such a size."""
    sizes = program.once(_sizes).get((program.scope(name), name.id), [])
    return next((varies for line, varies in reversed(sizes) if line <= name.lineno), False)


def _sizes(program: SourceFile) -> dict[tuple[ast.AST, str], list[tuple[int, bool]]]:
    """By function and name: the lines that assign it, and whether the value is such a size."""
    found: dict[tuple[ast.AST, str], list[tuple[int, bool]]] = defaultdict(list)
    for scope in (node for node in ast.walk(program.tree) if isinstance(node, (ast.Module, *FUNCTIONS))):
        for node in ast.walk(scope):
            if not isinstance(node, ast.Assign):
                continue
            for target in node.targets:
                if isinstance(target, ast.Name):
                    found[scope, target.id].append((node.lineno, _varies(program, node.value, depth=1)))
                elif isinstance(target, ast.Tuple) and program.names.last(node.value) == "shape":
                    parts = [program.names.dotted(part) for part in target.elts]
                    for name in parts:
                        found[scope, name].append((node.lineno, parts.index(name) != len(parts) - 1))
    return found


def _is_last(node: ast.expr) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)


RULES = (
    LintRule(
        "constexpr-recompiles",
        "A Triton kernel takes the size of its data as tl.constexpr.",
        "pass it as an ordinary argument and keep tl.constexpr for block sizes and flags",
        _recompiles,
    ),
)
