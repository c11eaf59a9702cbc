"""Merges consecutive small copies into one."""

from __future__ import annotations

import numpy as np

from warpline.fixes.claim import Claim
from warpline.fixes.evidence import Evidence
from warpline.fixes.model import Advice, Fix, Rule
from warpline.fixes.step_contents import MIN_PER_STEP, StepContents, is_about_equal, is_gone
from warpline.replay.costs.cost import PESSIMISTIC
from warpline.replay.graph.model import NodeKind
from warpline.replay.graph_edit import NOTHING, GraphEdit
from warpline.replay.labelled_graph import LabelledGraph
from warpline.replay.patterns.copies import (
    MIN_COPIES,
    SMALL_COPY_BYTES,
    copies_of,
    device_byte_ns,
    in_a_row,
    same_op_waits,
)
from warpline.replay.patterns.loops import gathered_after
from warpline.replay.whatif import Prediction
from warpline.trace.arrays import NONE, Int64s
from warpline.units import count, size

SMALL_PINNED_BYTES = 256 << 10
"""From pinned memory such a copy takes 5 µs and its op 8 to 9 µs, so the calls dominate."""
CUTS = ("aten::unbind", "aten::split", "aten::split_with_sizes", "aten::tensor_split", "aten::chunk")
"""Ops that split a tensor; iterating over a tensor uses the first."""


def apply(edit: GraphEdit, case: int) -> int:
    """The first of each run of small copies in one direction carries all bytes."""
    labelled, changed, removed = edit.labelled, 0, [NOTHING]
    for direction in ("HtoD", "DtoH", "DtoD"):
        copies = copies_of(labelled, direction, edit)
        pinned = labelled.source_memory[copies].equal("Pinned")
        copies = copies[labelled.bytes[copies] <= np.where(pinned, SMALL_PINNED_BYTES, SMALL_COPY_BYTES)]
        for run in in_a_row(labelled, copies):
            size = float(labelled.bytes[run].sum())
            removed.append(run[1:])
            calls = labelled.call_of_work[run[1:]]
            waits = same_op_waits(labelled, calls[calls != NONE])
            edit.remove_calls(np.setdiff1d(waits, calls))
            _remove_loop(edit, run)
            time = labelled.device.smallest_copy.at(case) + size * labelled.device.pinned_byte.at(case)
            edit.graph.duration[run[0]] = max(time, float(edit.graph.duration[run[0]]))
            if labelled.call_of_work[run[0]] != NONE and direction == "HtoD":
                removed.append(_as_one_upload(edit, run, size, case))
            changed += len(run) - 1
    edit.remove_work(np.concatenate(removed))
    return changed


def _as_one_upload(edit: GraphEdit, copies: Int64s, size: float, case: int) -> Int64s:
    """Extra cost of one merged copy on host and device; removes the kernels that gathered the pieces."""
    labelled, first = edit.labelled, int(copies[0])
    call = int(labelled.call_of_work[first])
    if labelled.source_memory.text(first) != "Pinned" or case == PESSIMISTIC:
        edit.graph.duration[call] += size * labelled.host.host_byte.at(case)
    if labelled.root_op[first] in labelled.ops_named("aten::copy_"):
        edit.graph.duration[call] += labelled.host.launched_op.at(case)
        edit.graph.duration[first] += labelled.device.smallest_copy.at(case) + 2 * size * device_byte_ns(labelled, case)
    edit.remove_ops(_cut_before(labelled, call))
    stream = labelled.work[labelled.graph.lane[labelled.work] == labelled.graph.lane[first]]
    return gathered_after(labelled, stream, int(copies[-1]))


def _cut_before(labelled: LabelledGraph, call: int) -> Int64s:
    """Ops that split a tensor between the previous launch and a call, on the call's thread."""
    begin = int(labelled.graph.measured_start[call])
    launched = labelled.launch_moment[labelled.work]
    since = int(launched[launched < begin].max(initial=0))
    ops = labelled.trace.ops
    near = (ops.start_ns > since) & (ops.end_ns <= begin) & (ops.thread == labelled.graph.lane[call])
    return np.flatnonzero(near & (ops.depth == 0) & ops.name.equal(*CUTS))


