"""The call that is timed: a function with one or several sets of arguments, used in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from warpline.errors import UsageError

Arguments = tuple[Any, ...]
Inputs = Sequence[Arguments] | Callable[[int], Arguments]
FACTORY_SETS = 4
"""How often a factory is asked for arguments when nobody says how often."""


class Calls:
    """Calls a function with the next set of its arguments."""

    def __init__(self, function: Callable[..., object], sets: Sequence[Arguments]) -> None:
        self.function = function
        self.sets = list(sets)
        self._next = 0

    def __call__(self) -> object:
        """One call."""
        arguments = self.sets[self._next]
        self._next = (self._next + 1) % len(self.sets)
        return self.function(*arguments)

    def tensors(self) -> Iterator[Any]:
        """Every tensor among the arguments, in lists, tuples and dictionaries too."""
        for arguments in self.sets:
            yield from _tensors(arguments)

    @property
    def input_bytes(self) -> int:
        """Distinct bytes that the tensors of all sets hold."""
        seen = {tensor.data_ptr(): tensor.numel() * tensor.element_size() for tensor in self.tensors()}
        return sum(seen.values())


def calls_of(function: Callable[..., object], args: Arguments, inputs: Inputs | None, copies: int) -> Calls:
    """The calls as `bench` is asked for them: plain arguments, copies of them, several sets, or a factory of sets."""
    if not callable(function):
        raise UsageError("not-callable", f"{function!r} cannot be called", "give bench a function")
    if copies < 1:
        raise UsageError("bad-copies", f"{copies} copies of the inputs are too few", "copies=1 or more")
    if inputs is None:
        return Calls(function, [args, *(_copied(args) for _ in range(copies - 1))])
    if args:
        raise UsageError("two-inputs", "arguments and inputs= were both given", "give one of them")
    sets = [inputs(index) for index in range(max(copies, FACTORY_SETS))] if callable(inputs) else list(inputs)
    if not sets or not all(isinstance(arguments, tuple) for arguments in sets):
        raise UsageError("bad-inputs", "inputs= must be tuples of arguments, at least one", "inputs=[(a, b), (c, d)]")
    if not callable(inputs):
        sets += [_copied(arguments) for _ in range(copies - 1) for arguments in sets]
    return Calls(function, sets)


def _tensors(value: Any) -> Iterator[Any]:
    if isinstance(value, (tuple, list)):
        for part in value:
            yield from _tensors(part)
    elif isinstance(value, dict):
        yield from _tensors(tuple(value.values()))
    elif hasattr(value, "data_ptr") and hasattr(value, "element_size"):
        yield value
    elif hasattr(value, "parameters") and hasattr(value, "state_dict"):
        yield from value.parameters()


def _copied(value: Any) -> Any:
    """Tensors cloned, containers rebuilt, all else shared."""
    if isinstance(value, (tuple, list)):
        return type(value)(_copied(part) for part in value)
    if isinstance(value, dict):
        return {key: _copied(part) for key, part in value.items()}
    if hasattr(value, "data_ptr") and hasattr(value, "detach"):
        return value.detach().clone().requires_grad_(value.requires_grad)
    return value
