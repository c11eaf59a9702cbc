"""One-time preparation of a program: graph captures, compilation, planning, autotuning.

All of it leaves host time and GPU activity in a trace, and none of it is part of a warm step.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from warpline import api_names
from warpline.intervals import LaneSpans, Spans, union
from warpline.replay.graph.model import NodeKind
from warpline.replay.graph_edit import GraphEdit
from warpline.replay.labelled_graph import LabelledGraph
from warpline.trace.arrays import NEVER, NONE, Bools, Floats, Int64s, combinations, greatest_of, least_of
from warpline.trace.schema import Ops

MAX_WAITS_IN_OP = 3
"""An op that synchronizes more often than this between its launches is autotuning; ops that need a count from the
device, such as nonzero and unique, synchronize once or twice."""
MAX_OPS_BEFORE_CAPTURE = 8
"""Ops between the last warm-up run of a captured function and its capture, such as setting seeds."""
MIN_PLANNING_SHARE = 0.2
"""Minimum share of the step spent on planning if every step is cold."""


class HostSpan(Struct, frozen=True):
    """An interval of a thread."""

    thread: int
    """Row of `threads`."""
    start_ns: int
    end_ns: int


def without_captures(edit: GraphEdit) -> list[HostSpan]:
    """Removes graph captures from the steps, with the warm-up runs of the same ops."""
    found = [span for thread in edit.labelled.once(_capturing_threads) for span in _captures(edit.labelled, thread)]
    _remove(edit, found)
    return found


def without_compiling(edit: GraphEdit) -> list[HostSpan]:
    """Removes the ops of torch.compile's compiler, up to the compiled code, with the kernels it benchmarks."""
    labelled, found = edit.labelled, list[HostSpan]()
    ops = labelled.trace.ops
    is_compiling = ops.name.like(api_names.COMPILING_OPS)
    for thread in np.unique(ops.thread[is_compiling]).tolist():
        compiling = ops[is_compiling & (ops.thread == thread)]
        roots = _outermost_ops(labelled, thread, ~is_compiling)
        # The time until compiled code runs belongs to the compiler.
        starts = np.append(roots.start_ns, NEVER)
        runs = np.append(roots.name.like(api_names.COMPILED_REGION), False)
        following = np.searchsorted(starts, compiling.end_ns)
        reached = np.where(runs[following], starts[following], compiling.end_ns)
        found += _in_steps(labelled, thread, union(compiling.start_ns, reached))
    _remove(edit, found)
    return found


def without_preparing(edit: GraphEdit, case: int) -> int:
    """Takes out the time in which launching threads are known to load, compile or initialise, and says in how many
    nodes; what only seems long stays."""
    labelled, graph = edit.labelled, edit.graph
    before = graph.duration.copy()
    # Where a thread does nothing while another one prepares, it waits for that one.
    host = np.flatnonzero(np.isin(graph.kind, [NodeKind.SEGMENT, NodeKind.CALL]))
    host = host[np.isin(graph.lane[host], labelled.host_time.launching)]
    asked = LaneSpans.union(graph.lane[host], graph.measured_start[host], graph.measured_end[host])
    for explained in labelled.host_time.explained(asked):
        spans = explained["cold_start"]
        graph.duration *= 1 - labelled.covered(spans.starts, spans.ends, spans.lanes)
        calls = np.flatnonzero((graph.kind == NodeKind.CALL) & np.isin(graph.lane, spans.lanes))
        begin, end = graph.measured_start[calls], graph.measured_end[calls]
        inside = spans.covered_ns(graph.lane[calls], begin, end) / np.maximum(end - begin, 1)
        edit.shorten(calls, np.maximum(graph.duration[calls] * (1 - inside), labelled.host.call.at(case)))
    return int((graph.duration < before).sum())


def without_tables(edit: GraphEdit, planning: Bools) -> None:
    """Removes the copies and memsets that planning ops (rows of `ops`, outermost) issued on the way.

    The copies of a plan's tables have no recorded call; the op's own work has one.
    """
    labelled = edit.labelled
    silent = labelled.work[(labelled.call_of_work[labelled.work] == NONE) & ~labelled.is_kernel[labelled.work]]
    silent = silent[planning[labelled.root_op[silent]] & ~edit.gone[silent]]
    edit.remove_work_only(silent)


def without_trials(edit: GraphEdit) -> list[HostSpan]:
    """Keeps only the launches after the last wait of ops that synchronize repeatedly between launches."""
    labelled = edit.labelled
    work = labelled.work[labelled.in_steps[labelled.work] & ~edit.gone[labelled.work]]
    work = work[(labelled.op[work] != NONE) & (labelled.call_of_work[work] != NONE)]
    trials = [_until_last_wait(edit, calls) for calls in _launches_of_ops(labelled, work)]
    found = [trial for trial in trials if trial is not None]
    _remove(edit, found)
    return found


