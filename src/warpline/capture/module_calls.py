"""Detect calls of a program's outermost modules without slowing the modules inside them.

A hook on all modules finds the outermost ones and is removed once the step is known: while it is installed, every
module call takes torch's slow path. Calls of the outermost modules are detected through their class. A hook on the
module itself would become part of what the program saves, copies or scripts.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

from warpline.capture.patches import Undo, replace
from warpline.capture.this_process import tracing_check

MIN_CALLS = 2
"""A module called this often is one that the program calls repeatedly."""
MAX_MODULES = 64
PARAMETERS_CHECKED = 4

Hear = Callable[[int, bool, bool], None]
"""Called with a module's identity, whether it holds gradients, and whether it only acts: in training mode, and without
gradients, as while a replay buffer is filled."""


class ModuleCalls:
    """Detects the outermost forward calls of a process."""

    def __init__(self, torch: Any, hear: Hear) -> None:
        self._torch, self._hear = torch, hear
        self._calls: dict[int, int] = {}
        self._inside: set[int] = set()
        self._outermost: dict[int, type] = {}
        self._within: set[int] = set()
        """The threads that are in a call of an outermost module."""
        self._undo: dict[type, Undo] = {}
        self._is_traced = tracing_check(torch)
        self._search: Any = None
        self._undo_compile = replace(torch, "compile", self._compiling)
        self.search()

    def search(self) -> None:
        """Look for outermost modules."""
        if self._search is None:
            self._search = self._torch.nn.modules.module.register_module_forward_pre_hook(self._any_module)

    def listen_only_to(self, who: int) -> None:
        """Stop the search, and detect the calls of this module alone."""
        self._stop_searching()
        self._outermost = {module: kind for module, kind in self._outermost.items() if module == who}
        for kind in set(self._undo) - set(self._outermost.values()):
            self._undo.pop(kind)()

    def remove(self) -> None:
        """Remove all hooks and patches."""
        self._undo_compile()
        self.listen_only_to(0)

    def _stop_searching(self) -> None:
        if self._search is not None:
            self._search.remove()
            self._search = None

    def _any_module(self, module: Any, inputs: Any) -> None:
        who = id(module)
        if who in self._outermost or who in self._inside or threading.get_ident() in self._within:
            return  # an outermost module's class reports its calls
        if who not in self._calls:
            if len(self._calls) >= MAX_MODULES:
                return
            self._inside.update(id(inner) for inner in module.modules() if inner is not module)
        self._calls[who] = self._calls.get(who, 0) + 1
        self._tell(module)
        if self._calls[who] >= MIN_CALLS:
            self._attach(module)

    def _attach(self, module: Any) -> None:
        if len(self._outermost) >= MAX_MODULES:
            return
        self._outermost[id(module)] = type(module)
        if type(module) not in self._undo:
            self._undo[type(module)] = replace(type(module), "__call__", self._telling)

    def _telling(self, original: Any) -> Any:
        is_traced, within = self._is_traced, self._within

        def call(module: Any, *arguments: Any, **named: Any) -> Any:
            if is_traced():  # nothing else here can be traced
                return original(module, *arguments, **named)
            thread = threading.get_ident()
            if id(module) not in self._outermost or thread in within:
                return original(module, *arguments, **named)
            self._tell(module)
            within.add(thread)
            try:
                return original(module, *arguments, **named)
            except BaseException as error:
                if error.__traceback__ is not None:  # keep our frames out of the program's own error messages
                    error.__traceback__ = error.__traceback__.tb_next
                raise
            finally:
                within.discard(thread)

        return call

    def _tell(self, module: Any) -> None:
        holds_gradients = self._torch.is_grad_enabled() and any(
            parameter.grad is not None for parameter in itertools.islice(module.parameters(), PARAMETERS_CHECKED)
        )
        self._hear(id(module), holds_gradients, module.training and not self._torch.is_grad_enabled())

    def _compiling(self, compile_: Any) -> Any:
        """Whether torch.compile made the module: it warns about global hooks, and is an outermost module itself."""

        def replacement(*arguments: Any, **named: Any) -> Any:
            self._stop_searching()
            compiled = compile_(*arguments, **named)
            what: Any = arguments[0] if arguments else named.get("model")
            if isinstance(compiled, self._torch.nn.Module):
                self._attach(compiled)
            elif getattr(what, "__name__", "") == "_call_impl":  # Module.compile()
                self._attach(what.__self__)
            return compiled

        return replacement
