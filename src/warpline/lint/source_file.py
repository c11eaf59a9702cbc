"""A parsed program: its syntax tree with parents, full names, loops, and whether it uses the GPU."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any, TypeVar

from warpline.lint.kinds import Kinds
from warpline.lint.names import ImportedNames

Loop = ast.For | ast.While | ast.AsyncFor
Function = ast.FunctionDef | ast.AsyncFunctionDef
Position = tuple[int, int]
Answer = TypeVar("Answer")
Test = Callable[["SourceFile", ast.AST], object]

LOOPS = (ast.For, ast.While, ast.AsyncFor)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


class SourceFile:
    """One source file."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tree = ast.parse(text)
        self.names = ImportedNames(self.tree)
        self.parents: dict[ast.AST, ast.AST] = {}
        self._answers: dict[Callable[[SourceFile], Any], Any] = {}
        self._with: dict[Test, set[ast.AST]] = {}
        self._otherwise: set[ast.AST] = set()  # statements under `else`
        for node in ast.walk(self.tree):
            for child in ast.iter_child_nodes(node):
                self.parents[child] = node
            if isinstance(node, ast.If | Loop):
                self._otherwise.update(node.orelse)

    @cached_property
    def kinds(self) -> Kinds:
        """Where the value of each expression lives, as far as the source tells."""
        return Kinds(self.tree, self.names)

    @cached_property
    def uses_gpu(self) -> bool:
        """Whether it imports torch and names CUDA anywhere but in comments and docstrings."""
        return self.names.imports("torch") and any(map(self._names_cuda, ast.walk(self.tree)))

    def _names_cuda(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            is_text = isinstance(self.parents.get(node), ast.Expr | ast.JoinedStr)
            return not is_text and node.value.partition(":")[0] == "cuda"
        return isinstance(node, ast.Attribute) and node.attr == "cuda"

    @cached_property
    def calls(self) -> list[ast.Call]:
        """Every call, in the order of the source."""
        found = [node for node in ast.walk(self.tree) if isinstance(node, ast.Call)]
        return sorted(found, key=lambda node: (node.lineno, node.col_offset))

    @cached_property
    def calls_by_name(self) -> dict[str, list[ast.Call]]:
        """The calls by the last name of what is called."""
        found: dict[str, list[ast.Call]] = {}
        for call in self.calls:
            found.setdefault(self.names.last(call.func), []).append(call)
        return found

    @cached_property
    def functions(self) -> dict[str, Function]:
        """Functions and methods of the file, by their last name; a name that is used twice is left out."""
        found: dict[str, Function] = {}
        twice: set[str] = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                twice |= {node.name} & found.keys()
                found[node.name] = node
        return {name: node for name, node in found.items() if name not in twice}

    def above(self, node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
        """Each enclosing node and its child on the way, the nearest first, up to the enclosing function."""
        child, parent = node, self.parents.get(node)
        while parent is not None:
            yield parent, child
            if isinstance(parent, FUNCTIONS):
                return
            child, parent = parent, self.parents.get(parent)

    def scope(self, node: ast.AST) -> ast.AST:
        """The enclosing function, or the module."""
        return next((above for above, _ in self.above(node) if isinstance(above, FUNCTIONS)), self.tree)

    def loop_around(self, node: ast.AST) -> Loop | None:
        """The innermost loop whose body (or, for `while`, whose condition) has the node."""
        for above, child in self.above(node):
            if isinstance(above, ast.While):
                return above
            if isinstance(above, ast.For | ast.AsyncFor) and self._in_body(child):
                return above
        return None

    def hot(self, node: ast.AST) -> bool:
        """Whether it runs in every iteration of a loop that does GPU work.

        Of nested loops that is the innermost, and each one around it whose own body has a training step: a loop over
        steps with an inner one over micro-batches, but not the loop over epochs. What is guarded by a test for every
        n-th iteration, what leaves the loop, and error handling are not hot. The body of a function that such a loop
        calls is.
        """
        loop = self.loop_around(node)
        if loop is not None:
            return not self._guarded(node, loop) and self._repeats(loop) and self.works(loop)
        scope = self.scope(node)
        if not isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef) or scope.name not in self._called_hot:
            return False
        return not self._guarded(node, scope) and self.works(scope)

    @cached_property
    def _called_hot(self) -> set[str]:
        """Functions of this file that a loop of steps calls in every iteration."""
        found: set[str] = set()
        for call in self.calls:
            name = self.names.last(call.func)
            loop = self.loop_around(call) if name in self.functions else None
            if loop is None or name in found:
                continue
            called = self.functions[name]
            is_whole_loop = self.has(called, _is_loop) and called not in self._with_training_step
            if self._repeats(loop) and not is_whole_loop and not self._guarded(call, loop):
                found.add(name)
        return found

    def _repeats(self, loop: Loop) -> bool:
        """Whether an iteration of the loop is a step of the program, rather than many of them."""
        return loop not in self._outer_loops or loop in self._with_training_step

    @cached_property
    def _with_training_step(self) -> set[ast.AST]:
        """Loops and functions whose own body, outside inner loops, calls backward() or steps an optimizer."""
        steps = (call for call in self.calls if self._is_training_step(call))
        return {self.loop_around(call) or self.scope(call) for call in steps}

    def _is_training_step(self, call: ast.Call) -> bool:
        if not isinstance(call.func, ast.Attribute):
            return False
        if call.func.attr == "backward":
            return True
        owner = self.names.last(call.func.value).lower()
        return call.func.attr == "step" and (owner.startswith("opt") or "optim" in owner or owner == "scaler")

    @cached_property
    def _outer_loops(self) -> set[ast.AST]:
        """Loops with another one inside whose body does GPU work, and whatever else is around that."""
        loops = (node for node in ast.walk(self.tree) if isinstance(node, LOOPS))
        return self._around(self.parents[loop] for loop in loops if any(map(self.works, loop.body)))

    def once(self, ask: Callable[[SourceFile], Answer]) -> Answer:
        """What a function says of the program; asked once."""
        if ask not in self._answers:
            self._answers[ask] = ask(self)
        return self._answers[ask]

    def has(self, node: ast.AST, what: Test) -> bool:
        """Whether this is true of the node or of something inside. The whole file is asked once."""
        if what not in self._with:
            self._with[what] = self._around(inner for inner in ast.walk(self.tree) if what(self, inner))
        return node in self._with[what]

    def _around(self, nodes: Iterable[ast.AST]) -> set[ast.AST]:
        """These nodes and all that enclose them."""
        found: set[ast.AST] = set()
        for node in nodes:
            around: ast.AST | None = node
            while around is not None and around not in found:
                found.add(around)
                around = self.parents.get(around)
        return found

    def works(self, node: ast.AST) -> bool:
        """Whether GPU work is seen inside."""
        return self.has(node, _is_work)

    def _in_body(self, child: ast.AST) -> bool:
        """Whether a child of a loop or an `if` is a statement of its body."""
        return isinstance(child, ast.stmt) and child not in self._otherwise

    def _guarded(self, node: ast.AST, until: ast.AST) -> bool:
        for above, child in self.above(node):
            if above is until:
                return False
            if isinstance(above, ast.ExceptHandler):
                return True
            if isinstance(above, ast.If) and child is not above.test:
                if isinstance(above.body[-1], ast.Break | ast.Return | ast.Raise) and self._in_body(child):
                    return True
                if self.has(above.test, _is_modulo):
                    return True
        return False


def _is_work(program: SourceFile, node: ast.AST) -> bool:
    return program.kinds.is_work(node)


def _is_loop(program: SourceFile, node: ast.AST) -> bool:
    return isinstance(node, LOOPS)


def _is_modulo(program: SourceFile, node: ast.AST) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod)


def position(node: ast.AST) -> Position:
    """Where an expression ends: what it encloses ends before it."""
    return (getattr(node, "end_lineno", 0) or 0, getattr(node, "end_col_offset", 0) or 0)
