"""What a kernel case is: a flawed form, a fixed form, the reason that is true of each, and the data they run on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Buffers = dict[str, Any]
"""Tensors by name."""
FLAWED = "flawed"
FIXED = "fixed"


@dataclass(frozen=True, slots=True)
class Cuda:
    """A launch of a kernel in `cuda/FILE.cu`. Its entry point is the file's name and the form's."""

    file: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    arguments: tuple[str | int | float, ...]
    """A buffer's name, a 32-bit integer or a 32-bit float for each parameter."""
    shared_bytes: int = 0
    """Dynamic shared memory."""


@dataclass(frozen=True, slots=True)
class Call:
    """A launch through Triton or torch."""

    run: Callable[[Any, Buffers], object]
    """Takes torch and the buffers."""


Form = Cuda | Call


@dataclass(frozen=True, slots=True)
class KernelCase:
    """One flaw and its fix. A case without a fixed form is a control: there is nothing to gain."""

    name: str
    reason: str
    """The reason that is true of the flawed form (of the only form, for a control)."""
    buffers: Callable[[Any], Buffers]
    """Takes torch, and allocates the inputs and outputs."""
    outputs: tuple[str, ...]
    """The buffers that both forms must fill alike. They are zeroed before each form is checked."""
    flawed: Form
    fixed: Form | None = None
    also: tuple[str, ...] = ()
    """Other reasons that are true of the flawed form."""
    fixed_reasons: tuple[str, ...] = ("healthy", "memory_bandwidth", "compute_peak", "instruction_bound")
    """What is true of the fixed form: nothing wrong, or a limit that is real."""
    tolerance: float = 1e-5
    """The largest difference between the forms' outputs, relative to the largest output."""

    def forms(self) -> dict[str, Form]:
        """The forms by name."""
        return {FLAWED: self.flawed} if self.fixed is None else {FLAWED: self.flawed, FIXED: self.fixed}


def grid(x: int, y: int = 1) -> tuple[int, int, int]:
    """A grid or block of up to two dimensions."""
    return (x, y, 1)
