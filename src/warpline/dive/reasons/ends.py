"""What is left when no flaw explains the time: a unit at its limit, waiting, or nothing wrong."""

from __future__ import annotations

from warpline.dive.gains import MIN_BUSY_SHARE, MIN_UTILISATION, cap_of, gain_of_less_work, headroom, in_order
from warpline.dive.metrics import STALL_WORDS, STALLS
from warpline.dive.model import FoundReason
from warpline.dive.reasons.base import Case, Reason
from warpline.dive.reasons.occupancy import MAX_POSSIBLE
from warpline.dive.utilisation import UNIT_WORDS, USEFUL_PIPES, Side
from warpline.kernels import identify

NEAR_PEAK = 0.8
"""A copy kernel reaches 90 % of an H200's DRAM peak, and the best GEMMs 90 % of its tensor peak: near it is 80 %."""
MAX_FLOPS = 0.1
"""Floating-point instructions among all: below, a kernel was asked to move bytes, and the rest is overhead."""
MIN_FLOAT_SHARE_OF_FMA = 0.25
"""Below, the FMA pipe works on integers: it multiplies them too."""
MIN_ARITHMETIC_SHARE = 0.5
"""Above, and with an arithmetic pipe as busy, the instructions are the arithmetic that the kernel exists for."""
MAX_SIDE_DIFFERENCE = 0.15
"""Compute and memory as close as this are both in use: no single one limits."""


def waiting(case: Case) -> FoundReason | None:
    """No unit is busy: the time goes to waiting."""
    if at_barriers(case):
        return _barriers(case)
    if case.utilisation.top >= MIN_BUSY_SHARE or not case.utilisation.known:
        return None
    waits = list(case.metrics.waits.items())[:2]
    why = " and ".join(f"{STALL_WORDS[word]} ({100 * share:.0f} %)" for word, share in waits)
    doing = f"; a warp spends its time {why}" if why else "; what the warps wait for is not recorded (WarpStateStats)"
    return FoundReason(
        "latency",
        f"No unit is over {100 * case.utilisation.top:.0f} % busy, so the time goes to waiting{doing}",
        headroom(case.utilisation),
        _advice(waits[0][0] if waits else ""),
        ("smsp__average_warps_issue_stalled_*",),
    )


def at_barriers(case: Case) -> bool:
    """Whether the busiest unit is the pipe that serves block barriers (ADU), while warps mostly wait at them."""
    served, utilisation = case.metrics.share("adu"), case.utilisation
    if served is None or served < MIN_BUSY_SHARE or served < utilisation.top - 0.005:
        return False
    return next(iter(case.metrics.waits), "") == "barrier"


def _barriers(case: Case) -> FoundReason:
    """Without the barriers; at best without the values that are traded through shared memory between them."""
    metrics, utilisation = case.metrics, case.utilisation
    shared, data = metrics.get("shared_wavefronts_pct") or 0.0, metrics.get("data_wavefronts")
    elsewhere = 1.0 if not data else max(0.0, 1 - shared / data)
    trades = metrics.ratio(("shared_load_instructions", "shared_store_instructions"), "instructions") or 0.0
    best = {"control": 0.0, "l1": elsewhere, "lsu": elsewhere, "memory": elsewhere, "issue": max(0.0, 1 - trades)}
    usual = gain_of_less_work(metrics, utilisation, {"control": 0.0})
    share, others = metrics.waits["barrier"], utilisation.after({"control": 0.0})
    return FoundReason(
        "latency",
        f"Warps wait at block barriers {100 * share:.0f} % of their time: the pipe that serves them (ADU) is "
        f"{100 * utilisation.shares['control']:.0f} % busy, and no other unit over {100 * others:.0f} %",
        in_order(usual.low, usual.expected, max(usual.high, gain_of_less_work(metrics, utilisation, best).high)),
        _advice("barrier"),
        (metrics.name("adu"), STALLS.format("barrier")),
    )


def _advice(wait: str) -> str:
    if wait == "barrier":
        return "Use fewer or smaller barriers: warp shuffles, __syncwarp, smaller blocks, more blocks an SM."
    if wait in {"long_scoreboard", "lg_throttle"}:
        return (
            "Have more loads in flight: independent loads before their first use (unroll, prefetch, cp.async or TMA), "
            "wider loads, and no chain of loads that name the next address."
        )
    if wait in {"short_scoreboard", "mio_throttle"}:
        return "Use fewer shared-memory and special-function instructions, or wider ones, and more independent work."
    return "Give each thread more independent work, and each SM more warps."


