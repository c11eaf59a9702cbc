"""Copies and loading that hold up a training loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from warpline.lint.model import LintRule, LintSpot
from warpline.lint.source_file import LOOPS, SourceFile
from warpline.lint.words import FACTORIES


def _blocking(program: SourceFile) -> Iterator[LintSpot]:
    if not program.uses_gpu:
        return
    for node in program.calls:
        if not isinstance(node.func, ast.Attribute) or node.func.attr not in {"to", "cuda"}:
            continue
        if program.kinds.of(node) != "gpu" or program.loop_around(node) is None:
            continue
        if any(word.arg == "non_blocking" or word.arg is None for word in node.keywords):
            continue
        base = node.func.value
        if program.kinds.of(base) == "gpu":
            continue  # another type, not another place
        if _made_on_host(program, base):
            message = "a tensor is made on the CPU and copied in every iteration"
        elif _root_name(base) in _loop_names(program, node) or _is_next(base):
            message = "the copy to the GPU blocks the CPU in every iteration"
        else:
            continue
        yield LintSpot(node.func.end_lineno or node.lineno, node.col_offset + 1, message)


def _made_on_host(program: SourceFile, base: ast.expr) -> bool:
    full = program.names.full(base.func) if isinstance(base, ast.Call) else ""
    return (
        full.startswith("torch.")
        and program.kinds.of(base) in {"host", "unknown"}
        and (full.rpartition(".")[2] in FACTORIES or program.kinds.of(base) == "host")
    )


def _is_next(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "next"


def _root_name(node: ast.AST) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _loop_names(program: SourceFile, node: ast.AST) -> set[str]:
    """Names that the loops and comprehensions around a node bind."""
    found: set[str] = set()
    for above, _ in program.above(node):
        targets: list[ast.AST] = [above.target] if isinstance(above, ast.For | ast.AsyncFor) else []
        if isinstance(above, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            targets = [generator.target for generator in above.generators]
        found |= {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}
    return found


def _loader(program: SourceFile) -> Iterator[LintSpot]:
    if not program.uses_gpu:
        return
    for node in program.calls:
        if program.names.full(node.func) != "torch.utils.data.DataLoader":
            continue
        given = {word.arg: word.value for word in node.keywords}
        if None in given:
            continue
        missing = [name for name in ("num_workers", "pin_memory") if name not in given or _is_off(given[name])]
        if missing:
            yield LintSpot(node.lineno, node.col_offset + 1, f"the loader has no {' and no '.join(missing)}")


def _is_off(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and not node.value


def _grown(program: SourceFile) -> Iterator[LintSpot]:
    if not program.uses_gpu:
        return
    for node in ast.walk(program.tree):
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
            continue
        call = node.value
        if program.names.full(call.func) not in {"torch.cat", "torch.concat", "torch.vstack", "torch.hstack"}:
            continue
        listed = call.args[0].elts if call.args and isinstance(call.args[0], ast.List | ast.Tuple) else []
        own = program.names.dotted(node.targets[0])
        in_loop = any(isinstance(above, LOOPS) for above, _ in program.above(node))
        if in_loop and own and own in {program.names.dotted(part) for part in listed}:
            message = f"{own} is copied as a whole in every iteration, so the time grows with the square of its length"
            yield LintSpot(node.lineno, node.col_offset + 1, message)


RULES = (
    LintRule(
        "blocking-copy-in-loop",
        "A copy to the GPU in every iteration blocks the CPU.",
        "pin the memory and add non_blocking=True, or create the tensor on the GPU (device=…)",
        _blocking,
    ),
    LintRule(
        "slow-loader",
        "A DataLoader of a GPU program loads in the training process, or into pageable memory.",
        "add num_workers=4 (up to the number of CPU cores) and pin_memory=True",
        _loader,
    ),
    LintRule(
        "cat-in-loop",
        "A tensor grows by torch.cat in a loop.",
        "collect the parts in a list and join them once, or allocate the result before the loop",
        _grown,
    ),
)
