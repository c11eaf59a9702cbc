"""Captures the launches of a step once and replays them as a CUDA graph."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np

from warpline import api_names
from warpline.fixes.claim import Claim
from warpline.fixes.evidence import Evidence
from warpline.fixes.model import Advice, Fix, Rule
from warpline.fixes.step_contents import MIN_PER_STEP, StepContents
from warpline.fixes.tryable import TryableChange, no_gpu, no_module
from warpline.replay.bare_step import LAUNCHING
from warpline.replay.costs.cost import PESSIMISTIC
from warpline.replay.graph.model import EdgeKind
from warpline.replay.graph_edit import GraphEdit
from warpline.replay.patterns.growth import grows_over_steps, shapes_change
from warpline.replay.patterns.launch_runs import launch_runs, stays_on_host, waits_often
from warpline.replay.patterns.optimizers import counted_on_the_host
from warpline.replay.patterns.waits import awaited_calls
from warpline.replay.whatif import Prediction
from warpline.trace.arrays import NONE, Bools, Int64s, greatest_of
from warpline.trace.nesting import nearest_marked
from warpline.units import duration, several

MIN_LAUNCHES = 4
"""Fewer launches than this are not worth a graph."""
MIN_STEP_SHARE = 0.05
"""Share of the step; less is not worth a graph."""
MIN_NAMED_SHARE = 0.5
"""Share of the launches that a module or function must have to be named in the advice."""
FRAME = r"^(.+)\((\d+)\): (.+)$"
INSTANCE = r"_\d+$"
"""torch numbers the modules of a class: Block_0, Block_1."""
CAPTURE = (
    "Capture the whole step (in training also loss, backward and optimizer, with capturable=True) after a warm-up on a "
    "side stream: with torch.cuda.graph(graph): out = step(fixed_input); then fixed_input.copy_(x); graph.replay(). "
    "model = torch.compile(model, mode='reduce-overhead') captures the model alone, and a call of it costs about as "
    "much as five linear layers: enough for a large model."
)

STATIC_FIRST = (
    "First give the tensor that grows in every step (a KV cache) a fixed size: model.generate(…, "
    "cache_implementation='static') in transformers, or a buffer of the final length that is written with index_copy_. "
    "A graph cannot be replayed with other shapes. Then capture the forward pass: model.forward = "
    "torch.compile(model.forward, mode='reduce-overhead', fullgraph=True)."
)
PAD_FIRST = (
    "First pad inputs to fixed lengths, and capture one graph for each. Shapes differ from step to step, and a graph "
    "is replayed with those of its capture; torch.compile(model, mode='reduce-overhead') captures one for each shape "
    "that it meets."
)
DECIDING = ("aten::is_nonzero",)
"""Ops with which Python decides what to launch next (`if` on a tensor): a graph cannot read their result later."""


def apply(edit: GraphEdit, case: int) -> int:
    """Replace the CPU time of each piece by one graph launch, and the gaps by those between graph nodes."""
    labelled = edit.labelled
    if case != PESSIMISTIC:
        _read_later(edit)
    graph = edit.graph
    capturable = ~labelled.once(counted_on_the_host)
    calls_of_work = labelled.call_of_work[labelled.work]
    launches = np.zeros(len(graph), np.int64)
    alive = (calls_of_work != NONE) & ~edit.gone[labelled.work]
    np.add.at(launches, calls_of_work[alive], 1)
    already = labelled.calls_like(api_names.GRAPH_LAUNCH)
    replayed = labelled.host.graph_launch.plus(labelled.host.op)  # Python calls replay() as it calls an op
    captured, stays = np.zeros(len(graph), bool), stays_on_host(edit)
    for run in launch_runs(edit, capturable):
        count = int(launches[run].sum())
        if count < MIN_LAUNCHES or already[run].any():
            continue
        first = int(run[np.flatnonzero(launches[run] > 0)[0]])
        graph.duration[run] = 0.0
        graph.duration[first] = replayed.at(case) + count * labelled.host.graph_node.at(case)
        _take_begin(edit, run, stays)
        captured[run] = True
    inside = np.zeros(len(graph), bool)
    inside[labelled.work[alive]] = captured[calls_of_work[alive]]
    gaps = (graph.edge_kind == EdgeKind.STREAM) & inside[graph.edge_to]
    graph.lag[gaps] = np.minimum(graph.lag[gaps], labelled.device.graph_gap.at(case))
    return int(inside.sum())


def _read_later(edit: GraphEdit) -> None:
    """Remove waits after which the step launches more, unless the step waits repeatedly."""
    labelled, graph = edit.labelled, edit.graph
    calls = awaited_calls(labelled)
    inputs = labelled.root_op[labelled.is_copy & labelled.copy_kind.equal("HtoD")]
    calls = calls[(labelled.step[calls] != NONE) & ~np.isin(labelled.root_op_of_call[calls], inputs[inputs != NONE])]
    calls = calls[~np.isin(labelled.root_op_of_call[calls], labelled.ops_named(*DECIDING))]
    if not len(calls) or waits_often(edit, stays_on_host(edit)):
        return
    steps = int(labelled.step.max()) + 2
    last = greatest_of(steps, labelled.step[labelled.work], labelled.launch_moment[labelled.work])
    edit.stop_waiting(calls[graph.measured_end[calls] < last[labelled.step[calls]]])


def _take_begin(edit: GraphEdit, run: Int64s, stays: Bools) -> None:
    """Remove the captured step's CPU time before its first call, in a segment that began in the previous step."""
    labelled, graph = edit.labelled, edit.graph
    segment = int(labelled.segment_of_call[run[0]])
    if segment == NONE or labelled.step[segment] >= labelled.step[run[0]] or stays[segment]:
        return
    begin = int(labelled.trace.steps_in_view.start_ns[labelled.step[run[0]]])
    length = graph.measured_end[segment] - graph.measured_start[segment]
    graph.duration[segment] *= (begin - graph.measured_start[segment]) / max(length, 1)


