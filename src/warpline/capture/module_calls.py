"""Detect calls of a program's outermost modules without slowing the modules inside them.

A hook on all modules finds the outermost ones in their first calls and is then removed: while it is installed, every
module call takes torch's slow path. After that, calls of the outermost modules are detected through their class. A hook
on the module itself would become part of what the program saves, copies or scripts.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from warpline.capture.patches import Undo, replace
from warpline.capture.steps import ACCUMULATING_CALLS_BEFORE_USE
from warpline.capture.this_process import tracing_check

MIN_CALLS = 2
"""A module called this often is one that the program calls repeatedly."""
MAX_MODULES = 8
PARAMETERS_CHECKED = 4

Hear = Callable[[int, int], None]
"""Called with a module's identity and the number of calls to wait for (0 for the default)."""


class ModuleCalls:
    """Detects the outermost forward calls of a process."""

    def __init__(self, torch: Any, hear: Hear) -> None:
        self._torch, self._hear = torch, hear
        self._calls: dict[int, int] = {}
        self._inside: set[int] = set()
        self._outermost: set[int] = set()
        self._undo: dict[type, Undo] = {}
        self._is_traced = tracing_check(torch)
        register = torch.nn.modules.module.register_module_forward_pre_hook
        self._search: Any = register(self._any_module)
        self._undo_compile = replace(torch, "compile", self._compiling)

    def stop_searching(self) -> None:
        """Stop: a better source of steps was found, or enough calls were seen."""
        if self._search is not None:
            self._search.remove()
            self._search = None

    def remove(self) -> None:
        """Remove all hooks and patches."""
        self.stop_searching()
        self._undo_compile()
        for undo in self._undo.values():
            undo()
        self._undo.clear()
        self._outermost.clear()

    def _any_module(self, module: Any, inputs: Any) -> None:
        who = id(module)
        if who in self._inside:
            return
        if who not in self._calls:
            if len(self._calls) >= MAX_MODULES:
                return
            self._inside.update(id(inner) for inner in module.modules() if inner is not module)
        self._calls[who] = self._calls.get(who, 0) + 1
        if who in self._outermost:
            return  # its class reports the calls
        self._tell(module)
        if self._calls[who] >= MIN_CALLS:
            self._attach(module)
            self.stop_searching()

    def _attach(self, module: Any) -> None:
        if len(self._outermost) >= MAX_MODULES:
            return
        self._outermost.add(id(module))
        if type(module) not in self._undo:
            self._undo[type(module)] = replace(type(module), "__call__", self._telling)

    def _telling(self, original: Any) -> Any:
        outermost, is_traced = self._outermost, self._is_traced

        def call(module: Any, *arguments: Any, **named: Any) -> Any:
            if is_traced():
                return original(module, *arguments, **named)
            if id(module) in outermost:
                self._tell(module)
            try:
                return original(module, *arguments, **named)
            except BaseException as error:
                if error.__traceback__ is not None:  # keep our frames out of the program's own error messages
                    error.__traceback__ = error.__traceback__.tb_next
                raise

        return call

    def _tell(self, module: Any) -> None:
        training = self._torch.is_grad_enabled() and any(
            parameter.grad is not None for parameter in itertools.islice(module.parameters(), PARAMETERS_CHECKED)
        )
        self._hear(id(module), ACCUMULATING_CALLS_BEFORE_USE if training else 0)

    def _compiling(self, compile_: Any) -> Any:
        """Whether torch.compile made the module: it warns about global hooks, and is an outermost module itself."""

        def replacement(*arguments: Any, **named: Any) -> Any:
            self.stop_searching()
            compiled = compile_(*arguments, **named)
            what: Any = arguments[0] if arguments else named.get("model")
            if isinstance(compiled, self._torch.nn.Module):
                self._attach(compiled)
            elif getattr(what, "__name__", "") == "_call_impl":  # Module.compile()
                self._attach(what.__self__)
            return compiled

        return replacement
