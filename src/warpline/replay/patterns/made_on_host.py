"""Tensors that the host makes of nothing for the device: masks, noise, indices."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from warpline.replay.patterns.copies import SMALL_COPY_BYTES, copies_of
from warpline.replay.workbench import Workbench
from warpline.trace.columns import NONE
from warpline.trace.names import texts

MADE_OF_NOTHING = (
    "aten::arange",
    "aten::bernoulli",
    "aten::eye",
    "aten::full",
    "aten::full_like",
    "aten::linspace",
    "aten::normal",
    "aten::ones",
    "aten::ones_like",
    "aten::rand",
    "aten::rand_like",
    "aten::randint",
    "aten::randint_like",
    "aten::randn",
    "aten::randn_like",
    "aten::randperm",
    "aten::tril_indices",
    "aten::triu_indices",
    "aten::zeros",
    "aten::zeros_like",
)
"""Ops whose values come from no tensor: any device can make them."""


def made_for_device(bench: Workbench) -> Iterator[tuple[int, int, int, int]]:
    """Large copies to the device of what ops of the CPU made of nothing, after the step's first kernel: a batch comes
    before that. With each, from when to when which thread was at it."""
    scene = bench.scene
    uploads = copies_of(scene, "HtoD", bench)
    uploads = uploads[(scene.bytes[uploads] > SMALL_COPY_BYTES) & (scene.root_op[uploads] != NONE)]
    uploads = uploads[scene.call_of_work[uploads] != NONE]
    if not len(uploads) or not len(scene.trace.steps_in_view):
        return
    starts, ends, threads = scene.op_spans
    outer = np.flatnonzero(scene.roots[:-1] == np.arange(len(starts)))
    outer = outer[np.argsort(starts[outer], kind="stable")]
    names = texts(scene.trace.ops["name"])
    launched = np.sort(scene.launch_moment[scene.work])
    kernels = scene.work[scene.kind[scene.work] == "kernel"]
    first = np.full(scene.step.max() + 2, np.iinfo(np.int64).max)
    np.minimum.at(first, scene.step[kernels], scene.launch_moment[kernels])
    for copy in uploads.tolist():
        root, thread = int(scene.root_op[copy]), int(scene.graph.lane[scene.call_of_work[copy]])
        if starts[root] < first[scene.step[copy]]:
            continue
        since = int(launched[max(np.searchsorted(launched, scene.launch_moment[copy]) - 1, 0)])
        near = outer[np.searchsorted(starts[outer], since) : np.searchsorted(starts[outer], starts[root])]
        near = near[threads[near] == thread]
        if not len(near) or names[near[0]] not in MADE_OF_NOTHING:
            continue
        begin, end = int(starts[near[0]]), int(ends[root])
        # What Python does meanwhile is the program's own.
        if 2 * (ends[near] - starts[near]).sum() > starts[root] - begin:
            yield copy, begin, end, thread
