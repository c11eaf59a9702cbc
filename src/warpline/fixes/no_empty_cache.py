"""Keeps the allocator's memory from step to step."""

from __future__ import annotations

import numpy as np

from warpline import api_names
from warpline.fixes.claim import Claim
from warpline.fixes.evidence import Evidence
from warpline.fixes.model import Advice, Fix, Rule
from warpline.fixes.step_contents import StepContents, is_gone
from warpline.fixes.tryable import TryableChange
from warpline.replay.costs.cost import PESSIMISTIC
from warpline.replay.graph_edit import GraphEdit
from warpline.replay.labelled_graph import LabelledGraph
from warpline.replay.patterns.allocator import calls_in_steps, drop_calls, frees_in_steps
from warpline.replay.whatif import Prediction
from warpline.trace.arrays import Floats, Int64s
from warpline.units import duration, several

COLLECTING = r"^<built-in (function|method) collect\b"
"""The frame of gc.collect."""
MIN_BALANCE = 0.5
"""A loop that returns memory frees as often as it allocates, give or take what the recording cuts off. A program that
starts allocates far more, and frees only what libraries tried out."""


def apply(edit: GraphEdit, case: int) -> int:
    """Remove frees and allocations."""
    frees = frees_in_steps(edit.labelled)
    allocations = calls_in_steps(edit.labelled, api_names.ALLOCATION)
    if not _come_again(edit.labelled.graph.measured_start, frees, allocations):
        return 0
    calls = frees if case == PESSIMISTIC else np.union1d(frees, allocations)
    drop_calls(edit, calls)
    if case != PESSIMISTIC:
        edit.graph.duration *= 1 - collecting(edit.labelled)
    return len(calls)


def _come_again(start_ns: Int64s, frees: Int64s, allocations: Int64s) -> bool:
    """Whether memory is allocated again after it was freed: neither a program that starts, nor one that ends."""
    if not len(frees) or not len(allocations):
        return False
    again = int((start_ns[allocations] > start_ns[frees].min()).sum())
    freed = int((start_ns[frees] < start_ns[allocations].max()).sum())
    return again > 0 and freed >= MIN_BALANCE * again


def collecting(labelled: LabelledGraph) -> Floats:
    """Share of each CPU segment within steps in which Python frames show garbage collection."""
    frames = labelled.trace.python
    return np.where(labelled.in_steps, labelled.covered_by(frames[frames.name.like(COLLECTING)]), 0.0)


def allocator_churn(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Memory returned to the driver and allocated again in every step."""
    host = evidence.changed(FIX.name).host
    frees, allocations = (
        host & evidence.labelled.calls_like(pattern) for pattern in (api_names.EMPTY_CACHE_FREE, api_names.ALLOCATION)
    )
    collected = float(np.dot(collecting(evidence.labelled), evidence.labelled.graph.duration)) / evidence.steps
    garbage = f", and garbage collection takes {duration(collected)}" if collected else ""
    return Claim(
        f"Device memory is freed and allocated again within {evidence.noun.one('the')}: "
        f"{several(evidence.per_step(frees), 'free')} and {several(evidence.per_step(allocations), 'allocation')} "
        f"block the CPU for {duration(evidence.time_in_calls(frees | allocations))}{garbage}.",
        evidence.host_places(frees | allocations),
    )


def was_made(before: StepContents, after: StepContents) -> bool:
    """The same kernels without the calls that free memory."""
    return is_gone(before.calls["frees"], after.calls["frees"]) and before.kernels == after.kernels


FIX = Fix(
    name="no_empty_cache",
    words="keeping the allocator's cache",
    summary=("The allocator's cache is not emptied inside the step, so memory is not freed and allocated again."),
    assumptions=(
        "Frees and allocations of device memory within steps come from emptying the cache.",
        ("Garbage collection (gc.collect) disappears too, if Python frames show it."),
        "The worst case keeps the allocations and drops only the frees, with their implicit synchronisation.",
    ),
    effort="setting",
    apply=apply,
    findings=(
        Rule(
            name="allocator_churn",
            cause="memory",
            summary="memory is returned to the driver and allocated again in every step",
            look=allocator_churn,
            advice=Advice(
                pytorch=(
                    "Remove torch.cuda.empty_cache() and gc.collect() from the loop, so that the allocator keeps its "
                    "memory; against fragmentation, set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True."
                ),
                cuda=(
                    "Allocate once before the loop, or use cudaMallocAsync with a pool that keeps its memory "
                    "(cudaMemPoolAttrReleaseThreshold): cudaFree waits for the device."
                ),
                neutral="Keep device memory between steps.",
            ),
        ),
    ),
    needs=("API calls with their times",),
    after=("remove_sync",),
    was_made=was_made,
    implies=("remove_sync",),
    tried=(
        TryableChange(
            "no_empty_cache",
            "torch.cuda.empty_cache() does nothing",
            "remove torch.cuda.empty_cache() from the loop",
            lambda use: None if use.empty_cache_calls else "empty_cache() was not called",
        ),
    ),
)