def _launches_of_ops(labelled: LabelledGraph, work: Int64s) -> list[Int64s]:
    """The calls, in order, of each op with enough launches for autotuning."""
    if not len(work):
        return []
    order = work[np.lexsort((labelled.call_of_work[work], labelled.op[work]))]
    first = np.unique(labelled.op[order], return_index=True)[1]
    return [np.unique(labelled.call_of_work[own]) for own in np.split(order, first[1:]) if len(own) > MAX_WAITS_IN_OP]


def _until_last_wait(edit: GraphEdit, calls: Int64s) -> HostSpan | None:
    """From an op's first call to the last wait between its launches; None if it rarely waits there."""
    graph, labelled = edit.graph, edit.labelled
    lane = int(graph.lane[calls[0]])
    within = np.arange(calls[0], calls[-1])
    waits = within[(graph.kind[within] == NodeKind.RELEASE) & (graph.lane[within] == lane)]
    if len(waits) <= MAX_WAITS_IN_OP:
        return None
    first = np.flatnonzero((graph.kind == NodeKind.CALL) & (labelled.op_of_call == labelled.op_of_call[calls[0]]))[0]
    return HostSpan(lane, int(graph.measured_start[first]), int(graph.measured_end[waits].max()) + 1)


def _remove(edit: GraphEdit, spans: list[HostSpan]) -> None:
    """Removes the host time of threads in these intervals, and the GPU activity they launched."""
    if not spans:
        return
    labelled, graph = edit.labelled, edit.graph
    threads, starts, ends = np.array([(one.thread, one.start_ns, one.end_ns) for one in spans], np.int64).T
    graph.duration *= 1 - labelled.covered(starts, ends, threads)
    # The thread of a GPU operation is the one that launched it.
    thread_of = graph.lane.copy()
    calls = labelled.trace.gpu.api_id[graph.row[labelled.work]]
    thread_of[labelled.work] = np.append(labelled.trace.api.thread, NONE)[calls]
    inside = np.zeros(len(graph), bool)
    for span in spans:
        launched = (labelled.launch_moment >= span.start_ns) & (labelled.launch_moment < span.end_ns)
        inside |= (thread_of == span.thread) & launched
    edit.remove_work_only(np.flatnonzero(inside & labelled.is_work & ~edit.gone))
    calls = np.flatnonzero(inside & graph.of_kinds(NodeKind.CALL, NodeKind.RELEASE))
    edit.graph.duration[calls] = 0.0
    edit.stop_waiting(calls[graph.kind[calls] == NodeKind.CALL])


def _in_steps(labelled: LabelledGraph, thread: int, spans: Spans) -> list[HostSpan]:
    """Those that begin within the steps in view."""
    steps = labelled.trace.steps_in_view
    chosen = np.ones(len(spans), bool)
    if len(steps):
        chosen = (spans.starts >= steps.start_ns[0]) & (spans.starts < steps.end_ns[-1])
    return [HostSpan(thread, int(spans.starts[one]), int(spans.ends[one])) for one in np.flatnonzero(chosen)]


def _outermost_ops(labelled: LabelledGraph, thread: int, wanted: Bools | bool = True) -> Ops:
    """The outermost ops of a thread among the wanted ones, by time."""
    ops = labelled.trace.ops
    return ops[(ops.thread == thread) & (ops.depth == 0) & wanted]


def _capturing_threads(labelled: LabelledGraph) -> list[int]:
    threads = labelled.trace.api.thread[labelled.trace.api.name.like(api_names.BEGIN_CAPTURE)]
    return np.unique(threads[threads != NONE]).tolist()


def _captures(labelled: LabelledGraph, thread: int) -> list[HostSpan]:
    """From the first warm-up run of a captured function (else from the wait before the capture) to its graph."""
    calls = labelled.trace.api[labelled.trace.api.thread == thread]  # by start time
    starts, ends = calls.start_ns, calls.end_ns
    begin, end, making, waiting, working = (
        calls.name.like(pattern)
        for pattern in (
            api_names.BEGIN_CAPTURE,
            api_names.END_CAPTURE,
            api_names.GRAPH_MAKING,
            api_names.DEVICE_WAIT,
            f"{api_names.LAUNCH}|{api_names.COPY}",
        )
    )
    captures, free = [], 0
    for first in np.flatnonzero(begin).tolist():
        closing = np.flatnonzero(end[first:])
        last = first + int(closing[0]) if len(closing) else first
        while last + 1 < len(calls) and making[last + 1]:
            last += 1
        before = first
        for call in range(first - 1, -1, -1):
            if working[call] or starts[call] < free:
                break
            before = call if waiting[call] else before
        start = min(int(starts[before]), _first_rehearsal(labelled, thread, free, int(starts[first]), int(ends[last])))
        captures.append((start, int(ends[last])))
        free = int(ends[last])
    return _in_steps(labelled, thread, Spans(*np.array(captures, np.int64).reshape(-1, 2).T))


