"""What the experiment knows of a Triton kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Tensors = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class TritonKernel:
    """A kernel with its reference and a bad version of it."""

    name: str
    computes: str
    """As a formula."""
    reference: Callable[..., Any]
    """In plain torch: what it computes, and what torch.compile compiles."""
    run: Callable[..., Any]
    bad: Callable[..., Any]
    fault: str
    """What is wrong with the bad version, in a sentence."""
    inputs: Callable[..., Tensors]
    """Its arguments: `inputs(torch, rows, columns, dtype, device, strided)`."""
    passes: float
    """How many times the size of its first argument it must read and write."""


def matrix(torch: Any, rows: int, columns: int, dtype: Any, device: str, strided: bool) -> Any:
    """A matrix of random numbers; a strided one is every second column of a wider one."""
    if not strided:
        return torch.randn(rows, columns, device=device).to(dtype)
    return torch.randn(rows, 2 * columns, device=device).to(dtype)[:, ::2]


def flat(tensor: Any) -> Any:
    """A contiguous tensor as one long row, so that its shape does not matter; else its rows."""
    return tensor.reshape(1, -1) if tensor.is_contiguous() else tensor.reshape(-1, tensor.shape[-1])
