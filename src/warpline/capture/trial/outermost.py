"""Calls of the modules that the program calls itself, and a place to change what goes in and comes out.

While it searches, `Module.__call__` is replaced outside of such calls, so that the modules inside run as always. Each
assignment to it empties Python's caches of all its classes (0.3 ms a call), so it ends before the first window: from
then on only the classes of the modules found are replaced, and none if nothing happens at their calls. `module_calls`
listens in the same way, but cannot wrap. What torch calls itself in backward() is no call of the program: layers that a
checkpoint computes again, and the graphs of a compiler. Neither is a call within a transform of torch.func.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from warpline.capture.this_process import called_by_torch_check, tracing_check

Call = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]


class OutermostCalls:
    """Gives each outermost call of a module to `handle`, with the module's number and the original call."""

    def __init__(
        self, torch: Any, adopt: Callable[[Any, int], None], handle: Callable[[Any, int, Call, Any, Any], Any]
    ):
        self._module_class, self._adopt, self._handle = torch.nn.Module, adopt, handle
        self._original = torch.nn.Module.__call__
        self._searching, self._inside = True, False
        self._is_traced, self._by_torch = tracing_check(torch), called_by_torch_check(torch)
        self.found: dict[int, tuple[Any, int]] = {}
        self._replacement = self._make()
        torch.nn.Module.__call__ = self._replacement

    def _make(self) -> Any:
        original, found = self._original, self.found
        is_traced, by_torch = self._is_traced, self._by_torch

        @functools.wraps(original)
        def call(module: Any, *arguments: Any, **named: Any) -> Any:
            if is_traced():  # nothing else here can be traced
                return original(module, *arguments, **named)
            if self._inside or by_torch() or (not self._searching and id(module) not in found):
                return original(module, *arguments, **named)
            return self._outermost(module, arguments, named)

        return call

    def _outermost(self, module: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        searching, self._inside = self._searching, True
        if searching:
            self._module_class.__call__ = self._original
        try:
            if id(module) not in self.found:
                self.found[id(module)] = (module, len(self.found))
                self._adopt(module, self.found[id(module)][1])
            return self._handle(module, self.found[id(module)][1], self._call, arguments, named)
        finally:
            self._inside = False
            if searching and self._searching:
                self._module_class.__call__ = self._replacement

    def _call(self, module: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        return self._original(module, *arguments, **named)

    def stop_searching(self, hears: bool) -> None:
        """From now on, hear only the modules found so far, or none: then no call costs anything."""
        if not self._searching:
            return
        self._searching = False
        self._module_class.__call__ = self._original
        for module, _ in self.found.values() if hears else ():
            if type(module).__call__ is self._original:
                type(module).__call__ = self._replacement
