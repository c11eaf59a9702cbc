"""Calls of a program's outermost modules, heard without slowing the modules inside them.

A hook on all modules finds the outermost ones in their first calls and is then taken away: while it is there, every
module call takes torch's slow path. From then on calls of the outermost modules are heard at their class: a hook would
be in the module, and so in what the program saves, copies or scripts.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from warpline.capture.patches import Undo, replaced
from warpline.capture.steps import ACCUMULATING_PATIENCE
from warpline.capture.this_process import tracing_check

ENOUGH_CALLS = 2
"""A module that was called this often is one that a program calls again and again."""
MOST_MODULES = 8
PARAMETERS_LOOKED_AT = 4

Hear = Callable[[int, int], None]
"""Called with a module's identity, and with the patience its calls deserve (0 for the usual)."""


class Forwards:
    """Hears the outermost forward calls of a process."""

    def __init__(self, torch: Any, hear: Hear) -> None:
        self._torch, self._hear = torch, hear
        self._calls: dict[int, int] = {}
        self._inside: set[int] = set()
        self._outermost: set[int] = set()
        self._undo: dict[type, Undo] = {}
        self._is_traced = tracing_check(torch)
        register = torch.nn.modules.module.register_module_forward_pre_hook
        self._search: Any = register(self._any_module)
        self._undo_compile = replaced(torch, "compile", self._compiling)

    def stop_searching(self) -> None:
        """A better sign of steps was found, or enough was seen."""
        if self._search is not None:
            self._search.remove()
            self._search = None

    def remove(self) -> None:
        """Takes away everything that was put in."""
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
            if len(self._calls) >= MOST_MODULES:
                return
            self._inside.update(id(inner) for inner in module.modules() if inner is not module)
        self._calls[who] = self._calls.get(who, 0) + 1
        if who in self._outermost:
            return  # its class tells
        self._tell(module)
        if self._calls[who] >= ENOUGH_CALLS:
            self._attach(module)
            self.stop_searching()

    def _attach(self, module: Any) -> None:
        if len(self._outermost) >= MOST_MODULES:
            return
        self._outermost.add(id(module))
        if type(module) not in self._undo:
            self._undo[type(module)] = replaced(type(module), "__call__", self._telling)

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
                if error.__traceback__ is not None:  # the program's own errors do not speak of us
                    error.__traceback__ = error.__traceback__.tb_next
                raise

        return call

    def _tell(self, module: Any) -> None:
        training = self._torch.is_grad_enabled() and any(
            parameter.grad is not None for parameter in itertools.islice(module.parameters(), PARAMETERS_LOOKED_AT)
        )
        self._hear(id(module), ACCUMULATING_PATIENCE if training else 0)

    def _compiling(self, compile_: Any) -> Any:
        """torch.compile warns of hooks on all modules, and its result is an outermost module itself."""

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
