"""Removes cold starts: loading, compiling and tuning that happens only in the first steps."""

from __future__ import annotations

import re

import numpy as np

from warpline import api_names
from warpline.estimate import NOTICEABLE_GAIN
from warpline.fixes.claim import Claim, Place
from warpline.fixes.evidence import Evidence
from warpline.fixes.model import Advice, Fix, Rule
from warpline.fixes.step_contents import MAX_LEFT, StepContents
from warpline.replay.costs import shares
from warpline.replay.graph.model import NodeKind
from warpline.replay.graph_edit import Effect, GraphEdit
from warpline.replay.labelled_graph import LabelledGraph
from warpline.replay.patterns.preparation import (
    HostSpan,
    planned_in_many_steps,
    planning_ops,
    without_captures,
    without_compiling,
    without_preparing,
    without_tables,
    without_trials,
)
from warpline.replay.replay import UNEVEN, are_uneven
from warpline.replay.simulate import simulate
from warpline.replay.whatif import Prediction
from warpline.trace.arrays import NEVER, NONE, Bools, Floats, Int64s, grouped
from warpline.trace.schema import Ops
from warpline.trace.steps.choice import ColdSteps, on_device
from warpline.trace.trace import Trace
from warpline.units import duration, several

LOADING = (
    r"^(cu|hip)(Module|Library)(Load|Get|Unload)|^(cuda|hip)FuncGet|Occupancy|^cu(Kernel|Func)Get|GetProcAddress"
    r"|^(cuda|hip)(Malloc|Free)|^(cuda|hip)MemGetInfo"
)
"""Calls that load code or query it, that fill the allocator's cache, or that free the memory of trial runs."""
WARM_CALLS = 4.0
"""A call that takes this many times the median of its name was loading something."""
MIN_STEP_SHARE = 0.05
MAX_OVER_ACCOUNT = 1.5
"""Steps are called not warmed up for no more than so many times the cold start in the account of the same steps."""
CERTAIN_GAIN = 2.0
"""A replayed gain this large needs no idle time as evidence: compiling may overlap with kernels."""
WORTH_COUNTING_IN_OPS = 2.0
"""Segments and calls that lose less than this many ops take are ordinary dispatch, which is faster on a warm CPU."""
MIN_COLD_SHARE = 0.5
"""A long step is long because it is cold if removing the cold work removes this share of its excess over the median."""


def apply(edit: GraphEdit, case: int) -> int:
    """Remove preparations, and shrink long segments and calls to their warm duration."""
    labelled, graph = edit.labelled, edit.graph
    if _has_no_other_step(labelled.trace):
        # A warm program does not load again, and does everything else as before.
        edit.effect = Effect.CERTAIN
        return without_preparing(edit, case)
    lengths = labelled.marks.lengths(graph, simulate(graph))
    planning = planning_ops(labelled, case)
    gone = without_captures(edit)
    every = len(gone) >= labelled.step_count / 2 or planned_in_many_steps(labelled, planning, lengths)
    if not (are_uneven(lengths) or every or gone):
        # The steps in view are warm; cold ones were set aside, and go.
        if labelled.trace.cold is None:
            return 0
        edit.effect = Effect.OUTSIDE_STEPS
        return labelled.trace.cold.count
    before = edit.graph.duration.copy()
    gone += without_compiling(edit)
    gone += without_trials(edit)
    without_tables(edit, planning)
    graph = edit.graph
    longest = 0.0 if every else labelled.host.longest_dispatch.at(case)
    long = labelled.in_steps & (labelled.input_share < 0.3) & (graph.duration > longest)
    segments = np.flatnonzero((graph.kind == NodeKind.SEGMENT) & long)
    warm = _warm_segments(edit, segments, gone, case)
    changed = int((warm < graph.duration[segments]).sum())
    edit.shorten(segments, warm)
    changed += _warm_calls(edit, case)
    if not every:
        counted = _warm_enough(lengths, labelled.marks.lengths(graph, simulate(graph)))
        if counted.all() and not (gone or edit.gone.any()):
            graph.duration[:] = before
            return 0
        edit.counted = counted
        step_of = _step_that_follows(labelled)
        _take_warmest(edit, before, np.flatnonzero(counted & _untouched(labelled, gone)), step_of)
    return len(gone) + changed


