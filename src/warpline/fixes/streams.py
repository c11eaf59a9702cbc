"""Runs copies of results, and small kernels, on separate streams."""

from __future__ import annotations

import numpy as np

from warpline.fixes.claim import Claim
from warpline.fixes.evidence import Evidence
from warpline.fixes.model import Advice, Fix, Rule
from warpline.fixes.step_contents import StepContents
from warpline.replay.costs.cost import PESSIMISTIC
from warpline.replay.graph.model import EdgeKind
from warpline.replay.graph_edit import GraphEdit
from warpline.replay.labelled_graph import LabelledGraph
from warpline.replay.whatif import Prediction
from warpline.trace.arrays import NONE, Bools, Int64s
from warpline.units import count, duration, several

SMALL_GRID_SHARE = 0.25
"""A kernel whose blocks fill at most this share of the SMs leaves room for a concurrent one."""
DEFAULT_SMS = 108
MIN_STEP_SHARE = 0.03


def apply(edit: GraphEdit, case: int) -> int:
    """Detach copies; except in the worst case, run small kernels side by side too."""
    labelled = edit.labelled
    usable = labelled.in_steps & ~edit.gone
    copies = usable & labelled.is_copy & labelled.copy_kind.equal("DtoH")
    chosen = np.flatnonzero(copies)
    edit.detach(chosen)
    if case == PESSIMISTIC:
        return len(chosen)
    limit = SMALL_GRID_SHARE * _sms(labelled)
    blocks = _blocks(labelled)
    small = usable & labelled.is_kernel & (blocks > 0) & (blocks <= limit) & ~labelled.kernels("comm")
    # A shorter one costs more to launch on another stream than it gains.
    small &= edit.graph.duration >= labelled.host.long_kernel.expected
    return len(chosen) + _side_by_side(edit, small, blocks, limit / SMALL_GRID_SHARE)


def _sms(labelled: LabelledGraph) -> int:
    sms = labelled.trace.devices.sm_count
    known = sms[sms != NONE]
    return int(known[0]) if len(known) else DEFAULT_SMS


def _blocks(labelled: LabelledGraph) -> Int64s:
    return labelled.work_number("grid_x") * labelled.work_number("grid_y") * labelled.work_number("grid_z")


def why_nothing(evidence: Evidence) -> str:
    """The kernels fill the GPU already, or are too short or too few of a kind."""
    labelled, limit = evidence.labelled, SMALL_GRID_SHARE * _sms(evidence.labelled)
    kernels = np.flatnonzero(labelled.in_steps & labelled.is_kernel)
    time, blocks = labelled.graph.duration[kernels], _blocks(labelled)[kernels]
    full = float(time[blocks > limit].sum()) / max(float(time.sum()), 1.0)
    return (
        f"nothing is copied to the host, and kernels that fill the GPU take {full:.0%} of the kernels' time: "
        f"their blocks keep more than a quarter of its {_sms(labelled)} SMs busy, so that a second stream finds no room"
    ).replace("%", " %")


def _side_by_side(edit: GraphEdit, small: Bools, blocks: Int64s, sms: float) -> int:
    """Run repeats of the same small kernel concurrently: they take the longest one's time per full wave."""
    labelled, graph, changed = edit.labelled, edit.graph, 0
    for lane in np.unique(graph.lane[small]).tolist():
        nodes = labelled.work_of_lane[lane]
        # Each node that is not small is alone.
        labels = np.where(small[nodes], labelled.name.codes[nodes], NONE - 1 - np.arange(len(nodes)))
        for run in np.split(nodes, np.flatnonzero((np.diff(labels) != 0) | (np.diff(labelled.step[nodes]) != 0)) + 1):
            if len(run) < 2 or not small[run].all():
                continue
            rounds = np.ceil(blocks[run].sum() / sms)
            graph.duration[run[1:]] = 0.0
            graph.duration[run[0]] = rounds * labelled.graph.duration[run].max()
            graph.lag[(graph.edge_kind == EdgeKind.STREAM) & np.isin(graph.edge_to, run[1:])] = 0.0
            changed += len(run)
    return changed


