"""Expressions that make the CPU wait for the GPU."""

from __future__ import annotations

import ast

from warpline.lint.source_file import SourceFile
from warpline.lint.words import CONVERSIONS, SYNCING_FUNCTIONS, SYNCING_TESTS, TO_HOST

BLOCKING_CALLS = frozenset(["generate"])
"""Library methods that read results on the host before they return."""


def explicit(program: SourceFile, node: ast.AST) -> str:
    """The call if it is an explicit wait, such as `torch.cuda.synchronize()`; else empty."""
    if not isinstance(node, ast.Call) or program.names.last(node.func) != "synchronize":
        return ""
    written = program.names.dotted(node.func) or "….synchronize"
    return f"{written}()"


def implicit(program: SourceFile, node: ast.AST) -> str:
    """What waits for a value of the GPU, as it reads in a message; else empty."""
    if isinstance(node, ast.Call):
        return _call(program, node)
    if isinstance(node, ast.If | ast.While | ast.Assert) and program.kinds.of(node.test) == "gpu":
        return "a condition on a tensor"
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and isinstance(node.slice, ast.Compare):
        return "a choice by a mask" if program.kinds.of(node.slice) == "gpu" else ""
    return ""


def reason(what: str) -> str:
    """Why such a thing waits."""
    if "condition on" in what:
        return "which branch runs depends on a value of the GPU"
    if any(name in what for name in (*SYNCING_FUNCTIONS, "torch.where", "mask")):
        return "the size of its result depends on the values"
    return "the CPU needs the value"


def _call(program: SourceFile, node: ast.Call) -> str:
    kinds, name = program.kinds, program.names.last(node.func)
    if isinstance(node.func, ast.Attribute) and not program.names.full(node.func):
        base = kinds.of(node.func.value)
        if name in TO_HOST and base != "host" and (name != "tolist" or base == "gpu"):
            return "" if name == "cpu" and base == "module" else f".{name}()"
        if name in SYNCING_FUNCTIONS | SYNCING_TESTS and base == "gpu":
            return f".{name}()"
        return ""
    on_gpu = [argument for argument in node.args if kinds.of(argument) == "gpu"]
    if program.names.full(node.func) == f"torch.{name}" and name in SYNCING_FUNCTIONS | SYNCING_TESTS and on_gpu:
        return f"torch.{name}()"
    if program.names.full(node.func) == "torch.save" and on_gpu:
        return "torch.save() of a tensor"
    if program.names.full(node.func) == "torch.where" and on_gpu and len(node.args) == 1 and not node.keywords:
        return "torch.where() of a condition alone"
    if isinstance(node.func, ast.Name) and name in CONVERSIONS and on_gpu:
        return f"{name}() of a tensor"
    if isinstance(node.func, ast.Name) and name == "print":
        shown = [*on_gpu, *(part for argument in node.args for part in _formatted(argument))]
        return "print() of a tensor" if any(kinds.of(part) == "gpu" for part in shown) else ""
    return ""


def _formatted(node: ast.expr) -> list[ast.expr]:
    return (
        [part.value for part in node.values if isinstance(part, ast.FormattedValue)]
        if isinstance(node, ast.JoinedStr)
        else []
    )


def waits(program: SourceFile, node: ast.AST) -> bool:
    """Whether evaluating the node waits for the GPU, also through a function of this file."""
    if explicit(program, node) or implicit(program, node):
        return True
    if not isinstance(node, ast.Call):
        return False
    name = program.names.last(node.func)
    called = program.functions.get(name)
    return name in BLOCKING_CALLS or (
        called is not None and (program.has(called, explicit) or program.has(called, implicit))
    )
