"""Removes waits of the CPU for the GPU."""

from __future__ import annotations

from collections import Counter

import numpy as np

from warpline.analyses.wait_expressions import as_written
from warpline.capture.trial.use import ProgramUse
from warpline.estimate import NOTICEABLE_GAIN
from warpline.fixes.claim import Claim, Place
from warpline.fixes.evidence import Evidence
from warpline.fixes.model import Advice, Fix, Rule
from warpline.fixes.step_contents import StepContents, is_gone
from warpline.fixes.tryable import TryableChange, no_gpu
from warpline.fixes.words import in_place, listed
from warpline.kernels.identity import MATRIX_CLASSES
from warpline.replay.costs.cost import EXPECTED, PESSIMISTIC
from warpline.replay.graph_edit import GraphEdit
from warpline.replay.patterns.lookups import looked_up, remove_inner_ops
from warpline.replay.patterns.python_constants import created_again, remove_creation
from warpline.replay.patterns.waits import awaited, awaited_calls
from warpline.replay.whatif import Prediction
from warpline.trace.arrays import Bools
from warpline.units import duration, several

COUNTING = (
    "aten::nonzero",
    "aten::masked_select",
    "aten::equal",
    "aten::_unique",
    "aten::_unique2",
    "aten::unique_dim",
    "aten::unique_consecutive",
    "aten::unique_dim_consecutive",
)
"""Ops whose result size (or value) only the device knows; they are removed together with the wait."""
INSTEAD = {
    ".item()": "total += loss.detach(), and total.item() every n-th step",
    "`if` on a tensor": "torch.where(condition, a, b) instead of `if` on a tensor",
    "boolean mask": "torch.where(mask, x, 0) instead of x[mask]",
    "masked_select": "torch.where(mask, x, 0) instead of masked_select",
    "nonzero": "the mask itself instead of nonzero",
    "unique": "unique once, before the loop",
    "repeat_interleave": "repeat_interleave(…, output_size=n), where n is known on the host",
    "torch.equal": "(a == b).all(), read later, instead of torch.equal",
    "bincount": "zeros of the known size and scatter_add_ instead of bincount, which searches for the maximum",
    "one_hot": "one_hot(x, num_classes=n), where n is known on the host",
    ".to() or .cpu()": "pinned memory and non_blocking=True for .to() and .cpu(), read while the next step runs",
    "copy_": "pinned memory and non_blocking=True for copy_",
    "torch.cuda.synchronize()": "remove torch.cuda.synchronize() from the loop",
    "stream.synchronize()": "remove stream.synchronize() from the loop",
    "event.synchronize()": "stream.wait_event(event) instead of event.synchronize()",
}
"""The replacement for it."""
NAMES_EVERY_LINE = "torch.cuda.set_sync_debug_mode('warn') reports every line that waits."
MADE_AGAIN = (
    "Create tensors from Python numbers once, on the device: index = torch.tensor(rows, device='cuda') before the loop."
)
LISTED = 4
CLIPPING = r"clip_grad\.py\(\d+\): "
"""Python frames of clip_grad_norm_, whose result stays on the device until it is read."""


def apply(edit: GraphEdit, case: int) -> int:
    """Remove the waits: explicit calls and small copies, and the ops that exist only for them."""
    labelled = edit.labelled
    calls = awaited_calls(labelled)
    if case == PESSIMISTIC and len(calls):
        steps = labelled.step[calls]
        last = {int(step): int(call) for step, call in zip(steps, calls, strict=True)}
        calls = np.setdiff1d(calls, np.array(list(last.values()), np.int64))
    if not len(calls) and case == EXPECTED:
        return 0
    edit.stop_waiting(calls)
    edit.graph.duration[calls] = 0.0
    if not len(labelled.trace.steps_in_view):
        # A result that is read once at the end of a program is what it was run for.
        return len(calls)
    copies = labelled.work[np.isin(labelled.call_of_work[labelled.work], calls)]
    if case == PESSIMISTIC:
        edit.remove_work(copies)
        return len(calls)
    remove_creation(edit, created_again(labelled))
    counting = np.flatnonzero(labelled.under_op(*COUNTING) & labelled.in_steps & labelled.is_work & ~edit.gone)
    removed = np.unique(np.concatenate([copies, counting, looked_up(labelled, copies)]))
    edit.remove_work(removed)
    remove_inner_ops(edit, removed)
    return len(calls)