def results_not_overlapped(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Results copied back on the compute stream that could overlap with kernels."""
    copies = evidence.changed(FIX.name).moved
    time = evidence.exposed_per_step(copies)
    if time < MIN_STEP_SHARE * evidence.step_ns:
        return None
    return Claim(
        f"Copies to the host run on the compute stream: {count(evidence.per_step(copies))} {evidence.noun.per}, "
        f"{duration(evidence.time_per_step(copies))}, of which {duration(time)} with no kernel running.",
        evidence.places(copies),
    )


def serialised_streams(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Independent small kernels, one after the other on one stream."""
    change = evidence.changed(FIX.name)
    kernels = change.work & evidence.labelled.is_kernel
    copies = change.moved & evidence.labelled.is_copy
    if (kernels & evidence.labelled.kernels("comm")).any():
        return None
    saved = float(change.saved_ns[evidence.in_steps(kernels)].sum()) / evidence.steps
    if not evidence.per_step(kernels) or saved < evidence.exposed_per_step(copies):
        return None
    return Claim(
        f"The same kernels run one after the other, though each fills at most {100 * SMALL_GRID_SHARE:.0f} % of the "
        f"GPU: {several(evidence.per_step(kernels), 'kernel')} {evidence.noun.per}, "
        f"{duration(evidence.time_per_step(kernels))}.",
        evidence.costliest_places(kernels),
    )


def was_made(before: StepContents, after: StepContents) -> bool:
    """The same kernels on more streams."""
    return after.streams > before.streams and before.kernels == after.kernels


FIX = Fix(
    name="streams",
    words="separate streams",
    summary="Copies to the host, and repeated kernels with small grids, run on separate streams.",
    assumptions=(
        "Only the end of the step waits for the copies; `prefetch` handles copies to the device.",
        (
            "Repeated kernels that leave most of the device free are independent and run concurrently; "
            "in the worst case they do not."
        ),
    ),
    effort="few_lines",
    apply=apply,
    why_nothing=why_nothing,
    findings=(
        Rule(
            name="results_not_overlapped",
            cause="transfer",
            summary="results on the compute stream, with no kernel running",
            look=results_not_overlapped,
            advice=Advice(
                pytorch=(
                    "Copy results on a separate stream into pinned memory: "
                    "copy_stream.wait_stream(torch.cuda.current_stream()), then with "
                    "torch.cuda.stream(copy_stream): host.copy_(x, non_blocking=True); copy_stream.synchronize() "
                    "before the host reads them."
                ),
                cuda=(
                    "cudaMemcpyAsync into pinned memory (cudaMallocHost) on a separate stream, after "
                    "cudaStreamWaitEvent for the kernel that writes the result; cudaStreamSynchronize(copy_stream) "
                    "before the host reads it."
                ),
            ),
            most="medium",
        ),
        Rule(
            name="serialised_streams",
            cause="kernel",
            summary="independent small kernels, one after the other",
            look=serialised_streams,
            advice=Advice(
                pytorch=(
                    "Run independent branches concurrently: for branch, stream in zip(branches, streams): "
                    "stream.wait_stream(torch.cuda.current_stream()), with torch.cuda.stream(stream): "
                    "outs.append(branch(x)), then torch.cuda.current_stream().wait_stream(stream); or batch them "
                    "into one call (torch.bmm)."
                ),
                cuda=(
                    "Launch independent kernels on separate streams (cudaStreamCreateWithFlags(&stream, "
                    "cudaStreamNonBlocking)) and join them with events, or merge them into one launch with a larger "
                    "grid."
                ),
            ),
            most="medium",
        ),
    ),
    needs=("the direction of copies", "the grids of kernels"),
    after=("overlap_comm",),
    was_made=was_made,
    not_tried="which ops do not depend on each other is known only in the source",
)
