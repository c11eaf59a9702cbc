"""Tensors that a program repeatedly creates on the device from Python numbers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from msgspec import Struct

from warpline.replay.patterns.copies import SMALL_COPY_BYTES
from warpline.replay.patterns.host_spans import take_out
from warpline.replay.scene import Scene
from warpline.replay.workbench import Workbench
from warpline.trace.columns import NONE, Int64s
from warpline.trace.names import names_in


class Made(Struct, frozen=True):
    """A tensor created from Python numbers: its copy to the device, and when the thread created it."""

    copy: int
    thread: int
    spans: tuple[tuple[int, int], ...]
    """One pass over the numbers, the allocation, another pass, the rest."""


def made_again(scene: Scene) -> list[Made]:
    """Tensors created by `torch.tensor([…], device="cuda")` or `x[[1, 2]]`, except the first of each size in a
    step, which may be new."""
    small = (scene.kind == "memcpy") & (scene.work_text("copy_kind") == "HtoD") & (scene.bytes <= SMALL_COPY_BYTES)
    copies = np.flatnonzero(small & (scene.work_text("source_memory") == "Pageable") & scene.in_steps)
    seen: set[tuple[int, int]] = set()
    again = []
    for made in made_from_numbers(scene, copies):
        key = int(scene.step[made.copy]), int(scene.bytes[made.copy])
        if key in seen:
            again.append(made)
        seen.add(key)
    return again


def made_from_numbers(scene: Scene, copies: Int64s) -> Iterator[Made]:
    """The copies that torch makes to create a tensor from numbers: host allocation, copy, new tensor."""
    starts, ends, threads = scene.op_spans
    outer = np.flatnonzero(scene.roots[:-1] == np.arange(len(starts)))
    outer = outer[np.lexsort((starts[outer], threads[outer]))]
    names = names_in(scene.trace.ops).texts[outer].tolist()
    begin, end, thread = starts[outer], ends[outer], threads[outer]
    place = np.full(len(starts) + 1, NONE, np.int64)
    place[outer] = np.arange(len(outer))
    for copy in copies.tolist():
        at = int(place[scene.root_op[copy]])
        if at < 1 or names[at - 1] != "aten::empty" or names[at + 1 : at + 2] != ["aten::lift_fresh"]:
            continue
        if not thread[at - 1] == thread[at] == thread[at + 1]:
            continue
        # torch reads a list once for its shape and type and once for its values, in about the same time.
        first = int(begin[at - 1]) - int(begin[at] - end[at - 1])
        if at > 1 and thread[at - 2] == thread[at]:
            first = max(first, int(end[at - 2]))
        cuts = [first, int(begin[at - 1]), int(end[at - 1]), int(begin[at]), int(end[at + 1])]
        yield Made(copy, int(thread[at]), tuple(pairwise(cuts)))


def take_out_made(bench: Workbench, made: list[Made]) -> None:
    """Removes the creation of these tensors: copies, calls, waits, and the host time of lists and ops."""
    if not made:
        return
    bench.remove_work(np.array([one.copy for one in made], np.int64), dispatch=False)
    threads = np.tile(np.array([one.thread for one in made], np.int64), 2)
    walk, memory, again, rest = np.array([one.spans for one in made], np.int64).transpose(1, 2, 0)
    # Reading a list costs what was recorded: nothing else is recorded meanwhile.
    starts, ends = np.hstack([walk, again])
    take_out(bench, starts, ends, threads, bare=True)
    starts, ends = np.hstack([memory, rest])
    take_out(bench, starts, ends, threads)