def _untouched(labelled: LabelledGraph, gone: list[HostSpan]) -> Bools:
    """Steps in which no removed node starts."""
    starts = labelled.trace.steps_in_view.start_ns
    result = np.ones(labelled.step_count, bool)
    begins = np.array([span.start_ns for span in gone], np.int64)
    result[np.searchsorted(starts, begins, side="right") - 1] = False
    return result


def _take_warmest(edit: GraphEdit, before: Floats, steps: Int64s, step_of: Int64s) -> None:
    """Host times of warm steps: the minimum of each part over equal steps, because later steps are only warmer."""
    labelled, graph = edit.labelled, edit.graph
    alike: dict[tuple[tuple[int, ...], ...], list[Int64s]] = {}
    host = graph.of_kinds(NodeKind.SEGMENT, NodeKind.CALL, NodeKind.RELEASE)
    for step in steps.tolist():
        nodes, work = np.flatnonzero(host & (step_of == step)), np.flatnonzero(labelled.is_work & (step_of == step))
        nodes = nodes[np.argsort(graph.lane[nodes], kind="stable")]
        calls, kernels = labelled.call_name.codes[nodes], labelled.name.codes[work]
        alike.setdefault((tuple(calls.tolist()), tuple(kernels.tolist())), []).append(nodes)
    for group in alike.values():
        graph.duration[np.array(group)] = before[np.array(group)].min(axis=0)


def _step_that_follows(labelled: LabelledGraph) -> Int64s:
    """The step of each node; host time that spans two steps belongs to the later one. NONE after the last step."""
    result, marks = labelled.step.copy(), labelled.marks.node
    on_cpu = ~labelled.is_work[marks]
    result[marks[on_cpu]] = np.append(np.arange(len(marks) - 1), NONE)[on_cpu]
    return result


def _warm_enough(before: Floats, after: Floats) -> Bools:
    """The steps that show how long a warm step takes: without those that are long mostly because they are cold."""
    usual = float(np.median(before))
    return (before <= UNEVEN * usual) | (before - after < MIN_COLD_SHARE * (before - usual))


def _has_no_other_step(trace: Trace) -> bool:
    """Whether there is no second step to compare with: then only what is known to load or compile is cold."""
    return len(trace.all_steps) < 2 and trace.cold is None


def _warm_segments(edit: GraphEdit, nodes: Int64s, gone: list[HostSpan], case: int) -> Floats:
    """Warm duration of CPU segments: the dispatch of their ops, and the program's own time outside ops."""
    labelled, graph = edit.labelled, edit.graph
    ops = _remaining(labelled.trace.ops, gone)
    regions = ops[ops.name.like(api_names.COMPILED_REGION)]
    calls = labelled.call_of_work[labelled.work]
    launching = np.isin(graph.before[nodes], graph.row[calls[calls != NONE]])
    host, count = labelled.host, _within(labelled, nodes, ops)
    # An op that launches nothing, such as a view, costs about as much as a small call.
    warm = np.where(launching, host.op.at(case), host.call.at(case) * (1 + count))
    warm += host.region.at(case) * _within(labelled, nodes, regions)
    return shares.SECOND_RUN.at(case) * warm + _begins(edit, nodes) + _own_work(edit, nodes)


def _begins(edit: GraphEdit, segments: Int64s) -> Floats:
    """Python time before a step's first op, unless a compiler runs there: the minimum over the steps is warm."""
    labelled, steps = edit.labelled, edit.labelled.trace.steps_in_view
    ops = labelled.trace.ops
    if not len(steps) or on_device(steps) or ops.name.like(api_names.COMPILED_REGION).any():
        return np.zeros(len(segments))
    thread, starts, ends = int(steps.thread[0]), steps.start_ns, steps.end_ns
    first = np.sort(ops.start_ns[ops.thread == thread])
    until = np.append(first, NEVER)[np.searchsorted(first, starts)]
    share = labelled.covered(starts, np.minimum(until, ends), np.full(len(starts), thread))[segments]
    begin = edit.graph.duration[segments] * share
    least = float(begin[begin > 0].min(initial=labelled.host.own_work.expected))
    return np.minimum(begin, least)


def _remaining(ops: Ops, gone: list[HostSpan]) -> Ops:
    """The ops that do not start inside a removed segment."""
    inside = np.zeros(len(ops), bool)
    for span in gone:
        inside |= (ops.thread == span.thread) & (ops.start_ns >= span.start_ns) & (ops.start_ns < span.end_ns)
    return ops[~inside]


