"""Updates all parameters with a few fused kernels."""

from __future__ import annotations

import re

import numpy as np

from warpline.analyses.user_frames import Site
from warpline.capture.run_folder import optimizers
from warpline.capture.trial.use import ProgramUse
from warpline.fixes.claim import Claim, Place
from warpline.fixes.evidence import Evidence
from warpline.fixes.model import Advice, Fix, Rule
from warpline.fixes.step_contents import StepContents
from warpline.fixes.tryable import TryableChange
from warpline.library_names import OPTIMIZER_STEP
from warpline.replay.costs import shares
from warpline.replay.graph.model import NodeKind
from warpline.replay.graph_edit import GraphEdit
from warpline.replay.labelled_graph import LabelledGraph
from warpline.replay.patterns.optimizers import MANY_KERNELS, in_optimizer, operations, takes_lists, updates_at_once
from warpline.replay.whatif import Prediction
from warpline.trace.arrays import NONE, Bools, Int64s
from warpline.units import duration, several

CLASS_IN_RANGE = rf"{OPTIMIZER_STEP}(.+)\.step$"
"""torch.optim names the range around a step after the optimizer's class."""
WITH_FUSED = ("Adam", "AdamW", "SGD")
"""Optimizers of torch.optim that take fused=True on a GPU (torch 2.11)."""
KERNELS_PER_PARAMETER = 8
"""Kernels that AdamW launches per parameter without fusion (torch 2.11, foreach=False), from our H200 traces."""
PASSES = {"add": 3, "sub": 3, "mul": 2, "div": 2, "lerp": 3, "addcmul": 4, "addcdiv": 4, "sqrt": 2, "copy": 2}
"""Tensors that an optimizer op reads and writes; scalars are free."""
MIN_KERNELS = 8
MIN_IDLE_SHARE = 0.2
"""Below this idle share, or with long kernels, the device is the limit, and the optimizer is bound by its kernels."""
MAX_IDLE_SHARE = 0.2
"""Above this, the launches of an optimizer with short kernels are the limit, not its kernels."""


def apply(edit: GraphEdit, case: int) -> int:
    """Per step: one launch with the host cost of the fused version, and a share of the device time."""
    labelled = edit.labelled
    inside = labelled.once(in_optimizer) & labelled.in_steps
    unfused = inside & ~labelled.once(updates_at_once) & labelled.is_kernel
    kernels = np.flatnonzero(unfused & ~edit.gone)
    changed = 0
    for step in np.unique(labelled.step[kernels]):
        of_step = kernels[labelled.step[kernels] == step]
        beside = inside & labelled.once(updates_at_once) & (labelled.step == step)
        if len(of_step) < MANY_KERNELS or edit.graph.duration[beside].sum() > edit.graph.duration[of_step].sum():
            continue
        share = min(1.0, shares.FUSED_OPTIMIZER_DEVICE.at(case) * _remaining_passes(labelled, of_step))
        whole = float(edit.graph.duration[of_step].sum())
        parameters = len(of_step) / KERNELS_PER_PARAMETER * (4 if takes_lists(labelled, of_step) else 1)
        host = labelled.host.fused_step.at(case) + parameters * labelled.host.fused_parameter.at(case)
        # What the CPU does for longer than any dispatch takes (a lock, a full queue, the program's own work) stays.
        short = edit.graph.duration <= labelled.host.long_work.expected
        cpu = np.flatnonzero(
            short & inside & (labelled.step == step) & labelled.graph.of_kinds(NodeKind.SEGMENT, NodeKind.CALL)
        )
        now = float(edit.graph.duration[cpu].sum())
        edit.remove_work_only(of_step[1:])
        edit.graph.duration[of_step[0]] = max(share * whole, labelled.device.smallest_kernel.at(case))
        edit.graph.duration[cpu] = 0.0
        calls = labelled.call_of_work[of_step]
        edit.graph.duration[calls[calls != NONE][:1]] = min(host, now)
        changed += len(of_step)
    return changed


def _remaining_passes(labelled: LabelledGraph, kernels: Int64s) -> float:
    """Share of the memory traffic that a fused update still has.

    What they do identifies the optimizer: square roots mean Adam (four tensors read, three written), several operations
    momentum, and a single one plain SGD, which reads two tensors and writes one whether it is fused or not.
    """
    names = operations(labelled, kernels)
    passes = sum(PASSES.get(name, 2) for name in names)
    needed = 7 if "sqrt" in names else 5 if len(names) > 1 else 3
    return min(1.0, needed / max(passes, 1))


def _classes(evidence: Evidence, kernels: Bools) -> list[str]:
    """The classes of the optimizers that launched these kernels; empty if no range names them."""
    ranges = evidence.trace.ranges.name.present()
    names = sorted({found[1] for name in ranges if (found := re.search(CLASS_IN_RANGE, name))})
    return [name for name in names if (kernels & _steps_of(evidence, name)).any()]


def _places(evidence: Evidence, kernels: Bools) -> tuple[Place, ...]:
    """Where the optimizers are constructed, which is the line to change; else where they take their steps."""
    used = _classes(evidence, kernels)
    made = [one for one in optimizers(evidence.trace.file) if one.name in used]
    sites = [(one.name, Site(one.file, one.line, one.function, "call")) for one in made]
    return tuple(Place.at(name, site, 1) for name, site in sites) or evidence.places(kernels)


