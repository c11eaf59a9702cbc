"""Matmuls that run on the FP32 or FP16 pipes while the tensor cores idle."""

from __future__ import annotations

from warpline.dive.gains import gain_of_less_work, in_order
from warpline.dive.kernel_metrics import KernelMetrics
from warpline.dive.model import FoundReason
from warpline.dive.reasons.base import Case, Reason
from warpline.dive.reasons.fp64 import bytes_per_lane
from warpline.hardware import find_device
from warpline.kernels import identify

MAX_TENSOR = 0.01
MIN_FMA_SHARE = 0.3
"""Fused multiply-adds among the instructions: a matmul has little else."""
OPERANDS = (1.0, 64.0)
"""Fused multiply-adds for each shared-memory or global load: a matmul loads operands again and again."""
MIN_REUSE = 4.0
"""Bytes from L1 and shared memory for each byte of DRAM: operands of a matmul are used many times."""
MATMUL_CLASSES = frozenset({"gemm", "conv", "attention"})
"""Classes of kernels that multiply matrices. Some kernels of mixtures of experts only route tokens."""
SINGLE_BYTES = 4
SPEED_UP = 8.0
"""TF32 tensor peak over FP32 peak on A100 and H100; used where the chip is unknown."""


def _peak_ratio(metrics: KernelMetrics) -> float:
    """The tensor peak for the data's width over the vector peak."""
    chip = find_device(metrics.kernel.device or None)
    width = bytes_per_lane(metrics)
    narrow = bool(metrics.get("hfma")) or (width is not None and width < 0.9 * SINGLE_BYTES)
    if chip is None or "fp32" not in chip.vector:
        return SPEED_UP
    tensor = chip.tensor.get("fp16" if narrow else "tf32")
    return SPEED_UP if tensor is None else tensor.value / chip.vector["fp32"].value


def _is_matmul(metrics: KernelMetrics) -> tuple[bool, str]:
    """Whether the kernel multiplies matrices: by its name, or by how it loads and multiplies."""
    if identify(metrics.kernel.name).kernel_class in MATMUL_CLASSES:
        return True, "its name is that of a matmul"
    share, cycles = metrics.fma_share, metrics.get("cycles")
    loads = metrics.total("shared_load_instructions", "global_load_instructions")
    shared = metrics.get("shared_load_instructions")
    if share is None or share < MIN_FMA_SHARE or not loads or not shared or cycles is None:
        return False, ""
    fused = (metrics.total("ffma", "hfma") or 0.0) * cycles / 32
    if not OPERANDS[0] <= fused / loads <= OPERANDS[1]:
        return False, ""
    inside = 128 * shared + (metrics.requested_bytes or 0.0)
    if not metrics.dram_bytes or inside / metrics.dram_bytes < MIN_REUSE:
        return False, ""
    return True, "it multiplies and adds operands that it loads again and again, as a matmul does"


def look(case: Case) -> FoundReason | None:
    """Moves the multiply-adds to the tensor cores."""
    metrics, utilisation = case.metrics, case.utilisation
    tensor = utilisation.shares.get("tensor")
    if (
        tensor is None
        or tensor > MAX_TENSOR
        or utilisation.limiter("compute") not in {"fma", "issue", "lsu", "alu", "sm"}
    ):
        return None
    is_matmul, why = _is_matmul(metrics)
    if not is_matmul:
        return None
    ratio = _peak_ratio(metrics)
    arithmetic = dict.fromkeys(("fma", "issue", "lsu", "alu", "xu", "uniform", "control", "sm"), 1 / ratio)
    moved = ("l1", "memory", "l2")
    # Usually the tiles grow with the speed. At worst as many bytes of operands come from L1 and shared memory as now.
    # At the peak the tiles are as large as the chip allows, and only the FLOPs and the bytes of DRAM are left.
    worst = gain_of_less_work(metrics, utilisation, arithmetic)
    usual = gain_of_less_work(metrics, utilisation, arithmetic | dict.fromkeys(moved, 1 / ratio))
    best = gain_of_less_work(metrics, utilisation, dict.fromkeys((*arithmetic, *moved), 0.0) | {"fma": 1 / ratio})
    gain = in_order(worst.low, usual.expected, best.high)
    return FoundReason(
        "tensor_cores_unused",
        f"The tensor cores idle ({100 * tensor:.1f} %) while the FP32 pipe is "
        f"{100 * utilisation.shares.get('fma', 0.0):.0f} % busy: {why}",
        gain,
        "Use a library GEMM or tl.dot in fp16, bf16 or TF32 (torch.set_float32_matmul_precision('high'), "
        "input_precision='tf32'), or mma instructions; sizes must be multiples of 16 bytes.",
        (metrics.name("tensor"), metrics.name("fma")),
    )


REASON = Reason(
    "tensor_cores_unused",
    "Do matmuls use the tensor cores?",
    ("tensor", "fma"),
    "tensor pipe under 1 %, in a kernel whose name or whose loads and multiply-adds are those of a matmul",
    look,
)
