"""Marks that a program sets for its profile: the end of a step, and named regions.

They cost almost nothing while no profiler is active: torch is not imported, and no range is opened.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

_listeners: list[Callable[[], None]] = []
_UNDER_NSYS = any(name.startswith("NSYS_PROFILING_SESSION") for name in os.environ)


def step() -> None:
    """Mark the end of a step.

    >>> for batch in loader:
    ...     train(batch)
    ...     warpline.step()
    """
    for listener in _listeners:
        listener()


def listen(listener: Callable[[], None]) -> Callable[[], None]:
    """Call the listener at the end of every step; the result removes it again."""
    _listeners.append(listener)

    def undo() -> None:
        if listener in _listeners:
            _listeners.remove(listener)

    return undo


class region:  # noqa: N801 - reads as a word of the language, like contextlib.suppress
    """A named part of the program, as a context manager or a decorator: `with region("forward"): …`.

    It appears in the trace as a record_function under torch.profiler and as an NVTX range under nsys. Regions nest.

    >>> with warpline.region("forward"):
    ...     loss = model(batch)
    """

    __slots__ = ("_function", "_nvtx", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self._function: Any = None
        self._nvtx: Any = None

    def __enter__(self) -> region:
        torch = sys.modules.get("torch")
        if torch is None:
            return self
        if torch.autograd._profiler_enabled():
            self._function = torch.profiler.record_function(self.name)
            self._function.__enter__()
        if _UNDER_NSYS:
            self._nvtx = torch.cuda.nvtx
            self._nvtx.range_push(self.name)
        return self

    def __exit__(self, *reason: object) -> None:
        nvtx, self._nvtx = self._nvtx, None
        if nvtx is not None:
            nvtx.range_pop()
        function, self._function = self._function, None
        if function is not None:
            function.__exit__(*reason)

    def __call__(self, function: Function) -> Function:
        """Wrap the function so that every call is this region."""

        @functools.wraps(function)
        def within(*arguments: Any, **named: Any) -> Any:
            with region(self.name):
                return function(*arguments, **named)

        return within  # type: ignore[return-value]
