"""Replacing an attribute of somebody else's module or class, and putting it back."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

Undo = Callable[[], None]


def replaced(owner: Any, name: str, make: Callable[[Any], Any]) -> Undo:
    """Puts `make(original)` in the place of `owner.name`; nothing happens where there is no such thing."""
    original = getattr(owner, name, None)
    if original is None:
        return lambda: None
    inherited = isinstance(owner, type) and name not in vars(owner)
    replacement = functools.wraps(original)(make(original))
    setattr(owner, name, replacement)

    def undo() -> None:
        if getattr(owner, name, None) is not replacement:
            return  # somebody else has replaced it since
        if inherited:
            delattr(owner, name)
        else:
            setattr(owner, name, original)

    return undo


def before(owner: Any, name: str, call: Callable[..., None]) -> Undo:
    """Has `call` called with the arguments of every call of `owner.name`, first."""

    def make(original: Any) -> Any:
        def replacement(*arguments: Any, **named: Any) -> Any:
            call(*arguments, **named)
            return original(*arguments, **named)

        return replacement

    return replaced(owner, name, make)


def after(owner: Any, name: str, call: Callable[..., None]) -> Undo:
    """The same, after it."""

    def make(original: Any) -> Any:
        def replacement(*arguments: Any, **named: Any) -> Any:
            result = original(*arguments, **named)
            call(*arguments, **named)
            return result

        return replacement

    return replaced(owner, name, make)