def launch_bound(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """The device waits for launches; a CUDA graph launches the whole step at once."""
    captured = evidence.changed(FIX.name).relaunched
    launches = evidence.per_step(captured)
    share = sum(evidence.bare.idle_ns[cause] for cause in LAUNCHING) / evidence.step_ns
    if share < MIN_STEP_SHARE or launches < MIN_LAUNCHES:
        return None
    growing, changing = evidence.labelled.once(grows_over_steps).any(), shapes_change(evidence.labelled)
    first = "; shapes differ from step to step, and need fixed sizes first" if changing else ""
    first = "; a tensor grows in every step, and needs a fixed size first" if growing else first
    return Claim(
        f"The GPU waits {100 * share:.0f} % of {evidence.noun.one('each', duration(evidence.step_ns))} for the CPU to "
        f"launch {several(launches, 'operation')} of {duration(evidence.time_per_step(captured) / launches)}{first}.",
        evidence.places(captured),
        STATIC_FIRST if growing else PAD_FIRST if changing else _how(evidence, captured),
        most="medium" if growing or changing else "high",
    )


def _how(evidence: Evidence, captured: Bools) -> str | None:
    """General advice, plus the module or function that launches most of the operations; None without frames."""
    for launchers in (_modules(evidence, captured), _functions(evidence, captured)):
        for launcher, count in launchers.most_common(1):
            if count >= MIN_NAMED_SHARE * evidence.in_steps(captured).sum():
                return f"Most operations are launched by {launcher}. {CAPTURE}"
    return None


def _modules(evidence: Evidence, captured: Bools) -> Counter[str]:
    """The outermost nn.Module around the op of each launch."""
    python = evidence.trace.python
    is_module = python.module.codes != NONE
    within = np.append(nearest_marked(python.parent, is_module), NONE)
    around = np.append(nearest_marked(python.parent, is_module & (within[python.parent] == NONE)), NONE)
    modules = python.module.at(around[evidence.trace.ops.frame[evidence.written_ops(captured)]]).texts
    return Counter(f"the module {re.sub(INSTANCE, '', module, count=1)}" for module in modules if module)


def _functions(evidence: Evidence, captured: Bools) -> Counter[str]:
    """The user's function that called the op of each launch, and its first line."""
    ops = evidence.trace.ops[evidence.written_ops(captured)]
    frames = evidence.user_frames.at(ops.thread, ops.start_ns)
    names = (evidence.user_frames.name(frame) for frame in frames.tolist() if frame != NONE)
    return Counter(re.sub(FRAME, r"\3 (\1:\2)", name, count=1) for name in names)


def was_made(before: StepContents, after: StepContents) -> bool:
    """Graph launches appear."""
    return before.calls["graph_launches"] < MIN_PER_STEP <= after.calls["graph_launches"]


FIX = Fix(
    name="cuda_graph",
    words="a CUDA graph",
    summary="The launches of each step are captured once and replayed as a CUDA graph.",
    assumptions=(
        (
            "Shapes and control flow do not change between steps, and inputs are copied into fixed buffers. A tensor "
            "that grows in every step (a KV cache) is first given its final size."
        ),
        "An `if` on a tensor (is_nonzero) decides what is launched next: it stays, and splits the capture.",
        (
            "Results that are read up to three times during the step are read after it, or not at all: the step does "
            "not wait for them. In the worst case it does."
        ),
        (
            "Other waits (all of them, if a step has more than three), blocking copies and long CPU segments stay and "
            "split the capture into several graphs. A piece of fewer than four launches is not captured."
        ),
        ("An optimizer that loops over parameters and keeps its step count on the host is not captured."),
        "Kernels keep their durations; the gap between them is that of CUDA graph nodes.",
    ),
    effort="few_lines",
    apply=apply,
    findings=(
        Rule(
            name="launch_bound",
            cause="dispatch",
            summary="the GPU waits for launches",
            look=launch_bound,
            advice=Advice(
                pytorch=CAPTURE,
                cuda=(
                    "Capture the step once, cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) to "
                    "cudaStreamEndCapture, instantiate it with cudaGraphInstantiate, and call cudaGraphLaunch in "
                    "every step; copy new inputs into the same buffers."
                ),
                other="Launch the step as one compiled program or CUDA graph (jax.jit of the whole step).",
            ),
            specific=False,
        ),
    ),
    needs=("which call launched what", "the CPU's waits"),
    after=("torch_compile",),
    # Nothing can be captured across a wait for the device. A free waits, and so does a copy from pageable memory. What
    # is captured must be planned and loaded before.
    first=("warm_up", "remove_sync", "no_empty_cache", "pin_memory", "coalesce_copies"),
    was_made=was_made,
    implies=("remove_sync", "streams", "prefetch"),
    tried=(
        TryableChange(
            "cuda_graph",
            "the kernels of each module replayed as CUDA graphs",
            "model.compile(backend='cudagraphs', dynamic=False)  # clone what is kept; zero_grad() after step()",
            lambda use: no_gpu(use) or no_module(use),
            compiles=True,
            part="the prediction is of a graph of the whole step; this captures each module alone",
        ),
    ),
)
