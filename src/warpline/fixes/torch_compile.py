"""The model, compiled: fewer kernels, launched without the framework's dispatch."""

from __future__ import annotations

import numpy as np
import polars as pl

from warpline.fixes.claim import Claim
from warpline.fixes.evidence import Evidence
from warpline.fixes.model import WORTH_TRYING_FIRST, Advice, Fix, Rule
from warpline.replay.compiler.chains import fuse, fusible_chains, fusible_kernels
from warpline.replay.compiler.compiled import already_compiled
from warpline.replay.compiler.units import fused
from warpline.replay.patterns.joins import grows
from warpline.replay.patterns.launch_runs import launch_runs
from warpline.replay.patterns.optimizers import in_optimizer
from warpline.replay.scene import Scene
from warpline.replay.whatif import Prediction
from warpline.replay.workbench import NOTHING, Workbench
from warpline.trace.columns import NONE, Bools, Floats, Int64s, integers
from warpline.units import count, duration, several

ACCUMULATING = "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"
MOST_IDLE = 0.1
"""Above, dispatch is the matter, not the kernels."""
MOSTLY = 0.5
"""Where a fix of their own does away with so much of the time of the kernels, they are its matter."""
LEAST_CHAINED_KERNELS, LEAST_KERNELS = 2, 4
"""A step with fewer to fuse, or to launch, is not worth compiling."""
LEAST_IDLE = 0.1
"""Below, the device is the limit, and fusion is a matter of its kernels."""


def apply(bench: Workbench, case: int) -> int:
    """Fuses runs of fusible kernels, then shrinks the dispatch of what remains."""
    scene = bench.scene
    optimizer = scene.once(in_optimizer)
    fusible = scene.once(fusible_kernels) & ~bench.gone & ~optimizer
    extra = np.zeros(len(bench.graph))
    nodes, begins = fusible_chains(scene, fusible)
    gone = fuse(bench, fused(scene, nodes, begins), extra, case) if len(nodes) else NOTHING
    bench.remove_work(gone, dispatch=False)
    return len(gone) + _cheaper_dispatch(bench, case, ~optimizer, fusible, extra)


def _cheaper_dispatch(bench: Workbench, case: int, wanted: Bools, own: Bools, extra: Floats) -> int:
    """Each run of launches costs one call of a compiled region, and each launch that remains what it costs there."""
    scene, graph = bench.scene, bench.graph
    calls = scene.call_of_work[scene.work]
    alive = (calls != NONE) & ~bench.gone[scene.work]
    costs = np.zeros(len(graph))
    costs[calls[alive]] = scene.host.compiled_launch.at(case) + extra[scene.work[alive]]
    # Of the kernels that an op of a library launches, the first bears the cost of asking for it.
    library = np.flatnonzero(alive & ~own[scene.work])
    ops = scene.op[scene.work[library]]
    ops = np.where(ops == NONE, -2 - np.arange(len(ops)), ops)
    costs[calls[library[np.unique(ops, return_index=True)[1]]]] = scene.host.launched_op.at(case)
    changed, left = 0, graph.duration * _left_to_autograd(scene)
    for run in launch_runs(bench, wanted):
        launching = run[costs[run] > 0]
        before = float(graph.duration[run].sum())
        after = scene.host.region.at(case) + float(costs[run].sum() + left[run].sum())
        if after >= before:
            continue
        graph.duration[run] = costs[run] + left[run]
        graph.duration[launching[0] if len(launching) else run[0]] += scene.host.region.at(case)
        changed += len(launching)
    return changed


def _left_to_autograd(scene: Scene) -> Floats:
    """Share of each segment in which autograd hands a gradient to its parameter, or a backward pass from thread to
    thread: no compiled region does that."""
    rows = scene.trace.ops.filter(pl.col("name").cast(pl.String) == ACCUMULATING)
    spans = [tuple(integers(rows[name]) for name in ("start_ns", "end_ns", "thread")), _handed_over(scene)]
    return scene.covered(*(np.concatenate(column) for column in zip(*spans, strict=True)))


