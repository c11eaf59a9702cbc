"""Kernels that concatenate tensors: existing data is copied to append new data."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from warpline.kernels import KernelIdentity
from warpline.replay.patterns.tensor_lists import LONGEST_LIST
from warpline.replay.scene import Scene
from warpline.trace.columns import Bools
from warpline.work.parse import json_list, sizes_of

MAX_GROWING_INPUTS = 3
"""Inputs of a concatenation that grows a tensor: the existing data, on one side or both, and the new data."""


def joins(scene: Scene) -> Bools:
    """Kernels that concatenate tensors, except those of autograd, which the program does not control."""
    joining = scene.kernels_where(_concatenates) | scene.under_op("aten::cat")
    return joining & scene.is_work & ~scene.of_autograd


def joins_old_pieces(scene: Scene) -> Bools:
    """Concatenations with more inputs than GPU activities since the previous one or the start of the step: not
    all inputs are new."""
    result, chosen = np.zeros(len(scene.graph), bool), scene.once(joins)
    for lane in np.unique(scene.graph.lane[chosen]).tolist():
        nodes = scene.work_of_lane[lane]
        spots = np.flatnonzero(chosen[nodes])
        begins = np.flatnonzero(np.diff(scene.step[nodes], prepend=scene.step[nodes[:1]] - 1))
        since = np.maximum(begins[np.searchsorted(begins, spots, side="right") - 1], np.append(0, spots[:-1] + 1))
        pieces = np.array([_pieces(scene, node) for node in nodes[spots].tolist()], np.int64)
        result[nodes[spots]] = pieces > np.maximum(spots - since, MAX_GROWING_INPUTS)
    return result


def grows(scene: Scene) -> Bools:
    """Concatenations of a tensor with a few smaller ones: existing data is copied to append new data."""
    return _joins_of_few(scene, lambda sizes: 2 * max(sizes) > sum(sizes))


def joins_equals(scene: Scene) -> Bools:
    """Concatenations of a few tensors, none as large as the others together: halves, branches of a network."""
    return _joins_of_few(scene, lambda sizes: 2 * max(sizes) <= sum(sizes))


def _joins_of_few(scene: Scene, like: Callable[[list[int]], bool]) -> Bools:
    result = np.zeros(len(scene.graph), bool)
    for node in np.flatnonzero(scene.once(joins)).tolist():
        sizes = [prod(shape) for shape in piece_shapes(scene, node)]
        result[node] = 1 < len(sizes) <= MAX_GROWING_INPUTS and like(sizes)
    return result


def _concatenates(identity: KernelIdentity) -> bool:
    return identity.op in {"cat", "concat", "stack"}


def _pieces(scene: Scene, node: int) -> int:
    """The number of inputs of a concatenation, by the recorded shapes; 0 if none were recorded."""
    shapes, strides = (json_list(scene.op_column(column)[node])[:1] for column in ("shapes", "strides"))
    # If strides are recorded, so are the shapes in lists, except long ones.
    long = shapes == strides == [[]]
    return LONGEST_LIST + 1 if long else len(piece_shapes(scene, node))


def piece_shapes(scene: Scene, node: int) -> list[tuple[int, ...]]:
    """The recorded input shapes of a concatenation."""
    shapes = json_list(scene.op_column("shapes")[node])[:1]
    listed = shapes[0] if shapes and isinstance(shapes[0], list) else []
    return [sizes for shape in listed if (sizes := sizes_of(shape)) is not None]
