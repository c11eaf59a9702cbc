"""Whether FP32 matmuls and convolutions run in TF32.

Torch has two ways to set it, and its older getters raise an error where a program has used both: the newer attribute
is read where there is one.
"""

from __future__ import annotations

from typing import Any


def matmuls_in_tf32(torch: Any) -> bool:
    """Whether cuBLAS may use TF32."""
    matmul = torch.backends.cuda.matmul
    # Before torch 2.9
    if not hasattr(matmul, "fp32_precision"):
        return bool(matmul.allow_tf32)
    return bool(matmul.fp32_precision == "tf32")


def convolutions_in_tf32(torch: Any) -> bool:
    """Whether cuDNN may use TF32, as it does by default."""
    cudnn = torch.backends.cudnn
    if not hasattr(cudnn, "conv"):
        return bool(cudnn.allow_tf32)
    return bool(cudnn.conv.fp32_precision == "tf32")
