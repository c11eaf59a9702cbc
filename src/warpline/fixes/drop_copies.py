"""Removes unnecessary device-to-device copies."""

from __future__ import annotations

import numpy as np

from warpline.fixes.claim import Claim
from warpline.fixes.evidence import Evidence
from warpline.fixes.model import Advice, Fix, Rule
from warpline.fixes.step_contents import StepContents, is_gone
from warpline.fixes.words import listed
from warpline.replay.costs.cost import PESSIMISTIC
from warpline.replay.graph_edit import GraphEdit
from warpline.replay.labelled_graph import LabelledGraph
from warpline.replay.patterns.device_copies import UPDATING, Expansions, copies_asked_for
from warpline.replay.whatif import Prediction
from warpline.trace.arrays import NONE, Bools
from warpline.units import duration, several

COPY_KERNEL = "direct_copy_kernel"
"""Part of the name of ATen's copy kernels."""


def apply(edit: GraphEdit, case: int) -> int:
    """Remove the copies that the program asks for, unless they are known to be needed."""
    labelled = edit.labelled
    usable = labelled.in_steps & ~edit.gone & labelled.is_work
    unread = labelled.once(copies_never_read)
    copies = np.flatnonzero(((labelled.once(copies_asked_for) & ~labelled.once(copies_needed)) | unread) & usable)
    copies = copies[~labelled.copy_kind[copies].equal("HtoD", "DtoH")]
    doubtful = copies[~unread[copies]]
    dropped = np.sort(np.concatenate([doubtful[::2], copies[unread[copies]]])) if case == PESSIMISTIC else copies
    edit.remove_work(dropped)
    Expansions(edit, dropped).shorten_readers()
    return len(copies)


def copies_never_read(labelled: LabelledGraph) -> Bools:
    """Copies on the device whose result no op reads, by the recorded data flow; all others may be read by whatever
    launches kernels without an op."""
    if labelled.dataflow is None or ((labelled.op == NONE) & labelled.in_steps & labelled.is_work).any():
        return np.zeros(len(labelled.graph), bool)
    copying = labelled.under_op("aten::clone", "aten::contiguous", "aten::repeat", "aten::copy_", "aten::to")
    return copying & labelled.dataflow.never_read


def copies_needed(labelled: LabelledGraph) -> Bools:
    """Copies of which the original or the copy is written to later, by the recorded data flow."""
    return labelled.dataflow.copies_needed if labelled.dataflow is not None else np.zeros(len(labelled.graph), bool)


def redundant_copies(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Unnecessary device-to-device copies: contiguous(), clone(), materialised transposes."""
    copies = evidence.changed(FIX.name).work
    if not evidence.per_step(copies):
        return None
    labelled = evidence.labelled
    unread = evidence.per_step(copies & labelled.once(copies_never_read))
    among = f" Of these, {several(unread, 'is', 'are')} never read." if unread else ""
    updating = copies & labelled.under_op(*UPDATING)
    makers = "clone, contiguous, repeat and to make device-to-device copies"
    if 2 * evidence.time_per_step(updating) > evidence.time_per_step(copies):
        written = evidence.trace.ops.name[labelled.root_op[evidence.in_steps(updating)]].present()
        names = listed(name.removeprefix("aten::") for name in sorted(written))
        makers = f"{names} copies the whole tensor to change a part of it"
    return Claim(
        f"{makers}: {several(evidence.per_step(copies), 'copy', 'copies')} {evidence.noun.per}, "
        f"{duration(evidence.time_per_step(copies))}.{among}",
        evidence.costliest_places(copies),
    )


def was_made(before: StepContents, after: StepContents) -> bool:
    """All copies within the device are gone, and nothing else changed. Where some are left, a small one may have taken
    the place of a large one, which is another fix."""
    gone, new = before.kernels - after.kernels, after.kernels - before.kernels
    if new or any(COPY_KERNEL in name for name in after.kernels) or not all(COPY_KERNEL in name for name in gone):
        return False
    return gone.total() > 0 or is_gone(before.copied("DtoD")[0], after.copied("DtoD")[0])


FIX = Fix(
    name="drop_copies",
    words="removing the copies",
    summary="Unnecessary clones, contiguous copies and layout changes on the device are removed.",
    assumptions=(
        (
            "Readers of the copy can read the original: GEMMs take either layout, and nothing writes to it. Where "
            "`warpline run` recorded the data flow, copies that are written to stay, and copies that no op reads go."
        ),
        "Updates of a part of a tensor (index_copy, scatter, masked_fill) are made in place, and copy nothing.",
        "Copies of gradients that autograd makes stay, and so do copies that an op makes for its own kernel.",
        (
            "Expanded or repeated tensors are read in place: memory-bound kernels that read such a copy speed up in "
            "proportion to the bytes saved."
        ),
        "The worst case keeps half of the copies.",
    ),
    effort="few_lines",
    apply=apply,
    findings=(
        Rule(
            name="redundant_copies",
            cause="memory",
            summary="unnecessary `contiguous()` and `clone()`",
            look=redundant_copies,
            advice=Advice(
                pytorch=(
                    "Remove .contiguous() and .clone() where the next op takes the tensor as it is (matmuls "
                    "take transposed tensors); use .reshape() instead of .contiguous().view(); write in place: "
                    "index_copy_, scatter_ and masked_fill_ change a tensor without copying it."
                ),
                cuda=(
                    "Pass pointers and leading dimensions instead of copying with cudaMemcpyDeviceToDevice; cuBLAS "
                    "takes transposed operands directly."
                ),
            ),
            most="medium",
        ),
    ),
    needs=("ops named clone, contiguous, repeat or to",),
    shows_in_ops=True,
    after=("pad",),
    was_made=was_made,
    not_tried="the copies stand in the source",
)