def _remove_loop(edit: GraphEdit, copies: Int64s) -> None:
    """CPU time from the first to the last copy, if nothing else was launched in between."""
    labelled = edit.labelled
    first, last = labelled.call_of_work[copies[0]], labelled.call_of_work[copies[-1]]
    if NONE in (first, last) or labelled.graph.lane[first] != labelled.graph.lane[last]:
        return
    begin, end = int(labelled.graph.measured_end[first]), int(labelled.graph.measured_end[last])
    moments = labelled.launch_moment[labelled.work]
    between = labelled.work[(moments >= begin) & (moments < end)]
    if len(np.setdiff1d(between, copies)) == 0:
        # A loop that computes its pieces still has to compute them.
        dispatch = labelled.host.longest_dispatch.expected
        inside = (edit.graph.measured_start >= begin) & (edit.graph.measured_start < end) & ~labelled.is_work
        nodes = np.flatnonzero(inside & (labelled.graph.lane == labelled.graph.lane[first]))
        own = np.maximum(edit.graph.duration[nodes] - dispatch, 0.0)
        edit.remove_cpu(int(labelled.graph.lane[first]), begin, end)
        edit.graph.duration[nodes] = np.where(edit.graph.kind[nodes] == NodeKind.SEGMENT, own, 0.0)


def many_small_copies(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Many small copies, each with the overhead of a call."""
    change = evidence.changed(FIX.name)
    copies = change.work & evidence.labelled.is_copy
    copied = evidence.per_step(copies)
    if copied < MIN_COPIES:
        return None
    largest = int(evidence.labelled.bytes[evidence.in_steps(copies)].max())
    return Claim(
        f"{count(copied)} small copies {evidence.noun.per} (at most {size(largest)} each) run one after the other: "
        f"each costs a call, and {count(evidence.per_step(copies & ~change.gone))} would be enough.",
        evidence.places(copies),
    )


def was_made(before: StepContents, after: StepContents) -> bool:
    """Far fewer copies move as many bytes."""
    return any(
        is_gone(before.copied(way)[0], after.copied(way)[0])
        and after.copied(way)[0] >= MIN_PER_STEP
        and is_about_equal(before.copied(way)[1], after.copied(way)[1])
        for way in ("HtoD", "DtoH")
    )


FIX = Fix(
    name="coalesce_copies",
    words="one copy instead of many",
    summary="Consecutive small copies, with nothing launched in between, become one copy.",
    assumptions=(
        (
            "The host gathers pageable pieces into one buffer, at the rate of a copy. Pinned pieces are contiguous or "
            "can be made so; in the worst case they are gathered too."
        ),
        "CPU time between two copies beyond that of four ops belongs to the loop and stays.",
        ("Kernels that gather the pieces on the device disappear; one kernel scatters pieces that went into a tensor."),
        "Ops that split one tensor into the pieces (unbind, split) disappear with the loop.",
    ),
    effort="few_lines",
    apply=apply,
    findings=(
        Rule(
            name="many_small_copies",
            cause="transfer",
            summary="many tiny copies, each with the overhead of a call",
            look=many_small_copies,
            advice=Advice(
                pytorch=(
                    "Gather the pieces into one pinned buffer and copy it in one call: "
                    "torch.stack(pieces).pin_memory().to('cuda', non_blocking=True), then .unbind()."
                ),
                cuda=(
                    "Pack the pieces into one pinned buffer and copy it with one cudaMemcpyAsync; for rows of a "
                    "matrix, cudaMemcpy2DAsync."
                ),
                neutral="Gather the pieces into one pinned buffer and copy it in one call.",
            ),
        ),
    ),
    needs=("the bytes of copies",),
    after=("reduce_before_copy",),
    was_made=was_made,
    implies=("remove_sync", "prefetch", "pin_memory", "batch", "drop_copies", "preallocate", "pad"),
    not_tried="which copies belong together is known only in the source",
)
