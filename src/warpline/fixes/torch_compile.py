"""Compiles the model: fewer kernels, launched without the framework's dispatch."""

from __future__ import annotations

import re

import numpy as np

from warpline import api_names
from warpline.capture.trial.use import ProgramUse
from warpline.estimate import CLEAR_GAIN
from warpline.fixes.claim import Claim
from warpline.fixes.evidence import Evidence
from warpline.fixes.model import Advice, Fix, Rule
from warpline.fixes.step_contents import StepContents
from warpline.fixes.tryable import TryableChange, no_gpu, no_module
from warpline.replay.compiler.chains import fuse, fusible_chains, fusible_kernels
from warpline.replay.compiler.units import fused
from warpline.replay.graph_edit import NOTHING, GraphEdit
from warpline.replay.labelled_graph import LabelledGraph
from warpline.replay.patterns.concatenations import grows
from warpline.replay.patterns.growth import grows_over_steps
from warpline.replay.patterns.launch_runs import launch_runs
from warpline.replay.patterns.optimizers import in_optimizer
from warpline.replay.whatif import Prediction
from warpline.trace.arrays import NONE, Bools, Floats, Int64s
from warpline.units import count, duration, several

STATIC_OR_DYNAMIC = (
    "First give the tensor that grows in every step (a KV cache) a fixed size: model.generate(…, "
    "cache_implementation='static') in transformers. Code for one shape would be compiled again for the next. Then "
    "model.forward = torch.compile(model.forward, mode='reduce-overhead'); without that, torch.compile(model, "
    "dynamic=True)."
)
COMPILE_THE_REST = (
    "Some of the program is compiled already. Compile the modules that run outside it too, with torch.compile(module), "
    "or find out why they are left out: TORCH_LOGS=graph_breaks,recompiles shows it."
)
ACCUMULATING = "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"
ZEROED_GRADIENTS = r"^Optimizer\.zero_grad"
MAX_IDLE_SHARE = 0.1
"""Above this, dispatch is the limit, not the kernels."""
MIN_REMOVED_SHARE = 0.5
"""If another fix removes this share of the kernels' time, they belong to that fix."""
MIN_CHAINED_KERNELS, MIN_KERNELS = 2, 4
"""A step with fewer kernels to fuse, or to launch, is not worth compiling."""
MIN_COMPILED_SHARE = 0.5
"""Share of kernels generated or launched by a compiler from which a program counts as compiled."""
MIN_IDLE_SHARE = 0.1
"""Below this, the device is the limit, and fusion gains by shortening kernels."""


def apply(edit: GraphEdit, case: int) -> int:
    """Fuse runs of fusible kernels, then shorten the dispatch of the rest."""
    labelled = edit.labelled
    outside = labelled.once(in_optimizer) | labelled.within_ranges(ZEROED_GRADIENTS) | labelled.once(_in_graphs)
    outside |= labelled.once(_in_compiled_code)
    fusible = labelled.once(fusible_kernels) & ~edit.gone & ~outside
    extra = np.zeros(len(edit.graph))
    nodes, begins = fusible_chains(labelled, fusible)
    gone = fuse(edit, fused(labelled, nodes, begins), extra, case) if len(nodes) else NOTHING
    edit.remove_work_only(gone)
    return len(gone) + _cheaper_dispatch(edit, case, ~outside, fusible, extra)


def _in_graphs(labelled: LabelledGraph) -> Bools:
    """Launches of CUDA graphs and what they run: kernels of a graph are not dispatched."""
    result = labelled.calls_like(api_names.GRAPH_LAUNCH)
    calls = labelled.trace.gpu.api_id[labelled.graph.row[labelled.work]]
    result[labelled.work] = np.append(labelled.trace.api.name.like(api_names.GRAPH_LAUNCH), False)[calls]
    return result


def _in_compiled_code(labelled: LabelledGraph) -> Bools:
    """What a compiled region launches, with its calls and the CPU time in it."""
    regions = labelled.trace.ops[labelled.trace.ops.name.like(api_names.COMPILED_CODE)]
    result = labelled.once(_compiled) | (labelled.covered_by(regions) > 0)
    calls = labelled.call_of_work[np.flatnonzero(result & labelled.is_work)]
    result[calls[calls != NONE]] = True
    return result


