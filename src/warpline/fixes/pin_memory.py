"""Copies from and to pinned memory, which do not block the CPU."""

from __future__ import annotations

import numpy as np

from warpline.capture.trial.use import ProgramUse
from warpline.fixes.claim import Claim
from warpline.fixes.evidence import Evidence
from warpline.fixes.model import Advice, Fix, Rule
from warpline.fixes.step_contents import StepContents, is_about_equal, is_gone
from warpline.fixes.tryable import TryableChange, no_gpu
from warpline.fixes.words import in_place
from warpline.replay.costs.cost import PESSIMISTIC
from warpline.replay.graph_edit import GraphEdit
from warpline.replay.patterns.copies import FEW_NUMBERS_BYTES, SMALL_COPY_BYTES, copies_of, unblock
from warpline.replay.whatif import Prediction
from warpline.trace.arrays import Bools
from warpline.units import duration, several, size

UPLOAD = "DataLoader(…, pin_memory=True) and batch.to('cuda', non_blocking=True)"
DOWNLOAD = "host = torch.empty(shape, pin_memory=True), made once, and host.copy_(x, non_blocking=True) for results"


def apply(edit: GraphEdit, case: int) -> int:
    """Speed up the copies, and let their calls return at once."""
    labelled = edit.labelled
    up, down = copies_of(labelled, "HtoD", edit), copies_of(labelled, "DtoH", edit)
    up = up[labelled.source_memory[up].equal("Pageable") & (labelled.bytes[up] > FEW_NUMBERS_BYTES)]
    down = down[labelled.target_memory[down].equal("Pageable") & (labelled.bytes[down] > SMALL_COPY_BYTES)]
    copies = np.union1d(up, down)
    if not len(copies):
        return 0
    size = labelled.bytes[copies].astype(np.float64)
    new = labelled.device.smallest_copy.at(case) + size * labelled.device.pinned_byte.at(case)
    edit.shorten(copies, new, labelled.floor_ns()[copies])
    unblock(edit, copies, case, keep_waiting=case == PESSIMISTIC)
    return len(copies)


def pageable_copy(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Copies from pageable memory block the CPU and run at a fraction of the bandwidth."""
    labelled = evidence.labelled
    # A small copy carries a single number in either direction, so its wait matters, not its bandwidth.
    up = labelled.is_copy & labelled.copy_kind.equal("HtoD") & labelled.source_memory.equal("Pageable")
    down = labelled.is_copy & labelled.copy_kind.equal("DtoH") & labelled.target_memory.equal("Pageable")
    every = up | down
    up, down = up & (labelled.bytes > FEW_NUMBERS_BYTES), down & (labelled.bytes > SMALL_COPY_BYTES)
    copies = up | down
    if not evidence.per_step(copies):
        return None
    total, downloaded = (
        float(labelled.bytes[evidence.in_steps(nodes)].sum()) / evidence.steps for nodes in (copies, down)
    )
    way = "from and to" if up.any() and down.any() else "from" if up.any() else "to"
    left = evidence.per_step(every & ~copies)
    small = f", beside {several(left, 'small one')}" if left else ""
    return Claim(
        f"{several(evidence.per_step(copies), 'copy', 'copies')} {evidence.noun.per} ({size(total)}, "
        f"{duration(evidence.time_per_step(copies))}{small}) {way} pageable memory: each blocks the CPU until it is "
        "staged.",
        evidence.places(copies),
        "; ".join(
            _advice(evidence, nodes, text)
            for nodes, text in ((up, UPLOAD), (down, DOWNLOAD))
            if evidence.per_step(nodes)
        ),
        # A loader pins batches with a flag. Results need a buffer of their own, and a wait before they are read.
        effort="few_lines" if downloaded > total / 2 else None,
    )


def _advice(evidence: Evidence, copies: Bools, text: str) -> str:
    """Advice for copies in one direction, with the function that makes most of them."""
    places = evidence.places(copies)
    return text + in_place(places[0].spot if places else "")


def was_made(before: StepContents, after: StepContents) -> bool:
    """As many copies of as many bytes, but not from or to pageable memory."""
    return any(
        is_gone(before.copied(way, "Pageable")[1], after.copied(way, "Pageable")[1])
        and before.copied(way, "Pageable")[1] >= SMALL_COPY_BYTES
        and is_about_equal(before.copied(way)[1], after.copied(way)[1])
        and is_about_equal(before.copied(way)[0], after.copied(way)[0])
        for way in ("HtoD", "DtoH")
    )


def why_not_tried(use: ProgramUse) -> str | None:
    """Where it would change nothing."""
    if not use.loaders:
        return "the program makes no DataLoader"
    return no_gpu(use) or ("the loaders are pinned already" if all(one.is_pinned for one in use.loaders) else None)


FIX = Fix(
    name="pin_memory",
    words="pinned memory",
    summary=("Batches are copied from pinned memory without blocking the CPU (pin_memory=True, non_blocking=True)."),
    assumptions=(
        (
            "Copies from or to pageable memory run at the speed of pinned ones. Very small copies to the device do "
            "not change, and of the copies to the host only large ones do."
        ),
        "A loader's worker creates batches in pinned memory, and results stay in pinned memory.",
        "The worst case still blocks until the copy is done.",
    ),
    effort="setting",
    apply=apply,
    findings=(
        Rule(
            name="pageable_copy",
            cause="transfer",
            summary="copies from pageable memory are slow and block the CPU",
            look=pageable_copy,
            advice=Advice(
                pytorch=(f"{UPLOAD}; {DOWNLOAD}"),
                cuda=(
                    "Allocate host buffers once with cudaMallocHost (or cudaHostRegister them) and copy with "
                    "cudaMemcpyAsync on a stream."
                ),
                neutral="Copy from pinned (page-locked) host memory, asynchronously.",
            ),
            least_gain=0.0,
        ),
    ),
    needs=("whether a copy's memory is pinned",),
    after=("even_out",),
    was_made=was_made,
    implies=("remove_sync", "prefetch"),
    tried=(
        TryableChange(
            "pin_memory",
            "loaders with pin_memory=True, and copies to the GPU with non_blocking=True",
            "DataLoader(…, pin_memory=True); x = x.to('cuda', non_blocking=True)",
            why_not_tried,
        ),
    ),
)
