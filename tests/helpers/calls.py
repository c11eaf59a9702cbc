"""Calls of ops in tests, written as Kineto records them."""

from __future__ import annotations

import json
from typing import Any

from warpline.work import KernelLaunch, OpCall, call_from_kineto

HALF, BRAIN, SINGLE, LONG = "c10::Half", "c10::BFloat16", "float", "long int"


def call(name: str, *arguments: Any, launches: tuple[KernelLaunch, ...] = (), parent: OpCall | None = None) -> OpCall:
    """A call from arguments: ((2, 3), "float") is a tensor, a list of shapes a TensorList, anything else a scalar.

    A third item of a tensor gives its strides.
    """
    shapes: list[Any] = []
    dtypes: list[str] = []
    strides: list[Any] = []
    concrete: list[str] = []
    for argument in arguments:
        shape, dtype, step, text = [], "Scalar", [], ""
        if isinstance(argument, tuple) and len(argument) >= 2 and isinstance(argument[1], str):
            shape, dtype = list(argument[0]), argument[1]
            step = list(argument[2]) if len(argument) > 2 else _contiguous(shape)
        elif isinstance(argument, list) and argument and isinstance(argument[0], tuple):
            shape, dtype, step = (
                [list(item) for item in argument],
                "TensorList",
                [_contiguous(item) for item in argument],
            )
        elif argument is None:
            dtype = ""
        else:
            text = str(argument)
        shapes.append(shape)
        dtypes.append(dtype)
        strides.append(step)
        concrete.append(text)
    return call_from_kineto(
        name,
        json.dumps(shapes),
        json.dumps(dtypes),
        json.dumps(strides),
        json.dumps(concrete),
        launches=launches,
        parent=parent,
    )


def _contiguous(shape: Any) -> list[int]:
    strides: list[int] = []
    step = 1
    for size in reversed(list(shape)):
        strides.append(step)
        step *= size
    return strides[::-1]