def _first_rehearsal(labelled: LabelledGraph, thread: int, free: int, begin: int, end: int) -> int:
    """Start times of the runs that repeat the captured ops directly before the capture, in the same step."""
    steps = labelled.trace.steps_in_view.start_ns
    lower = max(free, int(steps[steps <= begin].max(initial=free)))
    ops = _outermost_ops(labelled, thread)
    starts, names = ops.start_ns, ops.name.texts.tolist()
    first, last = np.searchsorted(starts, [begin, end]).tolist()
    captured = names[first:last]
    runs = [spot for spot in range(first, first - MAX_OPS_BEFORE_CAPTURE - 1, -1) if _ends_with(names, spot, captured)]
    start = begin
    spot = runs[0] if runs else 0
    while _ends_with(names, spot, captured) and starts[spot - len(captured)] >= lower:
        spot -= len(captured)
        start = int(starts[spot])
    return start


def _ends_with(names: list[str], spot: int, wanted: list[str]) -> bool:
    return bool(wanted) and spot >= len(wanted) and names[spot - len(wanted) : spot] == wanted


def planning_ops(labelled: LabelledGraph, case: int) -> Bools:
    """Outermost ops (rows of `ops`, and one for none) that plan or compile: they compute for longer than they dispatch,
    and no other op of their name and shapes does."""
    graph, ops = labelled.graph, labelled.trace.ops
    segments, root = _computing(labelled)
    computing, longest, within = (np.zeros(len(ops) + 1) for _ in range(3))
    np.add.at(computing, root, graph.duration[segments])
    np.maximum.at(longest, root, graph.duration[segments])
    np.add.at(within, labelled.roots, 1.0)
    # Libraries query the driver while they plan: such a call is no dispatch of its own.
    calls = labelled.call_of_work[labelled.work]
    np.add.at(within, labelled.root_op_of_call[np.unique(calls[calls != NONE])], 1.0)
    launches = np.append(ops.name.like(api_names.COMPILING_OPS), False)
    launches[labelled.root_op[labelled.work]] = True
    host = labelled.host
    much = (computing > host.own_work.at(case)) & (computing > host.longest_dispatch.expected * within)
    planning = much | (longest > host.long_work.expected)
    planning &= launches
    planning[NONE] = False
    planning &= ~_done_before(labelled, np.flatnonzero(planning))
    return planning


def planned_in_many_steps(labelled: LabelledGraph, planning: Bools, lengths: Floats) -> bool:
    """Whether half of the steps plan something of their own, and planning takes a large share of the time."""
    segments, root = _computing(labelled)
    planned = segments[planning[root]]
    much = (
        float(labelled.graph.duration[planned].sum())
        > MIN_PLANNING_SHARE * float(np.median(lengths)) * labelled.step_count
    )
    steps = np.unique(labelled.step[planned])
    return much and int((steps != NONE).sum()) >= labelled.step_count / 2


def _computing(labelled: LabelledGraph) -> tuple[Int64s, Int64s]:
    """Segments inside ops that do not load data, and the outermost op of each."""
    inside = (
        (labelled.graph.kind == NodeKind.SEGMENT)
        & labelled.in_steps
        & (labelled.op_share > 0.5)
        & (labelled.input_share < 0.3)
    )
    segments = np.flatnonzero(inside)
    root = labelled.root_op_at(segments)
    return segments[root != NONE], root[root != NONE]


def _done_before(labelled: LabelledGraph, ops: Int64s) -> Bools:
    """Which of these ops other steps repeat with the same shapes: they are slow, but not because they are new."""
    table = labelled.trace.ops[ops]
    step = np.searchsorted(labelled.trace.steps_in_view.start_ns, table.start_ns, side="right")
    groups, alike = combinations(table.name.codes, table.shapes.codes)
    first, last = least_of(len(groups), alike, step), greatest_of(len(groups), alike, step)
    result = np.zeros(len(labelled.trace.ops) + 1, bool)
    result[ops] = (first < last)[alike] & table.shapes.where(bool)
    return result
