"""Double precision by accident: FP64 arithmetic on data of 32 bits."""

from __future__ import annotations

from warpline.dive.gains import gain_of_less_work
from warpline.dive.kernel_metrics import KernelMetrics
from warpline.dive.metrics import WARP
from warpline.dive.model import FoundReason
from warpline.dive.reasons.base import Case, Reason

MIN_SHARE = 0.1
"""Of the FP64 pipe's peak, or of the instructions."""
DOUBLE_BYTES = 8
PEAK_RATIO = 2.0
"""FP32 over FP64 on chips with most FP64 units (A100, H100); others have 32 or 64. Used where it is unknown."""


def bytes_per_lane(metrics: KernelMetrics) -> float | None:
    """Bytes that a lane loads or stores with one instruction, on average."""
    instructions = metrics.total("global_load_instructions", "global_store_instructions")
    if not instructions or metrics.requested_bytes is None:
        return None
    return metrics.requested_bytes / instructions / (metrics.get("threads_per_instruction") or WARP)


def _is_deliberate(metrics: KernelMetrics) -> bool:
    """Whether the data itself is double: eight bytes a lane, and no conversion between the formats."""
    width, conversions = bytes_per_lane(metrics), metrics.opcode_share("F2F")
    if conversions is not None:
        return conversions < 0.01 and (width is None or width > 0.9 * DOUBLE_BYTES)
    return width is not None and width > 0.9 * DOUBLE_BYTES


def look(case: Case) -> FoundReason | None:
    """Moves the FP64 work to the FP32 pipe, and drops the conversions."""
    metrics, utilisation = case.metrics, case.utilisation
    busy = utilisation.shares.get("fp64")
    if busy is None or busy < MIN_SHARE or _is_deliberate(metrics):
        return None
    single, double = metrics.get("ffma_peak"), metrics.get("dfma_peak")
    ratio = max(1.0, single / double) if single and double else PEAK_RATIO
    moved = busy / ratio
    fma = utilisation.shares.get("fma", 0.0)
    left = {"fp64": 0.0, "fma": (fma + moved) / fma if fma > 0 else 1.0, "xu": 0.0, "issue": 1 / ratio, "sm": 1 / ratio}
    left["alu"] = 1 / ratio
    gain = gain_of_less_work(metrics, utilisation, left, adds=False)
    return FoundReason(
        "fp64",
        f"Arithmetic runs in double precision: the FP64 pipe is {100 * busy:.0f} % busy, while the data is of 32 bits "
        "or less",
        gain,
        "Write float constants with an f (0.5f), call the float functions (sqrtf, expf, powf), and keep double scalars "
        "out of the arguments; nvcc -Xptxas -warn-double-usage names the kernels.",
        (metrics.name("fp64"),),
    )


REASON = Reason(
    "fp64",
    "Is there double-precision arithmetic on single-precision data?",
    ("fp64",),
    "FP64 pipe over 10 % busy, and accesses of at most 4 bytes a lane or conversions between the formats",
    look,
)