def _own_work(edit: GraphEdit, segments: Int64s) -> Floats:
    """Long CPU time outside ops, as far as most steps have it."""
    labelled = edit.labelled
    outside = edit.graph.duration[segments] * (1 - labelled.op_share[segments])
    outside = np.where(outside > labelled.host.own_work.expected, outside, 0.0)
    totals = np.zeros(labelled.step_count + 1)
    np.add.at(totals, np.where(labelled.step[segments] == NONE, labelled.step_count, labelled.step[segments]), outside)
    usual = float(np.median(totals[:-1]))
    return outside * np.minimum(1.0, usual / np.maximum(totals, 1.0))[labelled.step[segments]]


def _within(labelled: LabelledGraph, segments: Int64s, ops: Ops) -> Floats:
    """Number of ops in each segment; the start and the end of an op count one half each."""
    graph, result = labelled.graph, np.zeros(len(segments))
    for lane, places in grouped(np.arange(len(segments)), graph.lane[segments]):
        own = ops[ops.thread == lane]
        moments = np.sort(np.concatenate([own.start_ns, own.end_ns]))
        begin, end = graph.measured_start[segments[places]], graph.measured_end[segments[places]]
        result[places] = (np.searchsorted(moments, end) - np.searchsorted(moments, begin)) / 2
    return result


def _warm_calls(edit: GraphEdit, case: int) -> int:
    """Shorten calls that load code to almost nothing, and launches and slow calls to their usual time."""
    labelled, graph = edit.labelled, edit.graph
    names, inside = labelled.call_name, (graph.kind == NodeKind.CALL) & labelled.in_steps
    before, host, slower = graph.duration.copy(), labelled.host, shares.SECOND_RUN.at(case)
    for name in names[inside].present():
        calls = np.flatnonzero(inside & names.equal(name))
        usual = float(np.median(graph.duration[calls]))
        if re.search(LOADING, name):
            edit.shorten(calls, host.call.at(case))
        elif re.search(api_names.GRAPH_LAUNCH, name):
            kernels = np.bincount(labelled.trace.gpu.api_id + 1, minlength=len(labelled.trace.api) + 1)
            nodes = kernels[graph.row[calls] + 1].astype(np.float64)
            edit.shorten(calls, host.graph_launch.at(case) + nodes * host.graph_node.at(case))
        elif re.search(f"{api_names.KERNEL_LAUNCH}|{api_names.MEMSET}", name):
            edit.shorten(calls, slower * host.launch.at(case))
        else:
            edit.shorten(calls[graph.duration[calls] > max(WARM_CALLS * usual, host.longest_dispatch.expected)], usual)
    within = labelled.call_of_work[labelled.copy_kind.equal("DtoD")]
    within = within[(within != NONE) & inside[within]]
    edit.shorten(within, slower * host.copy_call.at(case))
    return int((graph.duration < before).sum())


