"""The device waits for launches: a CUDA graph launches the whole step at once."""

from __future__ import annotations

import numpy as np
import polars as pl

from warpline.analyses.where import frame_names
from warpline.findings.evidence import Evidence
from warpline.findings.rule import Claim, Rule
from warpline.findings.words import several
from warpline.replay.whatif import Prediction
from warpline.trace.columns import NONE, Bools, ids, integers
from warpline.trace.nesting import nearest_marked
from warpline.units import duration

LEAST_SHARE = 0.05
"""Of the step; less is not worth a graph."""
MOST = 0.5
"""Of the launches; what launches fewer is not what to capture."""
FRAME = r"^(.+)\((\d+)\): (.+)$"
INSTANCE = r"_\d+$"
"""torch numbers the modules of a class: Block_0, Block_1."""


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    captured = evidence.changed(RULE.fix).relaunched
    launches = evidence.per_step(captured)
    waiting = evidence.idle["dispatch"] + evidence.idle["launch_latency"]
    share = evidence.bare_idle_share * waiting / max(sum(evidence.idle.values()), 1)
    if share < LEAST_SHARE or not launches:
        return None
    return Claim(
        f"The GPU waits {100 * share:.0f} % of each {duration(evidence.step_ns)} step for the CPU to launch "
        f"{several(launches, 'operation')} of {duration(evidence.time_per_step(captured) / launches)}.",
        evidence.places(captured),
        _how(evidence, captured),
    )


def _how(evidence: Evidence, captured: Bools) -> str | None:
    """The general advice, led by the module, else the function, that launches most of it; None without frames."""
    for launchers in (_modules(evidence, captured), _functions(evidence, captured)):
        counted = launchers.drop_nulls().alias("launcher").value_counts(sort=True)
        if len(counted) and counted["count"][0] >= MOST * evidence.in_steps(captured).sum():
            return f"Most of it is launched by {counted['launcher'][0]}. {RULE.how}"
    return None


def _modules(evidence: Evidence, captured: Bools) -> pl.Series:
    """The outermost nn.Module around the op that led to each launch."""
    python, frames = evidence.trace.python, integers(evidence.trace.ops["frame"])
    parents, modules = integers(python["parent"]), python["module"].is_not_null().to_numpy()
    within = np.append(nearest_marked(parents, modules), NONE)
    around = np.append(nearest_marked(parents, modules & (within[parents] == NONE)), NONE)
    rows = around[frames[evidence.written_ops(captured)]]
    return "the module " + python["module"].gather(ids(rows)).cast(pl.String).str.replace(INSTANCE, "")


def _functions(evidence: Evidence, captured: Bools) -> pl.Series:
    """The user's own function that wrote the op that led to each launch, and where it begins."""
    ops, table = evidence.written_ops(captured), evidence.trace.ops
    rows = evidence.user_frames.at(integers(table["thread"])[ops], integers(table["start_ns"])[ops])
    return frame_names(evidence.trace, rows).str.replace(FRAME, "${3} (${1}:${2})")


RULE = Rule(
    name="launch_bound",
    cause="dispatch",
    fix="cuda_graph",
    how=(
        "model = torch.compile(model, mode='reduce-overhead'), or capture by hand after a warm-up on a side stream: "
        "with torch.cuda.graph(graph): out = model(fixed_input); then fixed_input.copy_(x); graph.replay() "
        "(torch.cuda.make_graphed_callables does it for modules, backward included)."
    ),
    look=look,
    specific=False,
)
