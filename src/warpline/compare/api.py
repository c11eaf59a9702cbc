"""`warpline.compare(a, b)`: the comparison as a function."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from warpline.compare.comparison import Comparison
    from warpline.trace.trace import Trace


def compare(a: Any, b: Any, *, least_effect: float | None = None) -> Comparison:
    """Compare two programs, or one before and after a change. Each side is a path, a trace, or a list of either (runs).

    >>> warpline.compare("before.json.gz", "after.json.gz").verdict
    >>> warpline.compare(["a1.json.gz", "a2.json.gz"], ["b1.json.gz", "b2.json.gz"]).ratio.expected
    """
    from warpline.compare import comparison  # noqa: PLC0415 - polars loads when it is used

    effect = comparison.LEAST_EFFECT if least_effect is None else least_effect
    return comparison.compare(_opened(a), _opened(b), effect)


def _opened(side: Any) -> list[Trace]:
    from warpline.trace.open import open_trace  # noqa: PLC0415 - polars loads when it is used

    if isinstance(side, str | Path):
        return [open_trace(side)]
    if isinstance(side, Sequence):
        return [trace for one in side for trace in _opened(one)]
    return [getattr(side, "linked", side)]
