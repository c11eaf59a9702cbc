"""Casts from one type to another."""

from __future__ import annotations

from functools import cache

import numpy as np

from warpline.replay.bench import Bench
from warpline.replay.interventions.registry import PESSIMISTIC, intervention
from warpline.replay.model import Bools
from warpline.replay.scene import Scene
from warpline.work.parse import json_list


def casts(scene: Scene) -> Bools:
    """Kernels that copy a tensor into another type: by the recorded types of `copy_`, else by `_to_copy` around it."""
    types = scene.op_column("dtypes")
    known = {text: _changes_type(text) for text in set(types[scene.work].tolist())}
    answers = np.array([known.get(text) for text in types], object)
    copying = (scene.op_name == "aten::copy_") & (scene.kind == "kernel")
    told = answers != None  # noqa: E711 - elementwise
    by_type: Bools = copying & told & (answers == True)  # noqa: E712 - elementwise
    by_op: Bools = copying & ~told & scene.under_op("aten::_to_copy")
    return by_type | by_op


@cache
def _changes_type(dtypes: str) -> bool | None:
    """Whether target and source of a copy differ; None where they are not recorded."""
    types = json_list(dtypes)
    if len(types) < 2 or not types[0] or not types[1]:
        return None
    return bool(types[0] != types[1])


@intervention(
    "drop_casts",
    9,
    "Tensors are made in the type in which they are used, so that nothing is cast on the device.",
    "What reads the cast tensor takes the same time when the tensor had that type from the start.",
    "The worst case keeps half of the casts.",
)
def drop_casts(bench: Bench, case: int) -> int:
    """No casting kernels."""
    scene = bench.scene
    chosen = np.flatnonzero(casts(scene) & scene.in_steps & ~bench.gone)
    bench.remove_work(chosen[::2] if case == PESSIMISTIC else chosen)
    return len(chosen)