def _cheaper_dispatch(edit: GraphEdit, case: int, wanted: Bools, own: Bools, extra: Floats) -> int:
    """Each run of launches costs one call of a compiled region, plus the compiled cost of each remaining launch."""
    labelled, graph = edit.labelled, edit.graph
    calls = labelled.call_of_work[labelled.work]
    alive = (calls != NONE) & ~edit.gone[labelled.work]
    costs = np.zeros(len(graph))
    costs[calls[alive]] = labelled.host.compiled_launch.at(case) + extra[labelled.work[alive]]
    # The first kernel of a library op carries the cost of calling the library.
    library = np.flatnonzero(alive & ~own[labelled.work])
    ops = labelled.op[labelled.work[library]]
    ops = np.where(ops == NONE, -2 - np.arange(len(ops)), ops)
    costs[calls[library[np.unique(ops, return_index=True)[1]]]] = labelled.host.launched_op.at(case)
    left, region_ns = graph.duration * labelled.once(_left_to_autograd), labelled.host.region.at(case)
    runs = launch_runs(edit, wanted)
    if not runs:
        return 0
    nodes, lengths = np.concatenate(runs), np.array([len(run) for run in runs])
    starts = np.cumsum(lengths) - lengths
    after = costs[nodes] + left[nodes]
    shorter = region_ns + np.add.reduceat(after, starts) < np.add.reduceat(graph.duration[nodes], starts)
    chosen = np.repeat(shorter, lengths)
    launching = costs[nodes] > 0
    # The first launch of a region pays for calling it; a region without launches, its first node.
    place = np.where(launching, np.arange(len(nodes)), len(nodes))
    first = np.minimum.reduceat(place, starts)
    graph.duration[nodes[chosen]] = after[chosen]
    graph.duration[nodes[np.where(first < len(nodes), first, starts)[shorter]]] += region_ns
    return int(launching[chosen].sum())


def _left_to_autograd(labelled: LabelledGraph) -> Floats:
    """Share of each segment in which autograd accumulates a gradient, or hands a backward pass from thread to
    thread: compiling does not remove that."""
    ops = labelled.trace.ops[labelled.ops_named(ACCUMULATING)]
    spans = (ops.start_ns, ops.end_ns, ops.thread), _handed_over(labelled)
    return labelled.covered(*(np.concatenate(column) for column in zip(*spans, strict=True)))


def _handed_over(labelled: LabelledGraph) -> tuple[Int64s, Int64s, Int64s]:
    """When threads that call backward wait for autograd's thread to begin, and continue after it has ended:
    starts, ends and threads."""
    starts, ends, threads = labelled.trace.ops.start_ns, labelled.trace.ops.end_ns, labelled.trace.ops.thread
    outer = labelled.trace.ops.depth == 0
    engine = outer & labelled.engine_ops[:-1]
    began, ended = np.sort(starts[engine]), np.sort(ends[engine])
    own = np.flatnonzero(outer & ~np.isin(threads, threads[engine]))
    ended_by, begun_by = (own[np.lexsort((times[own], threads[own]))] for times in (ends, starts))
    # Between the end of one outermost op of a thread and the start of its next one.
    after, before, thread = ends[ended_by[:-1]], starts[begun_by[1:]], threads[ended_by[:-1]]
    first, last = np.searchsorted(began, after), np.searchsorted(ended, before) - 1
    passed = np.flatnonzero((first <= last) & (thread == threads[begun_by[1:]]))
    return (
        np.concatenate([after[passed], ended[last[passed]]]),
        np.concatenate([began[first[passed]], before[passed]]),
        np.tile(thread[passed], 2),
    )


