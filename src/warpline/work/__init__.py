"""The minimum work of an op: FLOPs by type and unit, and bytes, from its shapes, strides and types."""

from warpline.work.model import MATRIX, VECTOR, Argument, Flops, KernelLaunch, OpCall, Tensor, Work
from warpline.work.parse import call_from_kineto
from warpline.work.registry import known_ops, why_no_work, work_of

__all__ = [
    "MATRIX",
    "VECTOR",
    "Argument",
    "Flops",
    "KernelLaunch",
    "OpCall",
    "Tensor",
    "Work",
    "call_from_kineto",
    "known_ops",
    "why_no_work",
    "work_of",
]