def _handed_over(scene: Scene) -> tuple[Int64s, Int64s, Int64s]:
    """When threads that ask for a backward pass wait for autograd's thread to begin, and go on after it has ended:
    starts, ends and threads."""
    starts, ends, threads = scene.op_spans
    outer = scene.roots[:-1] == np.arange(len(starts))
    engine = outer & scene.engine_ops[:-1]
    began, ended = np.sort(starts[engine]), np.sort(ends[engine])
    found = [(NOTHING, NOTHING, NOTHING)]
    for thread in np.setdiff1d(np.unique(threads[outer]), threads[engine]):
        mine = outer & (threads == thread)
        after, before = np.sort(ends[mine])[:-1], np.sort(starts[mine])[1:]
        first, last = np.searchsorted(began, after), np.searchsorted(ended, before) - 1
        passed = np.flatnonzero(first <= last)
        times = after[passed], began[first[passed]], ended[last[passed]], before[passed]
        both = np.concatenate(times[::2]), np.concatenate(times[1::2])
        found.append((*both, np.full(2 * len(passed), thread, np.int64)))
    starts, ends, threads = (np.concatenate(column) for column in zip(*found, strict=True))
    return starts, ends, threads


def unfused_elementwise(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """A busy device that reads and writes the same data again and again: fusion does it once."""
    change = evidence.changed(FIX.name)
    if already_compiled(evidence.scene, change.work):
        return None
    chains = change.work
    if evidence.bare_idle_share >= MOST_IDLE or evidence.per_step(chains) < LEAST_CHAINED_KERNELS:
        return None
    if evidence.time_per_step(chains & _done_away_with(evidence)) >= MOSTLY * evidence.time_per_step(chains):
        return None
    return Claim(
        f"{several(evidence.per_step(chains), 'kernel')} a step ({duration(evidence.time_per_step(chains))}) read and "
        f"write the same data one after the other (elementwise, norms, reductions); fused, they would be "
        f"{count(evidence.per_step(chains & ~change.gone))}.",
        evidence.places(chains),
    )


def _done_away_with(evidence: Evidence) -> Bools:
    """Work that need not be done at all, fused or not: what attention's scores go through, and growing by copying."""
    result = np.zeros(len(evidence.scene.graph), bool)
    for fix, own in (("sdpa", evidence.scene.is_work), ("preallocate", evidence.scene.once(grows))):
        if evidence.gains(fix, WORTH_TRYING_FIRST):
            result |= evidence.changed(fix).work & own
    return result


def uncompiled(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Many small kernels, dispatched one by one: compiled, they are fewer and cheaper to launch."""
    change = evidence.changed(FIX.name)
    if already_compiled(evidence.scene, change.work):
        return None
    launches = change.gone | change.relaunched
    if evidence.per_step(change.work) < LEAST_KERNELS or evidence.bare_idle_share < LEAST_IDLE:
        return None
    return Claim(
        f"{several(evidence.per_step(launches), 'operation')} a step are dispatched one by one; compiled, "
        f"{count(evidence.per_step(change.gone))} of them (elementwise, norms, reductions) are fused with others.",
        evidence.places(launches),
    )


FIX = Fix(
    name="torch_compile",
    words="torch.compile",
    summary=(
        "Chains of elementwise, norm and reduction kernels are fused, and launched without the framework's dispatch."
    ),
    assumptions=(
        (
            "The compiled region is called once forwards and once backwards in each step; a loop whose turns cannot "
            "be fused has its body compiled, which is called in each turn, in the best case the whole; the "
            "optimiser stays as it is."
        ),
        "Threads take as long as before to hand a backward pass to each other.",
        "Reductions are fused with what has the same rows; a few long rows are added up by two kernels.",
        (
            "A fused kernel takes as long as its operations, or as reading its inputs and writing its results, "
            "whichever is longer: intermediate results never exist. Where shapes were not recorded, as one pass "
            "over its tensors."
        ),
        (
            "Matrix products, convolutions and attention keep their kernels and are asked of their libraries one by "
            "one; what adds up in one place keeps its time."
        ),
    ),
    effort="setting",
    apply=apply,
    findings=(
        Rule(
            name="unfused_elementwise",
            cause="kernel",
            summary="a busy GPU that reads and writes the same data again and again",
            look=unfused_elementwise,
            advice=Advice(
                pytorch="model = torch.compile(model), or write the chain as one Triton kernel",
                cuda="Write the chain as one kernel, which reads its inputs and writes its results once.",
                other="Compile the chain (jax.jit, tf.function(jit_compile=True)), or write it as one Triton kernel.",
            ),
            most="medium",
        ),
        Rule(
            name="uncompiled",
            cause="dispatch",
            summary="many small kernels, dispatched one by one",
            look=uncompiled,
            advice=Advice(
                pytorch="model = torch.compile(model); with varying shapes torch.compile(model, dynamic=True)",
                other="Compile the step: jax.jit, tf.function(jit_compile=True).",
            ),
            most="medium",
            specific=False,
        ),
    ),
    needs=("ops, and their shapes", "the chip and its ceilings"),
    after=("fused_optimizer",),
)
