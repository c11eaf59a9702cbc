"""Replace an attribute of another module or class, and restore it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

Undo = Callable[[], None]


def replace(owner: Any, name: str, make: Callable[[Any], Any]) -> Undo:
    """Replace `owner.name` with `make(original)`; do nothing if it does not exist."""
    original = getattr(owner, name, None)
    if original is None:
        return lambda: None
    inherited = isinstance(owner, type) and name not in vars(owner)
    replacement = functools.wraps(original)(make(original))
    setattr(owner, name, replacement)

    def undo() -> None:
        if getattr(owner, name, None) is not replacement:
            return  # other code has replaced it since
        if inherited:
            delattr(owner, name)
        else:
            setattr(owner, name, original)

    return undo


def before(owner: Any, name: str, call: Callable[..., None]) -> Undo:
    """Call `call` with the arguments of every call of `owner.name`, before it."""

    def make(original: Any) -> Any:
        def replacement(*arguments: Any, **named: Any) -> Any:
            call(*arguments, **named)
            return original(*arguments, **named)

        return replacement

    return replace(owner, name, make)


def after(owner: Any, name: str, call: Callable[..., None]) -> Undo:
    """Call `call` with the arguments of every call of `owner.name`, after it."""

    def make(original: Any) -> Any:
        def replacement(*arguments: Any, **named: Any) -> Any:
            result = original(*arguments, **named)
            call(*arguments, **named)
            return result

        return replacement

    return replace(owner, name, make)