def hidden_sync(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """The CPU waits for the device inside the step, and the device goes idle."""
    calls = awaited(evidence.labelled)
    count = evidence.per_step(calls)
    if not count or (count < 1 and prediction.gain.expected < NOTICEABLE_GAIN):
        return None
    dry = evidence.bare.idle_ns["sync"]
    places = evidence.host_places(calls)
    saved = prediction.old_step_ns.expected - prediction.new_step_ns.expected
    after = "; after each wait nothing is queued, and it stays idle until the next launch" if saved > 2 * dry else ""
    return Claim(
        f"The CPU waits for the GPU in {several(count, 'call')} {evidence.noun.per} ({_written(evidence, calls)}), "
        f"{duration(evidence.time_in_calls(calls))} in total, in which the GPU is idle for {duration(dry)}{after}.",
        places,
        _how(places, as_written(len(evidence.trace.ops) > 0), again=bool(created_again(evidence.labelled))),
    )


def _how(places: tuple[Place, ...], known: dict[str, str], *, again: bool) -> str | None:
    """Replacements for these waits, by function; None if none of the waits is known."""
    advice: dict[str, dict[str, None]] = {}
    for place in places:
        written = known.get(place.op or "")
        if written in INSTEAD:
            advice.setdefault(place.spot, {})[INSTEAD[written]] = None
    parts = [f"Avoid waiting{in_place(spot)}: {'; '.join(texts)}." for spot, texts in advice.items()]
    parts += [MADE_AGAIN] if again else []
    return " ".join([*parts, NAMES_EVERY_LINE]) if parts else None


def _written(evidence: Evidence, calls: Bools) -> str:
    """The waits as they appear in the code, the most frequent first."""
    labels = evidence.host_labels(calls)
    if evidence.framework == "pytorch":
        known = as_written(len(evidence.trace.ops) > 0)
        shown = zip(evidence.host_expressions(calls), labels, strict=True)
        labels = [expression or known.get(label, label) for expression, label in shown]
    counts = Counter(labels)
    kinds = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    parts = [several(number / evidence.steps, kind, kind) for kind, number in kinds[:LISTED]]
    parts += [several(len(kinds) - LISTED, "other kind")] if len(kinds) > LISTED else []
    text = listed(parts)
    clipped = _clipping_line(evidence)
    return text if clipped is None else f"{text}; clip_grad_norm_{clipped} returns a norm that waits when it is read"


def _clipping_line(evidence: Evidence) -> str | None:
    """Where gradients are clipped within the window; None if they are not, or no frames were recorded."""
    window, python = evidence.trace.window, evidence.trace.python
    inside = (python.start_ns >= window.start_ns) & (python.start_ns <= window.end_ns)
    frames = np.flatnonzero(python.name.like(CLIPPING) & inside)[:1]
    if not len(frames):
        return None
    (place, *_) = evidence.places_at(["clip_grad_norm_"], python.thread[frames], python.start_ns[frames])
    return f" in {place.spot}" if place.spot else ""


def was_made(before: StepContents, after: StepContents) -> bool:
    """Waits of the CPU are gone, and the matmuls are the same."""
    same = all(before.count(kind) == after.count(kind) for kind in MATRIX_CLASSES)
    return same and is_gone(before.calls["waits"], after.calls["waits"])


def why_not_tried(use: ProgramUse) -> str | None:
    """Where it would change nothing."""
    waits = use.values_read or use.synchronize_calls
    return no_gpu(use) or (None if waits else "no float is read from the GPU, and synchronize() is not called")


FIX = Fix(
    name="remove_sync",
    words="removing the waits",
    summary="Synchronising calls and copies of small results inside the step no longer block the CPU.",
    assumptions=(
        "The program does not need the result at once: it stays on the device, or is read later.",
        (
            "Ops that only count elements (nonzero), find the maximum or minimum of integers, or test a "
            "condition (all, eq) disappear with the wait for their result, and so does arithmetic on that "
            "result. NaN checks (isnan, isfinite) are kept."
        ),
        "Tensors created from Python numbers several times a step are created once; the first of each size stays.",
        "The worst case keeps the last wait of each step (a logged loss, for example), and all ops but the copies.",
        "Waits that the profiler makes, or that only a few steps have outside ops, are the harness's and stay.",
        (
            "A wait for a copy to the device from pageable memory stays: pinned memory, or one copy instead of many, "
            "ends it. A few numbers that are copied alone are the exception."
        ),
    ),
    effort="few_lines",
    apply=apply,
    findings=(
        Rule(
            name="hidden_sync",
            cause="sync",
            summary="`.item()` and similar calls empty the queue, and the GPU goes idle",
            look=hidden_sync,
            advice=Advice(
                pytorch=(
                    "Keep results on the device: total += loss.detach() and total.item() every n-th step; "
                    "torch.where(mask, x, 0) instead of x[mask]; no `if` on a tensor; print nothing inside the loop. "
                    f"{NAMES_EVERY_LINE}"
                ),
                cuda=(
                    "Remove cudaDeviceSynchronize and cudaStreamSynchronize from the loop; order streams with "
                    "cudaStreamWaitEvent, and read results of step n while step n+1 runs, from pinned memory after "
                    "an event."
                ),
                neutral="Read results every n-th step, or asynchronously: each read waits for the device.",
            ),
            least_gain=0.0,
        ),
    ),
    needs=("API calls with their times", "ops or frames for the place"),
    after=("prefetch",),
    was_made=was_made,
    tried=(
        TryableChange(
            "remove_sync",
            "each float read from the GPU is the one read before, and synchronize() does nothing",
            "read losses and metrics every N steps, and remove torch.cuda.synchronize() from the loop",
            why_not_tried,
            is_bound=True,
        ),
    ),
)
