"""Which op of one recording is which op of another recording of the same program.

Recordings of one program repeat its ops in the same order, so that a name and a place within the step are enough. What
differs (another branch was taken, a loop took longer) stays without a partner.
"""

from __future__ import annotations

from collections import Counter
from difflib import SequenceMatcher

import numpy as np
from msgspec import Struct

from warpline.library_names import PROFILER_STEP
from warpline.trace.arrays import NONE, Int64s, containing, grouped
from warpline.trace.schema import Dataflow
from warpline.trace.steps.choice import on_device
from warpline.trace.table import Names
from warpline.trace.trace import Trace

LONGEST_COMPARED = 2_000
"""Outermost ops that are compared one with another where sequences differ; more would take seconds."""


class OpOrder(Struct, frozen=True):
    """Ops in order of (lane, begin), parents before what they call."""

    name: Names
    lane: Int64s
    """Its thread."""
    step: Int64s
    """The step in which it begins; NONE outside."""
    parent: Int64s
    """Position of the enclosing op, or NONE."""

    @classmethod
    def of_trace(cls, trace: Trace) -> OpOrder:
        """The ops of a trace."""
        return cls(trace.ops.name, trace.ops.thread, _steps_of(trace), trace.ops.parent)

    @classmethod
    def of_dataflow(cls, calls: Dataflow) -> OpOrder:
        """The calls of a `dataflow` table: one row per call, in order."""
        return cls(calls.op, calls.lane, calls.step, calls.parent)


def _steps_of(trace: Trace) -> Int64s:
    """The step in which each op begins: between the marks of the profiler, else of the steps that were found on the
    CPU; without either, all ops are one step."""
    ranges, ops = trace.ranges, trace.ops
    marks = ranges[ranges.name.like(PROFILER_STEP) & (ranges.thread != NONE) & (ranges.end_ns != NONE)]
    steps = marks[np.argsort(marks.start_ns, kind="stable")] if len(marks) else trace.all_steps
    if not len(steps) or (not len(marks) and on_device(trace.all_steps)):
        return np.zeros(len(ops), np.int64)
    return containing(steps.start_ns, steps.end_ns, ops.start_ns)


def same_ops(mine: OpOrder, others: OpOrder) -> Int64s:
    """For each op, the position of its partner in the step of the other recording that is most like its own; NONE
    where there is none."""
    number = {name: at for at, name in enumerate(dict.fromkeys([*mine.name.words, *others.name.words]))}
    own, other = (order.name.numbers(number.__getitem__) for order in (mine, others))
    found = np.full(len(own), NONE, np.int64)
    candidates = [_lanes(others, step) for step in np.unique(others.step[others.step != NONE]).tolist()]
    for step in np.unique(mine.step[mine.step != NONE]).tolist():
        best: list[tuple[Int64s, Int64s]] = []
        for lanes in candidates:
            pairs = [_matched(a, b, own, other, mine.parent, others.parent)
                     for a, b in _partners(_lanes(mine, step), lanes, own, other)]  # fmt: skip
            if sum(len(a) for a, _ in pairs) >= sum(len(a) for a, _ in best):
                best = pairs
        for a, b in best:
            found[a] = b
    return found


def _lanes(order: OpOrder, step: int) -> list[Int64s]:
    """The ops of a step, thread by thread."""
    rows = np.flatnonzero(order.step == step)
    return [own for _, own in grouped(rows, order.lane[rows])]


def _partners(mine: list[Int64s], others: list[Int64s], own: Int64s, other: Int64s) -> list[tuple[Int64s, Int64s]]:
    """Threads that do the same, by the ops that they have in common; the busiest first."""
    free = [(rows, Counter(other[rows].tolist())) for rows in others]
    pairs = []
    for rows in sorted(mine, key=len, reverse=True):
        ops = Counter(own[rows].tolist())
        common = np.array([(ops & counted).total() for _, counted in free], np.int64)
        if common.any():
            pairs.append((rows, free.pop(int(np.argmax(common)))[0]))
    return pairs


def _matched(
    a: Int64s, b: Int64s, own: Int64s, other: Int64s, parents: Int64s, other_parents: Int64s
) -> tuple[Int64s, Int64s]:
    """Ops of two sequences that are the same: all of them if the names are; else those of outermost ops that are."""
    if np.array_equal(own[a], other[b]):
        return a, b
    roots = np.flatnonzero(~np.isin(parents[a], a)), np.flatnonzero(~np.isin(other_parents[b], b))
    ends = np.append(roots[0], len(a))[1:], np.append(roots[1], len(b))[1:]
    kept_a, kept_b = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for at, to in _same_roots(own[a[roots[0]]], other[b[roots[1]]]):
        inner_a, inner_b = a[roots[0][at] : ends[0][at]], b[roots[1][to] : ends[1][to]]
        length = min(len(inner_a), len(inner_b))
        differs = np.flatnonzero(own[inner_a[:length]] != other[inner_b[:length]])
        same = int(differs[0]) if len(differs) else length
        kept_a.append(inner_a[:same])
        kept_b.append(inner_b[:same])
    return np.concatenate(kept_a), np.concatenate(kept_b)


def _same_roots(a: Int64s, b: Int64s) -> list[tuple[int, int]]:
    """Positions in two sequences of outermost ops that belong together: from both ends, and what is alike between."""
    shorter = min(len(a), len(b))
    differs = np.flatnonzero(a[:shorter] != b[:shorter])
    head = int(differs[0]) if len(differs) else shorter
    left = shorter - head
    differs = np.flatnonzero(a[len(a) - left :][::-1] != b[len(b) - left :][::-1])
    tail = int(differs[0]) if len(differs) else left
    pairs = [(at, at) for at in range(head)]
    middle_a, middle_b = a[head : len(a) - tail].tolist(), b[head : len(b) - tail].tolist()
    if 0 < len(middle_a) <= LONGEST_COMPARED and 0 < len(middle_b) <= LONGEST_COMPARED:
        matcher = SequenceMatcher(None, middle_a, middle_b, autojunk=False)
        for block in matcher.get_matching_blocks():
            pairs += [(head + block.a + at, head + block.b + at) for at in range(block.size)]
    return pairs + [(len(a) - tail + at, len(b) - tail + at) for at in range(tail)]
