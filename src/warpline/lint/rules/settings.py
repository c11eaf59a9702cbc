"""Settings that slow every step: one call with the wrong argument."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from warpline.lint.model import LintRule, LintSpot
from warpline.lint.source_file import SourceFile


def _literal(node: ast.Call, name: str) -> object:
    """The constant given by keyword; None if it is absent or no constant."""
    value = next((word.value for word in node.keywords if word.arg == name), None)
    return value.value if isinstance(value, ast.Constant) else None


def _spot(node: ast.AST, message: str) -> LintSpot:
    return LintSpot(getattr(node, "lineno", 1), getattr(node, "col_offset", 0) + 1, message)


def _fills(program: SourceFile) -> Iterator[LintSpot]:
    for node in program.calls if program.uses_gpu else ():
        if program.names.last(node.func) == "zero_grad" and _literal(node, "set_to_none") is False:
            yield _spot(node, "zero_grad(set_to_none=False) writes zeros into every gradient")


def _by_parameter(program: SourceFile) -> Iterator[LintSpot]:
    for node in program.calls if program.uses_gpu else ():
        is_optimizer = program.names.full(node.func).startswith("torch.optim.")
        if is_optimizer and _literal(node, "foreach") is False and _literal(node, "fused") is not True:
            yield _spot(node, "foreach=False updates one parameter at a time, with a few launches each")


def _anomalies(program: SourceFile) -> Iterator[LintSpot]:
    for node in program.calls:
        full = program.names.full(node.func)
        first = node.args[0] if node.args else None
        on = isinstance(first, ast.Constant) and first.value is True
        if full == "torch.autograd.detect_anomaly" or (full == "torch.autograd.set_detect_anomaly" and on):
            yield _spot(node, "anomaly detection checks every gradient and waits for it")


def _launch_blocking(program: SourceFile) -> Iterator[LintSpot]:
    variable = "CUDA_LAUNCH_BLOCKING"
    for node in ast.walk(program.tree):
        values: list[ast.expr] = []
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            values = [node.targets[0].slice, node.value]
        elif isinstance(node, ast.Call) and program.names.last(node.func) in {"setdefault", "putenv"}:
            values = node.args[:2]
        constants = [str(value.value) for value in values if isinstance(value, ast.Constant)]
        if constants[:1] == [variable] and constants[1:] == ["1"]:
            yield _spot(node, f"{variable}=1 makes every launch wait for its kernel")


def _profilers(program: SourceFile) -> Iterator[LintSpot]:
    for node in program.calls if program.uses_gpu else ():
        full = program.names.full(node.func)
        given = {word.arg: word.value for word in node.keywords}
        listed = given.get("activities", node.args[0] if node.args else None)
        if full == "torch.profiler.profile" and isinstance(listed, ast.List | ast.Tuple | ast.Set):
            names = {program.names.last(one) for one in listed.elts}
            if names == {"CPU"}:
                yield _spot(node, "activities has no ProfilerActivity.CUDA: the profile shows no kernels")
        if (
            full == "torch.autograd.profiler.profile"
            and not {"use_cuda", "use_device", "use_kineto", None} & given.keys()
        ):
            yield _spot(node, "the profiler records no kernels without use_device")


RULES = (
    LintRule(
        "zero-grad-fills",
        "Gradients are filled with zeros instead of being dropped.",
        "call zero_grad(), which sets them to None",
        _fills,
    ),
    LintRule(
        "optimizer-by-parameter",
        "An optimizer updates its parameters one by one.",
        "leave foreach at its default, or use fused=True",
        _by_parameter,
    ),
    LintRule(
        "anomaly-detection",
        "Autograd's anomaly detection is on.",
        "turn it on only while you look for a NaN",
        _anomalies,
    ),
    LintRule(
        "profiler-without-cuda",
        "A profiler of a GPU program records the CPU alone.",
        "give torch.profiler.profile both activities, ProfilerActivity.CPU and ProfilerActivity.CUDA",
        _profilers,
    ),
    LintRule(
        "launch-blocking",
        "CUDA_LAUNCH_BLOCKING is set in the program.",
        "set it in the shell while you debug, and nowhere else",
        _launch_blocking,
    ),
)
