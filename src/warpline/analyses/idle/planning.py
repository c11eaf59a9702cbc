"""Ops that plan, compile or tune: they compute on the CPU for longer than any launch takes, and do so once.

A library plans a transform for its length, a network is loaded by its first call, a convolution tries its algorithms:
nothing in a trace names that. What shows it is a long break within an op that launches, where later ops of its name and
shapes have none.
"""

from __future__ import annotations

import numpy as np

from warpline.intervals import LaneTimes, Spans, covered_before, difference, intersection, union
from warpline.trace.arrays import NONE, Bools, Int64s, combinations, least_of
from warpline.trace.schema import Ops
from warpline.trace.trace import Trace

LEAST_STEPS = 2
"""In one step everything happens once."""


def planning_spans(trace: Trace, loading: str, longest_ns: int) -> tuple[Int64s, Int64s, Int64s]:
    """When ops plan: threads, starts and ends.

    `loading` matches ops that load data; a break between recorded ops and calls is long from `longest_ns` on.
    """
    ops, api = trace.ops[trace.ops.thread != NONE], trace.api
    if len(trace.all_steps) < LEAST_STEPS or not len(ops):
        return ops.thread[:0], ops.start_ns[:0], ops.end_ns[:0]
    launching = np.zeros(len(api), bool)
    launching[trace.gpu.api_id[trace.gpu.api_id != NONE]] = True
    launching, api = launching[api.thread != NONE], api[api.thread != NONE]
    line = LaneTimes.of(ops.start_ns, ops.end_ns, api.start_ns, api.end_ns)
    of_ops = line.places(ops.thread, ops.start_ns), line.places(ops.thread, ops.end_ns)
    of_calls = line.places(api.thread, api.start_ns), line.places(api.thread, api.end_ns)
    # Between two of these moments of a thread nothing starts or ends: outside calls, the CPU computes.
    moments = np.sort(np.concatenate([*of_ops, *of_calls]))
    long = (np.diff(line.lanes(moments)) == 0) & (np.diff(line.times(moments)) > longest_ns)
    computing = difference(Spans(moments[:-1][long], moments[1:][long]), union(*of_calls))
    outermost = np.flatnonzero((ops.parent == NONE) & ~ops.name.like(loading))
    starts, ends = (places[outermost] for places in of_ops)
    breaks = intersection(computing, union(starts, ends))
    has_break = covered_before(breaks, ends) > covered_before(breaks, starts)
    launched = np.sort(of_calls[0][launching])
    launches = np.searchsorted(launched, ends) > np.searchsorted(launched, starts)
    planning = has_break & launches & _is_first(ops[outermost], has_break)
    return line.parts(intersection(breaks, union(starts[planning], ends[planning])))


def _is_first(ops: Ops, has_break: Bools) -> Bools:
    """Whether no op of the same name and shapes without a break came before; where all of several have one, the op is
    slow, and not because it is new."""
    groups, alike = combinations(ops.name.codes, ops.shapes.codes)
    first_whole = least_of(len(groups), alike[~has_break], ops.start_ns[~has_break])
    count, broken = np.bincount(alike), np.bincount(alike, has_break)
    return ((count == 1) | (broken < count))[alike] & (ops.start_ns < first_whole[alike])
