"""Removes unnecessary device-to-device copies."""

from __future__ import annotations

import numpy as np
import polars as pl

from warpline.fixes.claim import Claim
from warpline.fixes.evidence import Evidence
from warpline.fixes.model import Advice, Fix, Rule
from warpline.fixes.words import listed
from warpline.replay.costs.cost import PESSIMISTIC
from warpline.replay.patterns.device_copies import UPDATING, copies_asked_for
from warpline.replay.patterns.expansions import Expansions
from warpline.replay.scene import Scene
from warpline.replay.whatif import Prediction
from warpline.replay.workbench import Workbench
from warpline.trace.columns import NONE, Bools
from warpline.units import duration, several


def apply(bench: Workbench, case: int) -> int:
    """Remove the copies that the program asks for, unless they are known to be needed."""
    scene = bench.scene
    usable = scene.in_steps & ~bench.gone & scene.is_work
    unread = scene.once(copies_never_read)
    copies = np.flatnonzero(((scene.once(copies_asked_for) & ~scene.once(copies_needed)) | unread) & usable)
    copies = copies[~np.isin(scene.work_text("copy_kind")[copies], ["HtoD", "DtoH"])]
    doubtful = copies[~unread[copies]]
    dropped = np.sort(np.concatenate([doubtful[::2], copies[unread[copies]]])) if case == PESSIMISTIC else copies
    bench.remove_work(dropped)
    Expansions(bench, dropped).shorten_readers()
    return len(copies)


def copies_never_read(scene: Scene) -> Bools:
    """Copies on the device whose result no op reads, by the recorded data flow; all others may be read by whatever
    launches kernels without an op."""
    if scene.dataflow is None or ((scene.op == NONE) & scene.in_steps & scene.is_work).any():
        return np.zeros(len(scene.graph), bool)
    copying = scene.under_op("aten::clone", "aten::contiguous", "aten::repeat", "aten::copy_", "aten::to")
    return copying & scene.dataflow.never_read


def copies_needed(scene: Scene) -> Bools:
    """Copies of which the original or the copy is written to later, by the recorded data flow."""
    return scene.dataflow.copies_needed if scene.dataflow is not None else np.zeros(len(scene.graph), bool)


def redundant_copies(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Unnecessary device-to-device copies: contiguous(), clone(), materialised transposes."""
    copies = evidence.changed(FIX.name).work
    if not evidence.per_step(copies):
        return None
    scene = evidence.scene
    unread = evidence.per_step(copies & scene.once(copies_never_read))
    among = f" Of these, {several(unread, 'is', 'are')} never read." if unread else ""
    updating = copies & scene.under_op(*UPDATING)
    makers = "clone, contiguous, repeat and to make device-to-device copies"
    if 2 * evidence.time_per_step(updating) > evidence.time_per_step(copies):
        written = np.unique(scene.root_op[evidence.in_steps(updating)])
        names = evidence.trace.ops["name"].gather(written).cast(pl.String).unique().sort().str.replace("^aten::", "")
        makers = f"{listed(names)} copies the whole tensor to change a part of it"
    return Claim(
        f"{makers}: {several(evidence.per_step(copies), 'copy', 'copies')} a step, "
        f"{duration(evidence.time_per_step(copies))}.{among}",
        evidence.costliest_places(copies),
    )


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
    after=("pad",),
)
