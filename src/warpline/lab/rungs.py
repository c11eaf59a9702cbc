"""The kernels of a recorded rung, decoded: which of them are new."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

MAX_NAMED = 3
"""Kernels that a cell names; `warpline ladder` lists all."""


def kernels_of(trace: Path | None) -> list[str]:
    """Names of the kernels of a step, the longest first; none if nothing was recorded or nothing ran on a GPU."""
    if trace is None:
        return []
    from warpline.compare.ladder import kernels_only_in  # noqa: PLC0415 - the analysis side
    from warpline.compare.typical_step import typical_step  # noqa: PLC0415
    from warpline.trace.open import open_trace  # noqa: PLC0415

    opened = open_trace(trace)
    return [kernel.name for kernel in kernels_only_in(typical_step(opened), None)] if len(opened.gpu) else []


def new_kernels(kernels: Sequence[str], before: Sequence[str]) -> str:
    """Those that the rung before does not have, in a few words."""
    new = [name for name in kernels if name not in before]
    more = f" and {len(new) - MAX_NAMED} more" if len(new) > MAX_NAMED else ""
    return ", ".join(map(_brief, new[:MAX_NAMED])) + more


def _brief(name: str) -> str:
    """A matmul by its tile, any other kernel by what it is called."""
    from warpline.compare.parts import short  # noqa: PLC0415 - the analysis side
    from warpline.kernels import identify  # noqa: PLC0415

    known = identify(name)
    if known.kernel_class != "gemm" or known.tile is None:
        return short(name)
    words = (known.library, "matmul", known.tile, known.dtype.a, known.layout)
    return " ".join(word for word in words if word)
