"""The kernels of a recorded rung, decoded: which of them are new."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

MAX_NAMED = 3
"""Kernels that a cell names; `warpline ladder` lists all."""


def kernels_of(trace: Path | None) -> list[str]:
    """The kernels of a step, the longest first; none if nothing was recorded or nothing ran on a GPU."""
    if trace is None:
        return []
    from warpline.compare.ladder import kernels_only_in  # noqa: PLC0415 - the analysis side
    from warpline.compare.typical_step import typical_step  # noqa: PLC0415
    from warpline.trace.open import open_trace  # noqa: PLC0415

    opened = open_trace(trace)
    return [kernel.short for kernel in kernels_only_in(typical_step(opened), None)] if len(opened.gpu) else []


def new_kernels(kernels: Sequence[str], before: Sequence[str]) -> str:
    """Those that the rung before does not have, in a few words."""
    new = [name for name in dict.fromkeys(kernels) if name not in before]
    more = f" and {len(new) - MAX_NAMED} more" if len(new) > MAX_NAMED else ""
    return ", ".join(new[:MAX_NAMED]) + more
