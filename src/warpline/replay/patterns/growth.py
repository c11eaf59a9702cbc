"""Tensors that grow from step to step: a key-value cache, a list of generated tokens."""

from __future__ import annotations

from math import prod

import numpy as np

from warpline.replay.labelled_graph import LabelledGraph
from warpline.replay.patterns.concatenations import joins, piece_shapes
from warpline.trace.arrays import NONE, Bools

LEAST_GROWTHS = 2
"""Steps in a row in which a tensor grows; once may be chance."""


def grows_over_steps(labelled: LabelledGraph) -> Bools:
    """Joins whose largest piece has the shape that a join of the step before made: the tensor grows in every step.

    Such shapes differ in every step, so that the step cannot be captured as a CUDA graph as it is.
    """
    nodes = np.flatnonzero(labelled.once(joins) & labelled.in_steps)
    result = np.zeros(len(labelled.graph), bool)
    joined_shapes: dict[int, set[tuple[int, ...]]] = {}
    readers: dict[int, dict[tuple[int, ...], list[int]]] = {}
    for node in nodes.tolist():
        pieces = piece_shapes(labelled, node)
        step = int(labelled.step[node])
        if step == NONE or len(pieces) < 2:
            continue
        largest = max(pieces, key=prod)
        joined = _joined(pieces)
        if joined is not None and 2 * prod(largest) > prod(joined):
            joined_shapes.setdefault(step, set()).add(joined)
            readers.setdefault(step, {}).setdefault(largest, []).append(node)
    growing = {
        step: [node for shape in shapes.keys() & joined_shapes.get(step - 1, set()) for node in shapes[shape]]
        for step, shapes in readers.items()
    }
    if sum(bool(found) for found in growing.values()) >= LEAST_GROWTHS:
        for found in growing.values():
            result[found] = True
    return result


def shapes_change(labelled: LabelledGraph) -> bool:
    """Whether GPU operations take or make tensors of other shapes in the next step, as the recorded data flow shows;
    False where it was not recorded for two steps."""
    return labelled.dataflow is not None and labelled.dataflow.shapes_change is True


def _joined(pieces: list[tuple[int, ...]]) -> tuple[int, ...] | None:
    """The shape of the pieces joined along the one dimension in which they may differ; None if that is not known."""
    first = pieces[0]
    if any(len(piece) != len(first) for piece in pieces):
        return None
    differing = [axis for axis in range(len(first)) if len({piece[axis] for piece in pieces}) > 1]
    if len(differing) != 1:
        return None
    axis = differing[0]
    return (*first[:axis], sum(piece[axis] for piece in pieces), *first[axis + 1 :])
