"""Kernels of a transformer layer that torch launches, as controls: they have no planted flaw."""

from __future__ import annotations

from typing import Any

from faults.kernels.case import Buffers, Call, KernelCase
from faults.kernels.planted import floats


def _halves(torch: Any, *shape: int) -> Any:
    return (floats(torch, *shape) - 0.5).half()


def _matmul_buffers(torch: Any) -> Buffers:
    return {"a": _halves(torch, 8192, 4096), "b": _halves(torch, 4096, 4096), "c": _halves(torch, 8192, 4096)}


def _activation_buffers(torch: Any) -> Buffers:
    x = _halves(torch, 8192, 16384)
    return {"x": x, "y": torch.zeros_like(x)}


def _norm_buffers(torch: Any) -> Buffers:
    x = _halves(torch, 8192, 4096)
    weight = torch.ones(4096, device="cuda", dtype=torch.float16)
    return {"x": x, "weight": weight, "bias": torch.zeros_like(weight), "y": torch.zeros_like(x)}


def _matmul(torch: Any, buffers: Buffers) -> None:
    torch.matmul(buffers["a"], buffers["b"], out=buffers["c"])


def _silu(torch: Any, buffers: Buffers) -> None:
    torch.ops.aten.silu.out(buffers["x"], out=buffers["y"])


def _layer_norm(torch: Any, buffers: Buffers) -> None:
    buffers["y"] = torch.nn.functional.layer_norm(buffers["x"], (4096,), buffers["weight"], buffers["bias"])


def _softmax(torch: Any, buffers: Buffers) -> None:
    torch.softmax(buffers["x"], -1, out=buffers["y"])


PLANTED_CONTROLS = (
    KernelCase("torch_matmul", "compute_peak", _matmul_buffers, ("c",), Call(_matmul), also=("healthy",)),
    KernelCase(
        "torch_silu",
        "memory_bandwidth",
        _activation_buffers,
        ("y",),
        Call(_silu),
        also=("healthy", "latency", "instruction_bound"),
    ),
    KernelCase(
        "torch_layer_norm",
        "memory_bandwidth",
        _norm_buffers,
        ("y",),
        Call(_layer_norm),
        also=("healthy", "latency", "instruction_bound"),
    ),
)
UNSEEN_CONTROLS = (
    KernelCase(
        "torch_softmax",
        "memory_bandwidth",
        _activation_buffers,
        ("y",),
        Call(_softmax),
        also=("healthy", "latency", "instruction_bound"),
    ),
)
