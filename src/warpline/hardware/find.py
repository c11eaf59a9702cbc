"""Find the chip of a trace from its device facts."""

from __future__ import annotations

import re

from warpline.hardware.chips import Chip, chips

_SLICE = re.compile(r"\bMIG\b", re.IGNORECASE)
"""A slice of a chip (Multi-Instance GPU) has a fraction of its peaks."""


def find_device(name: str | None, sm_count: int | None = None, compute: tuple[int, int] | None = None) -> Chip | None:
    """The chip with this name, SM count and compute capability; None if unsure.

    A name decides, unless the SM count or compute capability contradict it. Without a name, they must match exactly one
    chip.
    """
    text = (name or "").strip()
    if _SLICE.search(text):
        return None
    if not text and (sm_count is None or compute is None):
        return None
    fitting = [
        chip
        for chip in chips()
        if (sm_count is None or chip.sm_count == sm_count) and (compute is None or chip.compute == compute)
    ]
    called = [chip for chip in fitting if chip.is_called(text)] if text else fitting
    return called[0] if len(called) == 1 else None
