"""Allocates buffers once, before the loop."""

from __future__ import annotations

import numpy as np

from warpline import api_names
from warpline.fixes.claim import Claim
from warpline.fixes.evidence import Evidence
from warpline.fixes.model import Advice, Fix, Rule
from warpline.fixes.step_contents import StepContents
from warpline.fixes.words import listed
from warpline.replay.costs.cost import PESSIMISTIC, Cost
from warpline.replay.graph_edit import NOTHING, GraphEdit
from warpline.replay.patterns.allocator import calls_in_steps, drop_calls, frees_in_steps
from warpline.replay.patterns.concatenations import joins, joins_equals, joins_old_pieces
from warpline.replay.patterns.rolled_buffers import shifts
from warpline.replay.whatif import Prediction
from warpline.units import duration, several

APPENDED = Cost(0.01, 0.03, 0.3, "not measured yet: a cautious range")
"""Share of a concatenation's or a shift's time that remains when only the new part is written into a buffer."""
FILLS = (
    "aten::zeros",
    "aten::zeros_like",
    "aten::new_zeros",
    "aten::ones",
    "aten::ones_like",
    "aten::new_ones",
    "aten::full",
    "aten::full_like",
    "aten::new_full",
)
MAKES_COPIES = ("aten::clone", "aten::contiguous", "aten::_to_copy", "aten::cat")
CONCATENATION = "CatArrayBatchedCopy"
"""Part of the name of ATen's concatenation kernels."""
LARGE_FILL_IN_KERNELS = 3.0
"""Fills shorter than this many of the smallest kernels are not worth a buffer."""


def apply(edit: GraphEdit, case: int) -> int:
    """Remove allocations, and shorten concatenations and shifts."""
    labelled = edit.labelled
    # Memory returned to the driver inside the step comes from emptying the cache, which is another fix.
    frees = len(frees_in_steps(labelled))
    # Without steps nothing says that an allocation comes again.
    once = frees or not len(labelled.trace.steps_in_view)
    calls = NOTHING if once else calls_in_steps(labelled, api_names.ALLOCATION)
    drop_calls(edit, calls)
    joined = np.flatnonzero(labelled.once(joins) & ~labelled.once(joins_equals) & labelled.in_steps & ~edit.gone)
    old = joined[labelled.once(joins_old_pieces)[joined]] if case != PESSIMISTIC else NOTHING
    edit.remove_work(old)
    shifted = np.flatnonzero(labelled.once(shifts) & labelled.in_steps & ~edit.gone)
    grown = np.union1d(np.setdiff1d(joined, old), shifted)
    now = edit.graph.duration[grown]
    edit.shorten(grown, np.maximum(now * APPENDED.at(case), np.minimum(now, labelled.device.smallest_kernel.at(case))))
    filled = labelled.under_op(*FILLS) & ~labelled.of_autograd
    zeros = np.flatnonzero(filled & labelled.is_work & labelled.in_steps & ~edit.gone)
    large = zeros[edit.graph.duration[zeros] >= LARGE_FILL_IN_KERNELS * labelled.device.smallest_kernel.expected]
    edit.remove_work(large)
    plain_copy = labelled.op_name.equal("aten::copy_") & ~labelled.under_op(*MAKES_COPIES)
    into = np.flatnonzero(plain_copy & labelled.in_steps & ~edit.gone)
    into = into[~labelled.copy_kind[into].equal("HtoD")]
    if len(large) and case != PESSIMISTIC:
        edit.remove_work(into)
    return len(calls) + len(joined) + len(shifted) + len(large)


def cat_growth(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Buffers created again in every step: grown by concatenation, filled with zeros, allocated by the driver."""
    change = evidence.changed(FIX.name)
    joined = change.work & evidence.labelled.once(joins)
    shifted = change.work & evidence.labelled.once(shifts)
    fills = change.work & change.gone & evidence.labelled.under_op(*FILLS)
    kinds = (
        ("concatenation", "concatenations", joined),
        ("shift of a whole buffer", "shifts of whole buffers", shifted),
        ("fill of a large buffer", "fills of large buffers", fills),
        ("copy into one", "copies into them", change.work & change.gone & ~fills & ~joined & ~shifted),
    )
    parts = [
        f"{several(evidence.per_step(nodes), one, more)} ({duration(evidence.time_per_step(nodes))})"
        for one, more, nodes in kinds
        if evidence.per_step(nodes)
    ]
    calls = evidence.per_step(change.host & evidence.labelled.calls_like(api_names.ALLOCATION))
    parts += [several(calls, "driver allocation", "driver allocations")] if calls else []
    if not parts:
        return None
    verb = "moved" if not calls and not (change.work & ~shifted).any() else "created"
    return Claim(
        f"Buffers are {verb} again in {evidence.noun.one('every')}: {listed(parts)}.", evidence.places(change.work)
    )


def was_made(before: StepContents, after: StepContents) -> bool:
    """Concatenations are gone, and nothing else changed."""
    gone, new = before.kernels - after.kernels, after.kernels - before.kernels
    return not new and gone.total() > 0 and all(CONCATENATION in name for name in gone)


FIX = Fix(
    name="preallocate",
    words="preallocated buffers",
    summary="Buffers are allocated once, before the loop, and filled in place.",
    assumptions=(
        "Allocations inside the step disappear.",
        (
            "Concatenations that grow a tensor write only the new part. Those of more pieces than operations ran since "
            "the last one join old pieces again and disappear. Those of two or three tensors of similar size stay."
        ),
        (
            "A buffer that is rolled, or cloned and copied back, to make room for new values becomes a ring: only the "
            "new values are written."
        ),
        "Concatenations and fills of gradients by autograd stay.",
        ("Large buffers are not filled again, and data that is copied into their parts is written there directly."),
        "Kernels that derive constants from such a fill (ones().tril() == 0) stay.",
    ),
    effort="few_lines",
    apply=apply,
    findings=(
        Rule(
            name="cat_growth",
            cause="memory",
            summary="buffers that are grown, shifted, filled or allocated again in every step",
            look=cat_growth,
            advice=Advice(
                pytorch=(
                    "Allocate the buffer (a KV cache, say) once at its final size, cache = torch.empty(…, longest, "
                    "…), and write into it: cache[:, :, pos] = new; for results, torch.empty once and out[i] = y "
                    "instead of torch.cat; a history as a ring, past[i % n] = new, instead of torch.roll; create a "
                    "mask once, with self.register_buffer."
                ),
                cuda=(
                    "Allocate the buffer once at its final size and write the new part into it, instead of "
                    "cudaMalloc and a copy of the old contents."
                ),
                neutral="Allocate the buffer once at its final size, and write the new part into it.",
            ),
            most="medium",
        ),
    ),
    needs=("ops, and their shapes",),
    shows_in_ops=True,
    after=("remove_sync",),
    was_made=was_made,
    not_tried="the tensors are made in the source",
)