def unfused_elementwise(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """A busy device that reads and writes the same data repeatedly; a fused kernel does it once."""
    change = evidence.changed(FIX.name)
    if _already_compiled(evidence.labelled, change.work):
        return None
    chains = change.work
    outside = _outside(evidence.labelled)
    if evidence.bare.idle_share >= MAX_IDLE_SHARE or evidence.per_step(chains) < MIN_CHAINED_KERNELS:
        return None
    if evidence.time_per_step(chains & _done_away_with(evidence)) >= MIN_REMOVED_SHARE * evidence.time_per_step(chains):
        return None
    return Claim(
        f"{several(evidence.per_step(chains), 'kernel')} {evidence.noun.per}{outside} "
        f"({duration(evidence.time_per_step(chains))}) read and write the same data one after the other (elementwise, "
        f"norms, reductions); fused, they would be {count(evidence.per_step(chains & ~change.gone))}.",
        evidence.places(chains),
        COMPILE_THE_REST if outside else None,
    )


def _done_away_with(evidence: Evidence) -> Bools:
    """Kernels that other fixes remove: those on attention scores, and concatenations that grow a buffer."""
    result = np.zeros(len(evidence.labelled.graph), bool)
    for fix, own in (("sdpa", evidence.labelled.is_work), ("preallocate", evidence.labelled.once(grows))):
        if evidence.gains(fix, CLEAR_GAIN):
            result |= evidence.changed(fix).work & own
    return result


def uncompiled(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Many small kernels, dispatched one by one; compiled, they are fewer and cheaper to launch."""
    change = evidence.changed(FIX.name)
    if _already_compiled(evidence.labelled, change.work):
        return None
    launches = change.gone | change.relaunched
    if evidence.per_step(change.work) < MIN_KERNELS or evidence.bare.idle_share < MIN_IDLE_SHARE:
        return None
    outside = _outside(evidence.labelled)
    growing = STATIC_OR_DYNAMIC if evidence.labelled.once(grows_over_steps).any() else None
    return Claim(
        f"{several(evidence.per_step(launches), 'operation')} {evidence.noun.per}{outside} are dispatched one by one; "
        f"compiled, {count(evidence.per_step(change.gone))} of them (elementwise, norms, reductions) are fused with "
        "others.",
        evidence.places(launches),
        COMPILE_THE_REST if outside else growing,
    )


def _outside(labelled: LabelledGraph) -> str:
    """Says that a claim is about the rest, where some of the program is compiled."""
    return " outside the compiled code" if (labelled.once(_compiled) & labelled.has_step).any() else ""


def _already_compiled(labelled: LabelledGraph, nodes: Bools) -> bool:
    """Whether at least half of these kernels were generated or launched by a compiler."""
    chosen = nodes & labelled.has_step
    return bool(chosen.any()) and float(labelled.once(_compiled)[chosen].mean()) >= MIN_COMPILED_SHARE


def _compiled(labelled: LabelledGraph) -> Bools:
    """Kernels that were generated or launched by a compiler."""
    launched = labelled.under_op_where(lambda name: re.search(api_names.COMPILED_CODE, name) is not None)
    return launched | labelled.kernels_where(lambda kernel: kernel.library in {"triton", "xla"})


def was_made(before: StepContents, after: StepContents) -> bool:
    """More kernels are fused from several ops."""
    return after.fused > before.fused


def why_not_by_layer(use: ProgramUse) -> str | None:
    """Where there is no list of layers of one class."""
    if not any(module.repeated for module in use.modules):
        return "no model has a list of three or more layers of one class"
    return no_module(use)


FIX = Fix(
    name="torch_compile",
    words="torch.compile",
    words_elsewhere="fusing the kernels",
    summary=(
        "Chains of elementwise, norm and reduction kernels are fused, and launched without the framework's dispatch."
    ),
    assumptions=(
        (
            "The compiled region is called once forward and once backward in each step. If the iterations of a loop "
            "cannot be fused, its body is compiled and called once per iteration (in the best case, the whole loop is "
            "compiled). The optimizer does not change."
        ),
        "Handing a backward pass from thread to thread takes as long as before.",
        "Reductions are fused with kernels over the same rows; a few long rows are reduced by two kernels.",
        (
            "A fused kernel takes as long as its arithmetic, or as reading its inputs and writing its outputs, "
            "whichever is longer; intermediate results never reach memory. Without recorded shapes, it takes one pass "
            "over its tensors."
        ),
        (
            "GEMMs, convolutions and attention keep their kernels and are called one by one; kernels that add to one "
            "address keep their time."
        ),
    ),
    # One line, and then graph breaks, varying shapes and numerics to look after.
    effort="few_lines",
    apply=apply,
    findings=(
        Rule(
            name="unfused_elementwise",
            cause="kernel",
            summary="a busy GPU that reads and writes the same data repeatedly",
            look=unfused_elementwise,
            advice=Advice(
                pytorch="model = torch.compile(model), or write the chain as one Triton kernel",
                cuda="Write the chain as one kernel, which reads its inputs and writes its outputs once.",
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
                pytorch=(
                    "model = torch.compile(model), and functions outside of it that launch much, such as the loss; "
                    "with varying shapes torch.compile(model, dynamic=True)"
                ),
                other="Compile the step: jax.jit, tf.function(jit_compile=True).",
            ),
            most="medium",
            specific=False,
        ),
    ),
    needs=("ops, and their shapes", "the chip and its ceilings"),
    after=("fused_optimizer",),
    # A value that Python reads ends the compiled region, and memory given back to the driver is asked for again in it.
    first=("warm_up", "remove_sync", "no_empty_cache"),
    was_made=was_made,
    replaces_kernels=True,
    implies=("batch", "drop_copies", "preallocate", "pad", "fused_optimizer"),
    tried=(
        TryableChange(
            "torch_compile",
            "each module that the program calls is compiled",
            "model.compile()",
            no_module,
            compiles=True,
            draws_otherwise=True,
        ),
        TryableChange(
            "torch_compile_layers",
            "each layer of the longest list of equal layers is compiled",
            "for layer in model.layers: layer.compile()",
            why_not_by_layer,
            compiles=True,
            draws_otherwise=True,
        ),
        TryableChange(
            "torch_compile_graphs",
            "compiled with mode='reduce-overhead'",
            "model.compile(mode='reduce-overhead')  # clone what is kept; zero_grad() after step()",
            lambda use: no_gpu(use) or no_module(use),
            compiles=True,
            draws_otherwise=True,
        ),
    ),
)