def _fused_version(evidence: Evidence, kernels: Bools) -> str | None:
    """Advice for the optimizers that launched these kernels; None if no range names them."""
    used = _classes(evidence, kernels)
    in_lists = takes_lists(evidence.labelled, np.flatnonzero(kernels))
    without = [name for name in used if name not in WITH_FUSED]
    parts = [_advice(name, in_lists=in_lists) for name in used if name in WITH_FUSED]
    parts += [_instead(without)] if without else []
    return "; ".join(parts) or None


def _steps_of(evidence: Evidence, name: str) -> Bools:
    return evidence.labelled.within_ranges(rf"{OPTIMIZER_STEP}{re.escape(name)}\.step$")


def _advice(name: str, *, in_lists: bool) -> str:
    return f"torch.optim.{name}(…, fused=True){'' if in_lists else ', without foreach=False'}"


def _instead(names: list[str]) -> str:
    """What to do for optimizers that have no fused version."""
    return (
        f"torch.optim has no fused {' or '.join(names)}: step = torch.compile(optimizer.step), torch._foreach_ "
        "functions in your own step, or torch.optim.AdamW(…, fused=True) if it suits the model"
    )


def per_parameter_optimizer(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """An optimizer that updates one parameter at a time."""
    kernels = evidence.changed(FIX.name).work
    count = evidence.per_step(kernels)
    if count < MIN_KERNELS or evidence.bare.idle_share < MIN_IDLE_SHARE:
        return None
    if evidence.time_per_step(kernels) >= count * evidence.labelled.host.long_kernel.expected:
        return None
    in_lists = takes_lists(evidence.labelled, np.flatnonzero(kernels))
    each = "several for each list of parameters (foreach)" if in_lists else "several per parameter"
    return Claim(
        f"The optimizer launches {several(count, 'kernel')} {evidence.noun.per}, "
        f"{duration(evidence.time_per_step(kernels) / count)} each, {each}.",
        _places(evidence, kernels),
        _fused_version(evidence, kernels),
    )


def unfused_optimizer(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """An optimizer that reads and writes all parameters once per operation."""
    kernels = evidence.changed(FIX.name).work
    count = evidence.per_step(kernels)
    short = evidence.time_per_step(kernels) < count * evidence.labelled.host.long_kernel.expected
    launches_matter = evidence.bare.idle_share >= MAX_IDLE_SHARE and short
    if not count or launches_matter:
        return None
    return Claim(
        f"The optimizer's {several(count, 'kernel')} take {duration(evidence.time_per_step(kernels))} "
        f"{evidence.noun.per}: each reads and writes memory that one fused kernel would read and write once.",
        _places(evidence, kernels),
        _fused_version(evidence, kernels),
    )


def was_made(before: StepContents, after: StepContents) -> bool:
    """More optimizer kernels, and fewer kernels in all."""
    return after.count("optimizer") > before.count("optimizer") and after.total < before.total


def why_not_tried(use: ProgramUse) -> str | None:
    """Where it would change nothing."""
    if not use.optimizers:
        return "no optimizer took a step"
    if not any(one.can_fuse for one in use.optimizers):
        return f"{use.optimizers[0].name} has no fused form"
    return "the optimizers are fused already" if all(one.is_fused for one in use.optimizers) else None


FIX = Fix(
    name="fused_optimizer",
    words="a fused optimizer",
    summary="The optimizer updates all parameters with a few fused kernels (fused=True).",
    assumptions=(
        (
            "Optimizer steps are detected by the range that torch.optim puts around them; hand-written ones as loops "
            "over tensors that divide by a square root or subtract the gradient; in a file without ops (nsys) by "
            "kernels that divide by a square root."
        ),
        "Kernels of an optimizer that is fused already do not change; if they take most of its time, nothing does.",
        "The host time is that of a fused AdamW with as many parameters as the kernels suggest.",
    ),
    effort="setting",
    apply=apply,
    findings=(
        Rule(
            name="per_parameter_optimizer",
            cause="dispatch",
            summary="several launches per small parameter",
            look=per_parameter_optimizer,
            advice=Advice(
                pytorch=(
                    "torch.optim.AdamW(…, fused=True): one kernel for many parameters; drop "
                    "foreach=False; optimizers without a fused version take foreach=True"
                ),
                cuda=(
                    "Update all parameters with one kernel over a list of pointers and sizes, instead of one launch "
                    "each."
                ),
                other="Use an optimizer that updates all parameters in one compiled call.",
            ),
        ),
        Rule(
            name="unfused_optimizer",
            cause="kernel",
            summary="large parameters read and written once per operation",
            look=unfused_optimizer,
            advice=Advice(
                pytorch="torch.optim.AdamW(…, fused=True)",
                cuda="Write the update as one kernel that reads the gradient, the moments and the parameter once.",
                other="Compile the update, so that each parameter is read and written once.",
            ),
        ),
    ),
    needs=("torch.optim's ranges, or ops with shapes",),
    shows_in_ops=True,
    after=("fewer_kernels",),
    was_made=was_made,
    replaces_kernels=True,
    implies=("batch", "drop_copies", "preallocate", "pad"),
    tried=(
        TryableChange(
            "fused_optimizer",
            "optimizers made with fused=True",
            "torch.optim.AdamW(params, …, fused=True)  # or Adam, SGD, Adagrad",
            why_not_tried,
        ),
    ),
)
