"""Less of the program's own code on the CPU between launches: metrics, logging, NumPy, ops on the CPU."""

from __future__ import annotations

import numpy as np

from warpline.estimate import CLEAR_GAIN
from warpline.fixes.claim import Claim, Place
from warpline.fixes.evidence import Evidence
from warpline.fixes.model import Advice, Fix, Rule
from warpline.replay.costs.cost import PESSIMISTIC
from warpline.replay.graph_edit import GraphEdit
from warpline.replay.patterns.launch_runs import own_code
from warpline.replay.resources import Resource, Resources
from warpline.replay.whatif import Prediction
from warpline.units import duration

LEFT_AT_WORST = 0.5
"""Share of it that stays at worst: a result that the next step needs has to be computed somewhere."""
SAMPLES = 16
"""Moments at which the user's line is looked up in each stretch of such code."""


def apply(edit: GraphEdit, case: int) -> int:
    """Leave the long stretches out in which a launching thread launches nothing."""
    labelled, graph = edit.labelled, edit.graph
    if not len(labelled.trace.steps_in_view):
        return 0  # Outside of steps, a long gap says nothing.
    share = labelled.once(Resources).shares[Resource.DISPATCH] * np.isin(graph.lane, labelled.host_time.launching)
    chosen = np.flatnonzero(own_code(edit) & labelled.in_steps & (share > 0))
    left = LEFT_AT_WORST if case == PESSIMISTIC else 0.0
    graph.duration[chosen] *= 1 - share[chosen] * (1 - left)
    return len(chosen)


def host_code(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """The GPU is idle while the program computes on the CPU."""
    each, own = evidence.noun.one("each", duration(evidence.step_ns)), duration(evidence.host_time_saved(FIX.name))
    return Claim(
        f"The CPU spends {own} of {each} in the program's own code (Python, NumPy, ops on the CPU) and "
        "launches nothing meanwhile.",
        _places(evidence),
    )


def _places(evidence: Evidence) -> tuple[Place, ...]:
    """The user's lines that run then, as far as frames were recorded."""
    graph, nodes = evidence.labelled.graph, np.flatnonzero(evidence.changed(FIX.name).host)
    if not evidence.user_frames.exist:
        return ()
    start, length = graph.measured_start[nodes], (graph.measured_end - graph.measured_start)[nodes]
    share = (np.arange(SAMPLES) + 0.5) / SAMPLES
    moments = (start[:, None] + share * length[:, None]).astype(np.int64).ravel()
    threads = np.repeat(graph.lane[nodes], SAMPLES)
    names = [_function(evidence, frame) for frame in evidence.user_frames.at(threads, moments).tolist()]
    return evidence.places_at(names, threads, moments, np.repeat(length / SAMPLES, SAMPLES))


def _function(evidence: Evidence, frame: int) -> str:
    name = evidence.user_frames.name(frame) or "Python"
    return name.rsplit(": ", 1)[-1]


FIX = Fix(
    name="less_host_code",
    words="less CPU code in the loop",
    summary="The program's own code on the CPU, while nothing is launched, leaves the loop.",
    assumptions=(
        (
            "Stretches in which the thread that launches calls nothing for longer than any dispatch takes, loads no "
            "data and waits for nothing, are the program's own code. All of it leaves the loop, at worst half of it."
        ),
    ),
    effort="few_lines",
    apply=apply,
    findings=(
        Rule(
            name="host_code",
            cause="dispatch",
            summary="the GPU waits while the program computes on the CPU",
            look=host_code,
            advice=Advice(
                pytorch=(
                    "Compute it on the GPU (metrics with torch ops on the tensors that are there), do it every n-th "
                    "step, or hand it to another process or thread while the next step runs."
                ),
                other="Move it to the GPU, do it less often, or let another thread do it while the next step runs.",
            ),
            most="medium",
            least_gain=CLEAR_GAIN,
        ),
    ),
    needs=("steps",),
    not_tried="only the program's author knows which of its code can leave the loop",
)