def cold_start(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Steps in which code is still being loaded, compiled or tuned."""
    if evidence.trace.cold is not None and prediction.gain.expected < NOTICEABLE_GAIN:
        return _once(evidence.trace.cold)
    if _has_no_other_step(evidence.trace):
        return _in_recording(evidence, prediction)
    cold = evidence.idle["cold_start"] / evidence.steps
    change, labelled = evidence.changed(FIX.name), evidence.labelled
    # No op takes this long to dispatch, so the time saved in such segments was compiling or planning.
    long = change.host & (change.saved_ns > labelled.host.long_work.expected) & (labelled.op_share > MIN_COLD_SHARE)
    cold = max(cold, float(change.saved_ns[evidence.in_steps(long)].sum()) / evidence.steps)
    if cold < MIN_STEP_SHARE * evidence.step_ns and prediction.gain.expected < CERTAIN_GAIN:
        return None
    host = evidence.in_steps(change.host & (change.saved_ns > 0))
    saved = float(change.saved_ns[host].sum()) / evidence.steps
    host &= change.saved_ns > WORTH_COUNTING_IN_OPS * labelled.host.launched_op.expected
    segments = host & (labelled.graph.kind == NodeKind.SEGMENT)
    calls, tried = host & ~segments, change.work & change.gone
    trials = f", and {several(evidence.per_step(tried), 'kernel')} run only for tuning" if tried.any() else ""
    counted = (
        f"({several(evidence.per_step(segments), 'long CPU segment')} and "
        f"{several(evidence.per_step(calls), 'slow call')}){trials}"
    )
    account = evidence.idle["cold_start"] / evidence.steps
    if saved <= MAX_OVER_ACCOUNT * account:
        said = (
            f"The steps are not warmed up: each spends {duration(saved)} of CPU time on loading, compiling or tuning "
            f"{counted}."
        )
    else:
        said = (
            f"The steps prepare what could be ready before them: each spends {duration(saved)} of CPU time in ops that "
            f"take far longer than their launches, as planning, tuning and capturing do {counted}. The account of idle "
            f"time has {duration(account)} of it as a cold start, and the rest as dispatch."
        )
    return Claim(said, evidence.host_places(host, change.saved_ns))


def _once(cold: ColdSteps) -> Claim | None:
    """Cold steps that the recording has once; the gains of all fixes count from the warm ones."""
    if cold.once_ns < MIN_STEP_SHARE * cold.recorded_ns:
        return None
    if cold.count > 1:
        which = f"{'The first' if not cold.first else f'From step {cold.first} on,'} {cold.count} steps are"
    else:
        which = f"{'The first step' if not cold.first else f'Step {cold.first}'} is"
    return Claim(
        f"{which} cold: {duration(cold.took_ns)}, which is {duration(cold.once_ns)} more than warm "
        f"{'steps' if cold.count > 1 else 'ones'} take. That is lost once, not in every step.",
        tuple(Place(name, None, None, 1) for name, _ in cold.ops),
        once_ns=cold.once_ns,
    )


def _in_recording(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """A recording of one step or of none: what its launching threads load and compile while the device is idle."""
    idle, window = evidence.idle["cold_start"], evidence.trace.window.length_ns
    if idle < MIN_STEP_SHARE * window or prediction.gain.expected < NOTICEABLE_GAIN:
        return None
    change = evidence.changed(FIX.name)
    host = change.host & (change.saved_ns > 0)
    calls = host & (evidence.labelled.graph.kind == NodeKind.CALL)
    return Claim(
        f"The GPU is idle for {duration(idle)} of the {duration(window)} recorded while code is loaded, compiled or "
        f"tuned ({several(float(calls.sum()), 'slow call')}); that happens once.",
        evidence.host_places(host, change.saved_ns),
        once_ns=idle,
    )


def was_made(before: StepContents, after: StepContents) -> bool:
    """The same kernels without cold steps, or without a cold start that took half of the step."""
    if before.kernels != after.kernels:
        return False
    old, new = before.idle_ns["cold_start"], after.idle_ns["cold_start"]
    return before.cold_steps > after.cold_steps == 0 or (2 * old >= before.step_ns and new <= MAX_LEFT * old)


FIX = Fix(
    name="warm_up",
    words="a warm-up",
    summary="Loading, compiling and tuning happen before the measured steps.",
    assumptions=(
        (
            "Long CPU segments inside ops, slow first calls, module loading, graph capture and kernel autotuning come "
            "from cold starts; data loading does not."
        ),
        (
            "Steps recorded after the cold ones are the first warm ones. Among similar steps, each part takes its "
            "minimum. If every step is cold, a warm step takes the dispatch time of its ops plus the remaining "
            "operations; in the worst case three times that dispatch time."
        ),
        (
            "Cold steps that the recording has once are no part of the step time: gains count from the warm steps. In "
            "a recording of one step or of none, only time that is known to load or compile goes."
        ),
    ),
    effort="few_lines",
    apply=apply,
    findings=(
        Rule(
            name="cold_start",
            cause="cold_start",
            summary="code is still being loaded, compiled or tuned in the measured steps",
            look=cold_start,
            least_gain=0.0,
            advice=Advice(
                pytorch=(
                    "Run a few steps of every shape before the measured steps (torch.profiler.schedule(wait=1, "
                    "warmup=3, active=5)); capture graphs when the program starts; keep compiled code "
                    "(TORCHINDUCTOR_CACHE_DIR); keep shapes fixed or torch.compile(model, dynamic=True)."
                ),
                cuda=(
                    "Launch every kernel once, and create handles, plans and workspaces, before the measured "
                    "loop; CUDA_MODULE_LOADING=EAGER loads all code at startup."
                ),
                other=(
                    "Run a few steps of every shape before the measured steps, and keep the compiler's cache "
                    "between runs."
                ),
                neutral="Run the loop once before the measured part, so that code and libraries are loaded.",
            ),
        ),
    ),
    needs=("steps", "CPU ops or API calls, and their times"),
    after=(),
    was_made=was_made,
    implies=("prefetch",),
    not_tried="it changes the start, not the step",
)
