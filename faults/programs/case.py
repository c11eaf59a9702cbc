"""What a case is: a step with one planted fault, the same work fixed, and what is true of it."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

Step = Callable[[], object]
"""One step of a program, run again and again."""
Builder = Callable[[Any, str | None], Step]
"""Takes torch and the name of a fix (None: none, the fault stays in), and returns the step."""

CAUSES = ("dispatch", "sync", "kernel", "transfer", "input", "memory", "cold_start", "healthy")
"""The causes that one GPU can show; `comm` needs two."""
PLANTED = "# planted"
"""Marks the lines of a builder that are the fault."""
SOURCE = Path(__file__).parents[2]
"""The folder that holds the package."""


@dataclass(frozen=True, slots=True)
class PlantedLine:
    """A line of source that is the fault."""

    file: str
    """Relative to the folder that holds the package, as a torch profile has it."""
    line: int
    function: str
    """The innermost function around it, and the line where that begins: what a torch profile names."""
    function_line: int


@dataclass(frozen=True, slots=True)
class Case:
    """A step with one planted fault; or a healthy one, with a tempting fix that does not help."""

    name: str
    cause: str
    """One of CAUSES."""
    fix: str | None
    """The fix that fixes it; None for a healthy step."""
    builder: Builder
    also: tuple[str, ...] = ()
    """Other fixes that fix it, timed but not captured."""
    innocent: str | None = None
    """The fix that the obvious suspect suggests, and that does not help."""
    trap: bool = False
    """Whether something in the step looks guilty and is not."""
    steps: int = 5
    """Steps in a capture; for a cold start also the steps that a stopwatch covers."""
    stacks: bool = True
    """Whether the faulty capture records Python frames."""
    own_process: bool = False
    """Whether the fault is one of a process's first calls, so that each measurement needs a new process."""

    @property
    def story(self) -> str:
        """What is planted, and why the fix is right."""
        return inspect.cleandoc(self.builder.__doc__ or "")

    @property
    def cold(self) -> bool:
        """Whether the measured steps are the first ones."""
        return self.cause == "cold_start"

    def faulty(self) -> Step:
        """The step with its fault. Needs torch and a CUDA device."""
        return self._build(None)

    def fixed(self, fix: str | None = None) -> Step:
        """The same work with a fix: the fix, or the innocent's removal where there is nothing to fix."""
        return self._build(fix or self.fix or self.innocent)

    def _build(self, fix: str | None) -> Step:
        torch = importlib.import_module("torch")
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = True
        torch.backends.cudnn.benchmark = False
        torch.backends.cuda.enable_cudnn_sdp(True)
        torch.manual_seed(0)
        return self.builder(torch, fix)

    def planted_lines(self) -> Iterator[PlantedLine]:
        """Where the fault is, in the source as it is now."""
        assert isinstance(self.builder, FunctionType)
        path = Path(self.builder.__code__.co_filename)
        file = path.relative_to(SOURCE).as_posix()
        lines, first = inspect.getsourcelines(self.builder)
        functions = _functions(path)
        for number, line in enumerate(lines, first):
            if line.rstrip().endswith(PLANTED):
                around = [node for node in functions if node.lineno <= number <= (node.end_lineno or number)]
                innermost = max(around, key=lambda node: node.lineno)
                yield PlantedLine(file, number, innermost.name, innermost.lineno)


@cache
def _functions(path: Path) -> list[ast.FunctionDef]:
    """Those of a file; many cases stand in one."""
    return [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.FunctionDef)]


def planted(cause: str, fix: str | None, **more: Any) -> Callable[[Builder], Case]:
    """Makes a case of a builder; its name is the function's, and its story the docstring."""

    def make(builder: Builder) -> Case:
        assert isinstance(builder, FunctionType)
        return Case(builder.__name__, cause, fix, builder, **more)

    return make


def cases_of(*modules: ModuleType) -> tuple[Case, ...]:
    """The cases of some modules, in the order in which they are written."""
    return tuple(value for module in modules for value in vars(module).values() if isinstance(value, Case))
