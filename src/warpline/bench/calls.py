"""The call to time: a function with one or several sets of arguments, which alternate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from warpline.errors import UsageError

Arguments = tuple[Any, ...]
Inputs = Sequence[Arguments] | Callable[[int], Arguments]
FACTORY_SETS = 4
"""Number of argument sets to take from a factory by default."""


class AlternatingCalls:
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
        """Every tensor among the arguments, also inside lists, tuples and dictionaries."""
        for arguments in self.sets:
            yield from _tensors(arguments)

    @property
    def input_bytes(self) -> int:
        """Distinct bytes of the tensors of all sets."""
        seen = {tensor.data_ptr(): tensor.numel() * tensor.element_size() for tensor in self.tensors()}
        return sum(seen.values())


def calls_of(function: Callable[..., object], args: Arguments, inputs: Inputs | None, copies: int) -> AlternatingCalls:
    """The calls for `bench`: plain arguments, copies of them, several sets, or a factory of sets."""
    if not callable(function):
        raise UsageError("not-callable", f"{function!r} is not callable", "give bench a function")
    if copies < 1:
        raise UsageError("bad-copies", f"copies is {copies}, but must be at least 1", "copies=1 or more")
    if inputs is None:
        return AlternatingCalls(function, [args, *(_copied(args) for _ in range(copies - 1))])
    if args:
        raise UsageError("two-inputs", "arguments and inputs= were both given", "give only one of them")
    sets = [inputs(index) for index in range(max(copies, FACTORY_SETS))] if callable(inputs) else list(inputs)
    if not sets or not all(isinstance(arguments, tuple) for arguments in sets):
        raise UsageError("bad-inputs", "inputs= must be at least one tuple of arguments", "inputs=[(a, b), (c, d)]")
    if not callable(inputs):
        sets += [_copied(arguments) for _ in range(copies - 1) for arguments in sets]
    return AlternatingCalls(function, sets)


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
    """Clone tensors, rebuild containers, share everything else."""
    if isinstance(value, (tuple, list)):
        return type(value)(_copied(part) for part in value)
    if isinstance(value, dict):
        return {key: _copied(part) for key, part in value.items()}
    if hasattr(value, "data_ptr") and hasattr(value, "detach"):
        return value.detach().clone().requires_grad_(value.requires_grad)
    return value
