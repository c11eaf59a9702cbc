"""Parse Kineto's columns (JSON text) into an `OpCall`. Invalid input gives fewer arguments, never an error."""

from __future__ import annotations

import json
from functools import lru_cache
from math import prod
from typing import Any

from warpline.sources.valid_text import valid_json
from warpline.work.model import Argument, KernelLaunch, OpCall, Tensor, tensor_type

Arguments = tuple[Argument, ...]
LIST_TYPES = {"TensorList", "GenericList", ""}
"""Types that Kineto writes for a list of tensors; its items' types are not recorded."""

MAX_SIZE = 1 << 48
"""A size, a stride or a number of elements above it is damage; sums and products of such ones fit 64 bits."""


def call_from_kineto(
    name: str,
    shapes: str | None,
    dtypes: str | None,
    strides: str | None = None,
    concrete: str | None = None,
    *,
    launches: tuple[KernelLaunch, ...] = (),
    parent: OpCall | None = None,
) -> OpCall:
    """The call of an op from its `Input Dims`, `Input type`, `Input Strides` and `Concrete Inputs`."""
    return OpCall(name, _arguments(shapes, dtypes, strides, concrete), launches, parent)


@lru_cache(maxsize=10_000)
def _arguments(shapes: str | None, dtypes: str | None, strides: str | None, concrete: str | None) -> Arguments:
    """One tuple for all calls with the same arguments, of which a trace has few."""
    dims, kinds = json_list(shapes), json_list(dtypes)
    steps, texts = json_list(strides), json_list(concrete)
    return tuple(
        _argument(_at(dims, i), _at(kinds, i), _at(steps, i), _at(texts, i)) for i in range(max(len(dims), len(kinds)))
    )


def _argument(shape: Any, kind: Any, strides: Any, text: Any) -> Argument:
    kind = kind if isinstance(kind, str) else ""
    text = text if isinstance(text, str) else ""
    dtype = tensor_type(kind)
    dims = sizes_of(shape)
    if dtype and dims is not None:
        return Argument(kind, Tensor(dims, dtype, _integers(strides)), text=text)
    if kind in LIST_TYPES and isinstance(shape, list) and shape:
        listed = [sizes_of(item) for item in shape]
        if all(item is not None for item in listed):
            steps = strides if isinstance(strides, list) and len(strides) == len(shape) else [None] * len(shape)
            items = (
                Tensor(item, "", _integers(step)) for item, step in zip(listed, steps, strict=True) if item is not None
            )
            return Argument(kind, tensors=tuple(items), text=text)
    return Argument(kind, text=text)


def _integers(value: Any) -> tuple[int, ...] | None:
    """A list of sizes or strides; None for anything else, including impossible sizes."""
    if not isinstance(value, list) or not all(type(item) is int and 0 <= item <= MAX_SIZE for item in value):
        return None
    return tuple(value)


def sizes_of(value: Any) -> tuple[int, ...] | None:
    """The sizes of a tensor; None for anything else, and for more elements than any memory holds."""
    sizes = _integers(value)
    return sizes if sizes is not None and prod(sizes) <= MAX_SIZE else None


def recorded_sizes(text: str | None) -> list[tuple[int, ...]]:
    """The sizes of each tensor in a recorded list; what is not a tensor is left out."""
    return [sizes for entry in json_list(text) if (sizes := sizes_of(entry)) is not None]


def recorded_types(text: str | None) -> list[str]:
    """The type of each argument in a recorded list; empty for what is not a type."""
    return [entry if isinstance(entry, str) else "" for entry in json_list(text)]


def json_list(text: str | None) -> list[Any]:
    """A recorded list; empty if there is none or the text is something else."""
    if not text:
        return []
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return []
    if not isinstance(value, list):
        return []
    return valid_json(value) if "\\u" in text else value


def _at(values: list[Any], position: int) -> Any:
    return values[position] if position < len(values) else None
