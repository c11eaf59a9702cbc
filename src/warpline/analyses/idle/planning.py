"""Ops that plan, compile or tune: they compute on the CPU for longer than any launch takes, and do so once.

A library plans a transform for its length, a network is loaded by its first call, a convolution tries its algorithms:
nothing in a trace names that. What shows it is a long break within an op that launches, where later ops of its name and
shapes have none.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from warpline.intervals import Spans, covered_before, difference, intersection, union
from warpline.trace.arrays import NONE, Bools, combinations
from warpline.trace.schema import Ops
from warpline.trace.trace import Trace

LEAST_STEPS = 2
"""In one step everything happens once."""


def planning_spans(trace: Trace, loading: str, longest_ns: int) -> Iterator[tuple[int, Spans]]:
    """By thread, when ops plan.

    `loading` matches ops that load data; a break between recorded ops and calls is long from `longest_ns` on.
    """
    ops, api = trace.ops, trace.api
    if len(trace.all_steps) < LEAST_STEPS:
        return
    launching = np.zeros(len(api), bool)
    launching[trace.gpu.api_id[trace.gpu.api_id != NONE]] = True
    outermost = ops[(ops.parent == NONE) & (ops.thread != NONE) & ~ops.name.like(loading)]
    has_break, launches = np.zeros((2, len(outermost)), bool)
    breaks: dict[int, Spans] = {}
    for thread in np.unique(outermost.thread).tolist():
        rows = np.flatnonzero(outermost.thread == thread)
        starts, ends = outermost.start_ns[rows], outermost.end_ns[rows]
        within, calls = ops[ops.thread == thread], api[api.thread == thread]
        # Between two of these moments nothing starts or ends: outside calls, the CPU computes.
        moments = np.sort(np.concatenate([within.start_ns, within.end_ns, calls.start_ns, calls.end_ns]))
        long = np.flatnonzero(np.diff(moments) > longest_ns)
        computing = difference(Spans(moments[long], moments[long + 1]), union(calls.start_ns, calls.end_ns))
        breaks[thread] = intersection(computing, union(starts, ends))
        has_break[rows] = covered_before(breaks[thread], ends) > covered_before(breaks[thread], starts)
        launched = np.sort(api.start_ns[launching & (api.thread == thread)])
        launches[rows] = np.searchsorted(launched, ends) > np.searchsorted(launched, starts)
    planning = has_break & launches & _is_first(outermost, has_break)
    for thread, spans in breaks.items():
        rows = np.flatnonzero(planning & (outermost.thread == thread))
        if len(rows):
            yield thread, intersection(spans, union(outermost.start_ns[rows], outermost.end_ns[rows]))


def _is_first(ops: Ops, has_break: Bools) -> Bools:
    """Whether no op of the same name and shapes without a break came before; where all of several have one, the op is
    slow, and not because it is new."""
    _, alike = combinations(ops.name.codes, ops.shapes.codes)
    first_whole = np.full(alike.max(initial=-1) + 1, np.iinfo(np.int64).max)
    np.minimum.at(first_whole, alike[~has_break], ops.start_ns[~has_break])
    count, broken = np.bincount(alike), np.bincount(alike, has_break)
    return ((count == 1) | (broken < count))[alike] & (ops.start_ns < first_whole[alike])
