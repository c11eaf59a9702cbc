"""Kernels that concatenate tensors: existing data is copied to append new data."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from warpline.kernels import KernelIdentity
from warpline.replay.labelled_graph import LabelledGraph
from warpline.replay.patterns.tensor_lists import LONGEST_LIST
from warpline.trace.arrays import Bools
from warpline.work.parse import json_list, sizes_of

MAX_GROWING_INPUTS = 3
"""Inputs of a concatenation that grows a tensor: the existing data, on one side or both, and the new data."""


def joins(labelled: LabelledGraph) -> Bools:
    """Kernels that concatenate tensors, except those of autograd, which the program does not control."""
    joining = labelled.kernels_where(_concatenates) | labelled.under_op("aten::cat")
    return joining & labelled.is_work & ~labelled.of_autograd


def joins_old_pieces(labelled: LabelledGraph) -> Bools:
    """Concatenations with more inputs than GPU activities since the previous one or the start of the step: not
    all inputs are new."""
    result, chosen = np.zeros(len(labelled.graph), bool), labelled.once(joins)
    for lane in np.unique(labelled.graph.lane[chosen]).tolist():
        nodes = labelled.work_of_lane[lane]
        spots = np.flatnonzero(chosen[nodes])
        begins = np.flatnonzero(np.diff(labelled.step[nodes], prepend=labelled.step[nodes[:1]] - 1))
        since = np.maximum(begins[np.searchsorted(begins, spots, side="right") - 1], np.append(0, spots[:-1] + 1))
        pieces = np.array([_pieces(labelled, node) for node in nodes[spots].tolist()], np.int64)
        result[nodes[spots]] = pieces > np.maximum(spots - since, MAX_GROWING_INPUTS)
    return result


def grows(labelled: LabelledGraph) -> Bools:
    """Concatenations of a tensor with a few smaller ones: existing data is copied to append new data."""
    return _joins_of_few(labelled, lambda sizes: 2 * max(sizes) > sum(sizes))


def joins_equals(labelled: LabelledGraph) -> Bools:
    """Concatenations of a few tensors, none as large as the others together: halves, branches of a network."""
    return _joins_of_few(labelled, lambda sizes: 2 * max(sizes) <= sum(sizes))


def _joins_of_few(labelled: LabelledGraph, like: Callable[[list[int]], bool]) -> Bools:
    result = np.zeros(len(labelled.graph), bool)
    for node in np.flatnonzero(labelled.once(joins)).tolist():
        sizes = [prod(shape) for shape in piece_shapes(labelled, node)]
        result[node] = 1 < len(sizes) <= MAX_GROWING_INPUTS and like(sizes)
    return result


def _concatenates(identity: KernelIdentity) -> bool:
    return identity.op in {"cat", "concat", "stack"}


def _pieces(labelled: LabelledGraph, node: int) -> int:
    """The number of inputs of a concatenation, by the recorded shapes; 0 if none were recorded."""
    shapes, strides = (json_list(text.text(node) or "")[:1] for text in (labelled.op_shapes, labelled.op_strides))
    # If strides are recorded, so are the shapes in lists, except long ones.
    long = shapes == strides == [[]]
    return LONGEST_LIST + 1 if long else len(piece_shapes(labelled, node))


def piece_shapes(labelled: LabelledGraph, node: int) -> list[tuple[int, ...]]:
    """The recorded input shapes of a concatenation."""
    shapes = json_list(labelled.op_shapes.text(node) or "")[:1]
    listed = shapes[0] if shapes and isinstance(shapes[0], list) else []
    return [sizes for shape in listed if (sizes := sizes_of(shape)) is not None]
