"""Graphs of autograd that nobody needs: inference that builds them, and losses that keep them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from warpline.lint.model import LintRule, LintSpot
from warpline.lint.source_file import FUNCTIONS, SourceFile

WITHOUT_GRADIENTS = frozenset(["no_grad", "inference_mode", "set_grad_enabled", "requires_grad_", "freeze"])
"""Calls after which no graph is built, or perhaps none."""
DETACHING = frozenset(["item", "detach", "float", "cpu", "tolist"])


def _inference(program: SourceFile) -> Iterator[LintSpot]:
    """A call of a module in a loop after its eval(), where nothing turns gradients off and nothing uses them."""
    if not program.uses_gpu or any(_turns_off_for_good(program, call) for call in program.calls):
        return
    for call in program.calls:
        name, scope = program.names.dotted(call.func), program.scope(call)
        if not name or program.loop_around(call) is None or _without_gradients(program, call):
            continue
        if name in program.once(_evaluated).get(scope, ()) and not program.has(scope, _uses_gradients):
            message = f"{name}() runs in evaluation mode and still builds the graph for backward()"
            yield LintSpot(call.lineno, call.col_offset + 1, message)


def _evaluated(program: SourceFile) -> dict[ast.AST, set[str]]:
    """By function, the names of the modules that it puts into evaluation mode; not those that it trains, too."""
    found: dict[ast.AST, set[str]] = {}
    for call in program.calls:
        owner = _owner(program, call)
        if program.names.last(call.func) == "eval" and owner and not call.args:
            found.setdefault(program.scope(call), set()).add(owner)
    return found


def _owner(program: SourceFile, call: ast.Call) -> str:
    """`model` of `model.eval()`, also of `model = make().eval()`."""
    if not isinstance(call.func, ast.Attribute):
        return ""
    dotted = program.names.dotted(call.func.value)
    parent = program.parents.get(call)
    while not dotted and isinstance(parent, ast.Attribute | ast.Call):
        parent = program.parents.get(parent)
    return dotted or (program.names.dotted(parent.targets[0]) if isinstance(parent, ast.Assign) else "")


def _turns_off_for_good(program: SourceFile, call: ast.Call) -> bool:
    """`torch.set_grad_enabled(False)` as a statement, and modules whose parameters need no gradient."""
    name = program.names.last(call.func)
    is_context = isinstance(program.parents.get(call), ast.withitem)
    return name in WITHOUT_GRADIENTS and not is_context and not _is_decorator(program, call)


def _is_decorator(program: SourceFile, node: ast.AST) -> bool:
    above = program.parents.get(node)
    return isinstance(above, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node in above.decorator_list


def _without_gradients(program: SourceFile, node: ast.AST) -> bool:
    """Whether a context or a decorator around it turns gradients off, here or where its function is called."""
    above = program.parents.get(node)
    while above is not None:
        contexts = [item.context_expr for item in above.items] if isinstance(above, ast.With | ast.AsyncWith) else []
        marks = getattr(above, "decorator_list", []) if isinstance(above, (*FUNCTIONS, ast.ClassDef)) else []
        if any(program.names.last(_called(one)) in WITHOUT_GRADIENTS for one in (*contexts, *marks)):
            return True
        calls = program.calls_by_name.get(above.name, ()) if isinstance(above, ast.FunctionDef) else ()
        if any(_in_context(program, call) for call in calls):
            return True
        above = program.parents.get(above)
    return False


def _in_context(program: SourceFile, node: ast.AST) -> bool:
    """Whether a `with` around it turns gradients off."""
    above = program.parents.get(node)
    while above is not None:
        if isinstance(above, ast.With | ast.AsyncWith) and any(
            program.names.last(_called(item.context_expr)) in WITHOUT_GRADIENTS for item in above.items
        ):
            return True
        above = program.parents.get(above)
    return False


def _called(node: ast.expr) -> ast.expr:
    return node.func if isinstance(node, ast.Call) else node


def _uses_gradients(program: SourceFile, node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return program.names.last(node.func) in {"backward", "grad", "enable_grad", "train"}
    return isinstance(node, ast.Attribute) and node.attr in {"grad", "requires_grad"}


def _kept(program: SourceFile) -> Iterator[LintSpot]:
    """`total += loss` and `losses.append(loss)` of a loss whose backward() the same loop calls."""
    for node in ast.walk(program.tree):
        name, keeper = _kept_in(program, node)
        loop = program.loop_around(node) if name else None
        if loop is None or not program.hot(node) or keeper in program.once(_differentiated):
            continue
        inside = list(ast.walk(loop))
        backward = any(
            isinstance(one, ast.Call)
            and program.names.last(one.func) == "backward"
            and isinstance(one.func, ast.Attribute)
            and name in {program.names.dotted(part) for part in ast.walk(one.func.value)}
            for one in inside
        )
        if backward and not any(_is_new_value(program, one, name, keeper) for one in inside):
            message = f"{keeper} keeps {name} with its graph, so that the memory of every iteration stays in use"
            yield LintSpot(getattr(node, "lineno", 1), getattr(node, "col_offset", 0) + 1, message)


def _kept_in(program: SourceFile, node: ast.AST) -> tuple[str, str]:
    """What is kept, and where; empty if the node keeps nothing."""
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) and not _in_context(program, node):
        return program.names.dotted(node.value), program.names.dotted(node.target)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "append" and node.args:
        return program.names.dotted(node.args[0]), program.names.dotted(node.func.value)
    return "", ""


def _is_new_value(program: SourceFile, node: ast.AST, name: str, keeper: str) -> bool:
    """Whether a statement of the loop begins the keeper anew, or takes the graph off the loss."""
    if not isinstance(node, ast.Assign):
        return False
    targets = {program.names.dotted(target) for target in node.targets}
    detached = any(
        isinstance(one, ast.Call) and program.names.last(one.func) in DETACHING for one in ast.walk(node.value)
    )
    return keeper in targets or (name in targets and detached)


def _differentiated(program: SourceFile) -> set[str]:
    """Names in whatever backward() is called on, also by way of a sum."""
    found: set[str] = set()
    assigned = {
        program.names.dotted(target): node.value
        for node in ast.walk(program.tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
    }
    for call in program.calls:
        if isinstance(call.func, ast.Attribute) and call.func.attr == "backward":
            names = {program.names.dotted(part) for part in ast.walk(call.func.value)} - {""}
            found |= names
            found |= {
                program.names.dotted(part) for name in names if name in assigned for part in ast.walk(assigned[name])
            }
    return found


RULES = (
    LintRule(
        "inference-with-graph",
        "A module in evaluation mode runs in a loop without torch.no_grad(), and builds a graph in every call.",
        "put the loop under torch.inference_mode() or torch.no_grad()",
        _inference,
    ),
    LintRule(
        "graph-kept",
        "A loss is summed up or collected with its graph, so that memory grows in every iteration.",
        "keep loss.detach(), and read it after the loop",
        _kept,
    ),
)
