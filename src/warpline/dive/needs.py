"""The bytes that a kernel's op needs, by the shapes in a trace: what DRAM moves beyond them was moved again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from warpline.analyses.roofline.pieces import Gathered
from warpline.analyses.roofline.table import priced
from warpline.dive.match_launches import Match
from warpline.trace.columns import integers
from warpline.trace.trace import Trace


def needed_bytes(trace: Trace, matches: Sequence[Match | None]) -> list[float | None]:
    """For each match the bytes of its op; None where the op is unknown, estimated, or launches other kernels too."""
    gathered = Gathered(trace)
    rows, is_kernel = integers(gathered.gpu["row"]), gathered.is_kernel
    known: dict[int, float] = {}
    for piece, work, _, _ in priced(gathered, None):
        places = np.array(piece.rows)
        kernels = places[is_kernel[places]]
        if len(kernels) == 1 and not work.estimate and work.bytes:
            known[int(rows[kernels[0]])] = float(work.bytes)
    return [
        None if match is None else next((known[row] for row in match.rows if row in known), None) for match in matches
    ]
