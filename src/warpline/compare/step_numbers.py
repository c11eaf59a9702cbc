"""The numbers of a recording that budgets limit and the history keeps: those that `warpline diagnose` shows of it."""

from __future__ import annotations

from collections.abc import Mapping

from warpline.analyses.idle.gaps import CAUSES
from warpline.compare.counts import CALLS, KINDS, Counts
from warpline.errors import CannotAnswer
from warpline.estimate import Estimate
from warpline.findings.diagnosis import Diagnosis
from warpline.trace.arrays import Int64s

Numbers = Mapping[str, Estimate]
TIMES = ("step_ms", "recorded_step_ms", "mean_step_ms", "busy_ms", "idle_ms")
NUMBERS = (*TIMES, "idle_pct", *(f"idle_{cause}_pct" for cause in CAUSES), *KINDS)
"""What is known of every recording with steps; of a program without GPU work only the times of a step."""
ASKED_NUMBERS = ("peak_memory_mb", "peak_reserved_mb", "roof_pct")
"""What is computed only for a budget that limits it."""

MEANINGS = {
    "step_ms": "The step without the profiler, in milliseconds: timed by warpline run, else estimated with a range.",
    "recorded_step_ms": "The step as recorded, with what the profiler costs, in milliseconds.",
    "mean_step_ms": "The mean of all recorded steps but cold ones: a few slow steps count too.",
    "busy_ms": "Recorded time per step in which the GPU is busy, in milliseconds.",
    "idle_ms": "Recorded time per step in which the GPU is idle, in milliseconds.",
    "idle_pct": "Idle time of the busiest GPU as a share of the recorded time.",
    **{f"idle_{cause}_pct": f"Idle time with the cause {cause} as a share of the recorded time." for cause in CAUSES},
    "kernels": "Kernels that run in a step.",
    "launches": "Calls per step that launch kernels or graphs.",
    "syncs": "Calls per step that wait for the GPU.",
    "copies": "Copies per step.",
    "allocations": "Calls per step that allocate GPU memory in the driver.",
    "peak_memory_mb": "The most GPU memory that torch had allocated, in 10⁶ bytes.",
    "peak_reserved_mb": "The most GPU memory that torch had reserved, in 10⁶ bytes.",
    "roof_pct": "How near the kernels with known work are to the roofline, by time.",
}
"""What each number is."""


def step_numbers(found: Diagnosis, counts: Counts, lengths_ns: Int64s) -> dict[str, Estimate]:
    """Every number that is known: times of a step, shares of the time that the answer is about, and how often a step
    does what costs time. `lengths_ns` are those of all steps but cold ones."""
    account, known = found.shown, {}
    has_steps = len(found.trace.steps_in_view) > 0
    if account.devices:
        device, gaps = account.busiest
        whole = max(device.window_ns, 1)
        shares = {"idle_pct": device.idle_ns, **{f"idle_{cause}_pct": ns for cause, ns in gaps.totals().items()}}
        known = {name: 100 * ns / whole for name, ns in shares.items()}
        if has_steps:
            steps = max(account.steps, 1)
            known |= {"busy_ms": device.busy_ns / steps / 1e6, "idle_ms": device.idle_ns / steps / 1e6}
            known |= {name: value for name, value in counts.items() if len(found.trace.api) or name not in CALLS}
    if not has_steps or found.step_ns is None or found.recorded_step_ns is None:
        return {name: Estimate.exactly(value) for name, value in known.items()}
    known["recorded_step_ms"] = found.recorded_step_ns / 1e6
    known["mean_step_ms"] = float(lengths_ns.mean()) / 1e6
    step = Estimate(*(ns / 1e6 for ns in (found.step_ns.low, found.step_ns.expected, found.step_ns.high)))
    return {"step_ms": step, **{name: Estimate.exactly(value) for name, value in known.items()}}


def number_in(numbers: Numbers, name: str) -> Estimate:
    """The number of that name; an error says why it is unknown."""
    if name in numbers:
        return numbers[name]
    if "step_ms" in numbers and "idle_pct" not in numbers:
        raise CannotAnswer(
            "no-gpu-work", f"{name} is a number of the GPU, and the program has no GPU work", "limit step_ms"
        )
    if "kernels" in numbers:
        raise CannotAnswer("no-calls", f"{name} is unknown: the recording has no calls of the CPU", "record them too")
    raise CannotAnswer(
        "no-steps",
        f"{name} is a number per step, and the recording has no steps",
        "mark them with prof.step(), or name the range that does with --step-range",
    )
