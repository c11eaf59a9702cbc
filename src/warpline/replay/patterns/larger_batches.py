"""A step with a larger batch: the same launches, for more samples at once.

All times are those of as many samples as the step has now, so that they compare with the present step: what is launched
once for a batch that is `times` as large counts with one part in `times`. What grows with the samples keeps its time.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from msgspec import Struct

from warpline.library_names import OPTIMIZER_RANGE
from warpline.replay.costs.cost import EXPECTED, OPTIMISTIC
from warpline.replay.graph.model import EdgeKind
from warpline.replay.graph_edit import GraphEdit
from warpline.replay.labelled_graph import LabelledGraph
from warpline.replay.patterns.grids import LIBRARY_CLASSES, Grids
from warpline.replay.patterns.launch_runs import own_code
from warpline.replay.patterns.optimizers import in_optimizer
from warpline.replay.resources import Resource, Resources
from warpline.trace.arrays import NONE, Bools, Floats, Int64s, containing

MOST_TIMES = 8
"""A batch that is larger than this many times the present one is another program: memory, convergence, latency."""
SAME_PASS = 0.9
"""Passes of one kind share at least this part of their operations. The first after an update may do more: a Trainer
fetches the data of all of them there."""
NOT_SHARED = (Resource.INPUT, Resource.TRANSFER, Resource.UNKNOWN, Resource.COLD_START)
"""Host time that more samples do not share, as far as a profile tells: loading and copying them, what is not known, and
a cold start, which a program pays once and no step again."""


class Passes(Struct, frozen=True):
    """Backward passes and updates of the steps in view."""

    backward: int
    updates: int
    accumulated: int
    """Equal backward passes for each update; 1 where they are not equal, or each has its update."""


def passes(labelled: LabelledGraph) -> Passes:
    """The passes by their launches: a backward pass is what autograd launches between two launches of the program."""
    work = np.flatnonzero(labelled.is_work & labelled.in_steps & (labelled.op != NONE))
    work = work[np.argsort(labelled.launch_moment[work], kind="stable")]
    # What follows a backward pass before the update (a norm of the gradients) belongs to the update.
    begins, _ = _updates(labelled)
    forward = work[~labelled.of_autograd[work] & ~updating(labelled)[work]]
    backward = work[labelled.of_autograd[work]]
    # The number of launches of the program before each of autograd's: the same within a backward pass.
    before = np.searchsorted(labelled.launch_moment[forward], labelled.launch_moment[backward])
    ends = np.unique(before)
    if not len(begins) or len(ends) < 2 * len(begins):
        return Passes(len(ends), len(begins), 1)
    firsts = np.append(0, ends[:-1])
    names = labelled.op_name.codes[forward]
    contents = [names[first:end] for first, end in zip(firsts.tolist(), ends.tolist(), strict=True)]
    typical = contents[int(np.argsort(ends - firsts)[len(contents) // 2])]
    updates_before = np.searchsorted(begins, labelled.launch_moment[forward[firsts]])
    follows_update = np.diff(updates_before, prepend=-1) > 0
    alike = sum(_is_like(one, typical, does_more) for one, does_more in zip(contents, follows_update, strict=True))
    accumulated = round(len(ends) / len(begins)) if alike >= SAME_PASS * len(contents) else 1
    return Passes(len(ends), len(begins), max(accumulated, 1))


def _is_like(one: Int64s, typical: Int64s, does_more: bool) -> bool:
    """Whether two lists of operations have nearly the same contents; `does_more`: whether the first may have others."""
    size = int(max(one.max(initial=0), typical.max(initial=0))) + 1
    shared = np.minimum(np.bincount(one, minlength=size), np.bincount(typical, minlength=size)).sum()
    return int(shared) >= SAME_PASS * (len(typical) if does_more else max(len(one), len(typical)))


def _updates(labelled: LabelledGraph) -> tuple[Int64s, Int64s]:
    """Begin and end of each update in the steps: from the end of the backward pass before torch.optim's range."""
    ranges, steps = labelled.trace.ranges, labelled.trace.steps_in_view
    chosen = ranges.name.like(OPTIMIZER_RANGE) & (ranges.thread != NONE)
    if len(steps):
        chosen &= (ranges.start_ns >= steps.start_ns[0]) & (ranges.start_ns < steps.end_ns[-1])
    order = np.flatnonzero(chosen)
    order = order[np.argsort(ranges.start_ns[order])]
    launched = np.sort(labelled.launch_moment[labelled.of_autograd])
    place = np.searchsorted(launched, ranges.start_ns[order])
    begins = np.where(place > 0, np.append(launched, 0)[place - 1] + 1, ranges.start_ns[order])
    return begins, ranges.end_ns[order]


