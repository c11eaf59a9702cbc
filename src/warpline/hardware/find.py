"""Which chip a trace was recorded on, from what the trace says of its device."""

from __future__ import annotations

import re

from warpline.hardware.chips import Chip, chips

_SLICE = re.compile(r"\bMIG\b", re.IGNORECASE)
"""A slice of a chip (Multi-Instance GPU) has a fraction of its peaks."""


def find_device(name: str | None, sm_count: int | None = None, compute: tuple[int, int] | None = None) -> Chip | None:
    """The chip with this name, SM count and compute capability; None rather than a guess.

    A name decides, unless the SM count or compute capability contradict it. Without a name, they must fit one
    chip alone.
    """
    text = (name or "").strip()
    if _SLICE.search(text):
        return None
    if text:
        candidates = [chip for chip in chips() if chip.is_called(text)]
    elif sm_count is not None and compute is not None:
        candidates = list(chips())
    else:
        return None
    fitting = [
        chip
        for chip in candidates
        if (sm_count is None or chip.sm_count == sm_count) and (compute is None or chip.compute == compute)
    ]
    return fitting[0] if len(fitting) == 1 else None

