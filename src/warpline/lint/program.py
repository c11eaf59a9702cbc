"""A parsed program: its syntax tree with parents, full names, loops, and whether it uses the GPU."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from warpline.lint.kinds import Kinds
from warpline.lint.names import Names

Loop = ast.For | ast.While | ast.AsyncFor
Function = ast.FunctionDef | ast.AsyncFunctionDef
Position = tuple[int, int]

LOOPS = (ast.For, ast.While, ast.AsyncFor)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


class Program:
    """One source file."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tree = ast.parse(text)
        self.names = Names(self.tree)
        self.parents: dict[ast.AST, ast.AST] = {}
        for node in ast.walk(self.tree):
            for child in ast.iter_child_nodes(node):
                self.parents[child] = node

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
            if isinstance(above, ast.While) or (isinstance(above, ast.For | ast.AsyncFor) and child in above.body):
                return above
        return None

    def hot(self, node: ast.AST) -> bool:
        """Whether it runs in every iteration of an innermost loop that does GPU work.

        An outer loop over epochs is not hot outside its inner loop. What is guarded by a test for every n-th iteration,
        what leaves the loop, and error handling are not either. The body of a function that such a loop calls is.
        """
        loop = self.loop_around(node)
        if loop is not None:
            return not self._guarded(node, loop) and self._innermost(loop) and self.works(loop)
        scope = self.scope(node)
        if not isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef) or scope.name not in self._called_hot:
            return False
        return not self._guarded(node, scope) and self.works(scope)

    @cached_property
    def _called_hot(self) -> set[str]:
        """Functions of this file that an innermost loop calls in every iteration."""
        found: set[str] = set()
        for call in self.calls:
            name = self.names.last(call.func)
            loop = self.loop_around(call) if name in self.functions else None
            has_loops = name in self.functions and any(isinstance(n, LOOPS) for n in ast.walk(self.functions[name]))
            if loop is not None and not has_loops and self._innermost(loop) and not self._guarded(call, loop):
                found.add(name)
        return found

    def _innermost(self, loop: Loop) -> bool:
        inner = [node for node in ast.walk(loop) if isinstance(node, LOOPS) and node is not loop]
        return not any(self.works(part) for node in inner for part in node.body)

    def works(self, node: ast.AST) -> bool:
        """Whether GPU work is seen inside."""
        return any(self.kinds.is_work(inner) for inner in ast.walk(node))

    def _guarded(self, node: ast.AST, until: ast.AST) -> bool:
        for above, child in self.above(node):
            if above is until:
                return False
            if isinstance(above, ast.ExceptHandler):
                return True
            if isinstance(above, ast.If) and child is not above.test:
                block = above.body if child in above.body else above.orelse
                if block and isinstance(block[-1], ast.Break | ast.Return | ast.Raise) and child in above.body:
                    return True
                if any(isinstance(inner, ast.Mod) for inner in ast.walk(above.test)):
                    return True
        return False


def position(node: ast.AST) -> Position:
    """Where an expression ends: what it encloses ends before it."""
    return (getattr(node, "end_lineno", 0) or 0, getattr(node, "end_col_offset", 0) or 0)