def instructions(case: Case) -> FoundReason | None:
    """The instruction issue, or a pipe that does no arithmetic of the result, is the limit."""
    utilisation = case.utilisation
    unit = utilisation.limiter("compute")
    busy = utilisation.shares.get(unit, 0.0)
    arithmetic = case.metrics.flop_share
    integers = unit == "fma" and arithmetic is not None and arithmetic < MIN_FLOAT_SHARE_OF_FMA
    is_useful = unit in {*USEFUL_PIPES, "sm"} and not integers
    if at_barriers(case) or is_useful or busy < MIN_BUSY_SHARE or busy < utilisation.top - 0.05 or _is_balanced(case):
        return None
    issue = utilisation.shares.get("issue", 0.0)
    unit_is_busy = max(utilisation.shares.get(pipe, 0.0) for pipe in USEFUL_PIPES) >= MIN_BUSY_SHARE
    if arithmetic is not None and arithmetic >= MIN_ARITHMETIC_SHARE and unit_is_busy:
        return None
    cap = cap_of(utilisation)
    if arithmetic is not None and arithmetic < MAX_FLOPS and not _is_library(case):
        useful = [share for name, share in utilisation.shares.items() if name in {"tensor", "fp64", "dram", "l2"}]
        cap = 1 / max(min(max([issue * arithmetic, *useful]), utilisation.top), MIN_UTILISATION)
    return FoundReason(
        "instruction_bound",
        f"The limit is the number of instructions: {UNIT_WORDS[unit]} is {100 * busy:.0f} % busy, the issue slots "
        f"{100 * issue:.0f} %, while memory and floating-point units have room",
        in_order(1.0, cap**0.5, cap),
        "Execute fewer instructions: 32-bit indices instead of 64-bit division and remainder, vector loads (float4), "
        "constants known at compile time, fast-math functions, less work repeated in each thread.",
        (case.metrics.name("issue"),),
    )


def _is_library(case: Case) -> bool:
    """Whether the name is that of a library's kernel, whose integer work was asked for: random numbers, sorts."""
    return identify(case.metrics.kernel.name).library not in {None, "triton"}


def _is_balanced(case: Case) -> bool:
    compute, memory = case.utilisation.compute or 0.0, case.utilisation.memory or 0.0
    return MIN_BUSY_SHARE <= max(compute, memory) < NEAR_PEAK and abs(compute - memory) < MAX_SIDE_DIFFERENCE


def no_fault(case: Case) -> str:
    """What looks like a flaw beside a busy unit, and is none."""
    possible = case.metrics.share("occupancy_possible")
    if possible is not None and possible <= MAX_POSSIBLE:
        achieved = case.metrics.share("occupancy")
        reached = "" if achieved is None else f" ({100 * achieved:.2f} of {100 * possible:.2f} %)"
        return f"; low occupancy is no fault{reached}"
    return ""


def _at(case: Case, unit: str, whole: float) -> str:
    return f"{UNIT_WORDS[unit]} at {100 * case.utilisation.shares.get(unit, whole):.2f} % of peak"


def peak_compute(case: Case) -> FoundReason | None:
    """An arithmetic unit is the limit."""
    return _limit(
        case,
        "compute",
        "compute_peak",
        "Only less arithmetic helps: a lower precision that uses faster units, fewer FLOPs, or a better algorithm.",
        "sm",
    )


def bandwidth(case: Case) -> FoundReason | None:
    """A memory level is the limit."""
    return _limit(
        case,
        "memory",
        "memory_bandwidth",
        "Only fewer bytes help: fuse with the neighbouring kernels, use a smaller data type, or keep data in a nearer "
        "cache.",
        "memory",
    )


def _limit(case: Case, side: Side, reason: str, how: str, metric: str) -> FoundReason | None:
    """The side that is the busier one, while the kernel does not mostly wait."""
    utilisation = case.utilisation
    used = utilisation.compute if side == "compute" else utilisation.memory
    if used is None or utilisation.top < MIN_BUSY_SHARE or used < utilisation.top - 1e-6 or _is_balanced(case):
        return None
    near = ", near the peak" if used >= NEAR_PEAK else ""
    return FoundReason(
        reason,
        f"{side}-bound{near}{no_fault(case)}: {_at(case, utilisation.limiter(side), used)}",
        in_order(1.0, 1 + 0.25 * (cap_of(utilisation) - 1), cap_of(utilisation)),
        how,
        (case.metrics.name(metric),),
    )


def healthy(case: Case) -> FoundReason | None:
    """Compute and memory are both well used."""
    utilisation = case.utilisation
    if utilisation.top < MIN_BUSY_SHARE:
        return None
    return FoundReason(
        "healthy",
        f"Nothing stands out: compute {100 * (utilisation.compute or 0.0):.2f} % and memory "
        f"{100 * (utilisation.memory or 0.0):.2f} % of peak are both in use{no_fault(case)}",
        in_order(1.0, 1 + 0.25 * (cap_of(utilisation) - 1), cap_of(utilisation)),
        "Leave it as it is, unless it can be fused with its neighbours or do less work.",
        (case.metrics.name("sm"), case.metrics.name("memory")),
    )


LATENCY = Reason(
    "latency",
    "Do warps wait, with every unit idle?",
    ("sm", "memory"),
    "no unit over 60 % busy, two thirds of what good kernels reach, and no flaw that gains more than the waits; or "
    "only the pipe of block barriers is, and warps wait at them",
    waiting,
    "fallback",
)
INSTRUCTION_BOUND = Reason(
    "instruction_bound",
    "Is the number of instructions the limit?",
    ("issue",),
    "issue slots or a pipe without FLOPs over 60 % busy and above all others",
    instructions,
    "fallback",
)
COMPUTE_PEAK = Reason(
    "compute_peak",
    "Is an arithmetic unit the limit?",
    ("sm",),
    "over 60 % and above memory; near from 80 %",
    peak_compute,
    "end",
)
MEMORY_BANDWIDTH = Reason(
    "memory_bandwidth",
    "Is a memory level the limit?",
    ("memory",),
    "over 60 % and above compute; near from 80 %",
    bandwidth,
    "end",
)
HEALTHY = Reason(
    "healthy",
    "Are compute and memory both in use?",
    ("sm", "memory"),
    "both within 15 points, the higher between 60 and 80 %",
    healthy,
    "end",
)
