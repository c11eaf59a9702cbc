"""`dataclass` as in the standard library, but made in a third of the time.

The standard library compiles up to seven methods for each class, which takes Python 3.11 a millisecond, and a diagnosis
loads 140 classes. Here `__init__` alone is compiled, for the first object; the other methods are shared, and look the
fields up.
"""

from __future__ import annotations

import dataclasses
from dataclasses import MISSING, FrozenInstanceError
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(kind=None, /, *, frozen=False, slots=False):
        """Make a dataclass; the options are those of the standard library that warpline uses."""

        def made(kind):
            return _made(kind, frozen, slots)

        return made if kind is None else made(kind)


def _made(kind: Any, frozen: bool, slots: bool) -> Any:
    written = vars(kind)
    shared: dict[str, Any] = {"__repr__": _repr, "__eq__": _eq, "__hash__": _hash if frozen else None}
    if frozen:
        shared |= {"__setattr__": _no_setting, "__delattr__": _no_deleting}
        shared |= {"__getstate__": _state, "__setstate__": _set_state} if slots else {}
    own = {name for name in shared if written.get(name) is not None}
    kind.__doc__ = kind.__doc__ or kind.__name__  # else the standard library spells out the signature
    kind = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots)(kind)
    for name, method in shared.items():
        if name not in own:
            setattr(kind, name, method)
    if "__init__" not in written:
        kind.__init__ = _first_init(kind, frozen)
    return kind


def _first_init(kind: Any, frozen: bool) -> Any:
    """Makes the first object, and has `__init__` compiled for it: most commands make objects of a few classes."""

    def first(self: Any, *values: Any, **named: Any) -> None:
        kind.__init__ = _init(kind, frozen)
        kind.__init__(self, *values, **named)

    return first


def _init(kind: Any, frozen: bool) -> Any:
    """Compiled, because objects are made far more often than they are compared or shown."""
    known: dict[str, Any] = {"_set": object.__setattr__, "_missing": MISSING}
    parameters, lines = ["self"], []
    for field in dataclasses.fields(kind):
        name, value = field.name, field.name
        if field.default_factory is not MISSING:
            known[f"_make_{name}"] = field.default_factory
            value = f"_make_{name}() if {name} is _missing else {name}" if field.init else f"_make_{name}()"
            parameter = f"{name}=_missing"
        elif field.default is not MISSING:
            known[f"_default_{name}"] = field.default
            value = name if field.init else f"_default_{name}"
            parameter = f"{name}=_default_{name}"
        elif field.init:
            parameter = name
        else:
            continue
        parameters += [parameter] if field.init else []
        lines.append(f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(kind, "__post_init__"):
        lines.append("self.__post_init__()")
    exec(f"def __init__({', '.join(parameters)}):\n " + "\n ".join(lines or ["pass"]), known)
    known["__init__"].__qualname__ = f"{kind.__qualname__}.__init__"
    return known["__init__"]


def _compared(record: Any) -> tuple[Any, ...]:
    return tuple(getattr(record, name) for name in record.__dataclass_fields__)


def _eq(self: Any, other: object) -> bool:
    return _compared(self) == _compared(other) if other.__class__ is self.__class__ else NotImplemented


def _hash(self: Any) -> int:
    fields = self.__dataclass_fields__
    return hash(tuple(getattr(self, name) for name, field in fields.items() if field.hash is not False))


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (name for name, field in self.__dataclass_fields__.items() if field.repr)
    return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"


def _no_setting(self: Any, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _no_deleting(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    """For copies and pickles, which would set attributes."""
    return [getattr(self, name) for name in self.__dataclass_fields__]


def _set_state(self: Any, state: list[Any]) -> None:
    for name, value in zip(self.__dataclass_fields__, state, strict=True):
        object.__setattr__(self, name, value)