def updating(labelled: LabelledGraph) -> Bools:
    """Nodes of updates, which are made once for each of them however large the batch is."""
    begins, ends = _updates(labelled)
    return labelled.once(in_optimizer) | (containing(begins, ends, labelled.launch_moment) != NONE)


class LargerBatch:
    """How many times larger the batch can be, and what its kernels then take."""

    def __init__(self, labelled: LabelledGraph) -> None:
        self._labelled = labelled
        self._resources = labelled.once(Resources)
        self.passes = passes(labelled)

    @cached_property
    def times(self) -> int:
        """The smallest power of two with which the device has as much to do as the host, if all kernels grow in
        proportion; 1 where the device has more to do already, or its memory is full."""
        labelled, duration = self._labelled, self._labelled.graph.duration
        steps = labelled.in_steps
        device_ns = float(duration[labelled.is_work & steps].sum())
        host = ~labelled.is_work & steps
        dispatch_ns = float((duration * self._resources.shares[Resource.DISPATCH])[host].sum())
        if device_ns <= 0 or not len(labelled.trace.steps_in_view):
            return 1
        wanted = 2.0 ** np.ceil(np.log2(max(dispatch_ns / device_ns, 1.0)))
        allowed = 2.0 ** np.floor(np.log2(max(self._room(), 1.0)))
        return int(min(wanted, allowed, MOST_TIMES))

    def _room(self) -> float:
        """Times the present peak that the device's memory holds; parameters do not grow, so that more may fit."""
        memory, devices = self._labelled.trace.memory, self._labelled.trace.devices
        peak = int(memory.allocated_bytes[memory.device_type != 0].max(initial=0))
        size = int(devices.memory_bytes.max(initial=0))
        return size / peak if peak > 0 and size > 0 else float(MOST_TIMES)

    @cached_property
    def fewer_passes(self) -> int:
        """How many micro-batches of an update can be one: a divisor of their number; 1 for none."""
        wanted, accumulated = max(self.times, 1), self.passes.accumulated
        if wanted == 1 or accumulated == 1:
            return 1
        most = min(accumulated, MOST_TIMES, int(self._room()))
        return max(number for number in range(1, most + 1) if accumulated % number == 0)

    def growth(self, times: int, case: int) -> Floats:
        """How many times longer each GPU operation takes with so many times the samples: at least once, at most as many
        times. What does not fill the device grows when it does; what is at the roofline grows in proportion."""
        labelled = self._labelled
        duration = np.maximum(labelled.graph.duration, 1.0)
        at_roofline = np.minimum(labelled.floor_ns() / duration, 1.0)
        waves = labelled.once(Grids).waves
        filled = np.where(waves > 0, np.minimum(waves, 1.0), 1.0)  # without a grid it may fill the device
        library = labelled.kernels(*LIBRARY_CLASSES)
        if case == OPTIMISTIC:
            share = at_roofline
        elif case == EXPECTED:
            # Libraries choose another grid for another size: the roofline says more, where it is known.
            share = np.where(library & (at_roofline > 0), at_roofline, np.maximum(at_roofline, filled))
        else:
            share = np.maximum(at_roofline, filled)
        found = np.clip(times * share, 1.0, times)
        smallest = labelled.device.smallest_copy.at(case)
        moved = np.minimum(smallest, duration) / duration
        found = np.where(labelled.is_copy, moved + times * (1 - moved), found)
        if case != OPTIMISTIC:
            found[labelled.kernels("comm")] = times
        found[updating(labelled)] = 1.0
        return found

    def enlarge(self, edit: GraphEdit, times: int, chosen: Bools, case: int) -> int:
        """Do what is chosen for so many times the samples at once; returns the number of GPU operations."""
        labelled, graph = edit.labelled, edit.graph
        work = chosen & labelled.is_work
        host = chosen & ~labelled.is_work
        once = 1 - self._resources.shares[list(NOT_SHARED)].sum(axis=0)
        if case == OPTIMISTIC:
            once += self._resources.shares[Resource.UNKNOWN]
        else:
            once[own_code(edit)] = 0.0
        graph.duration[work] *= (self.growth(times, case) / times)[work]
        graph.duration[host] *= (1 - np.clip(once, 0, 1) * (1 - 1 / times))[host]
        into = chosen[graph.edge_to] & np.isin(graph.edge_kind, [EdgeKind.LAUNCH, EdgeKind.STREAM])
        graph.lag[into] /= times
        return int(work.sum())
