"""Compares two runs: aligns their work, explains the difference exactly, and says whether it is real.

The package is callable, because `warpline.compare` is both a function and the folder of its modules.

>>> warpline.compare("before.json.gz", "after.json.gz").verdict
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from warpline.compare.comparison import Comparison
    from warpline.trace.trace import Trace


def compare(a: Any, b: Any, *, least_effect: float | None = None) -> Comparison:
    """Compare two programs, or one before and after a change. Each side is a path, a trace, or a list of either (runs).

    >>> warpline.compare("before.json.gz", "after.json.gz").verdict
    >>> warpline.compare(["a1.json.gz", "a2.json.gz"], ["b1.json.gz", "b2.json.gz"]).ratio.expected
    """
    from warpline.compare import comparison  # noqa: PLC0415 - importing warpline stays fast
    from warpline.estimate import LEAST_EFFECT  # noqa: PLC0415 - importing warpline stays fast

    effect = LEAST_EFFECT if least_effect is None else least_effect
    return comparison.compare(_traces(a), _traces(b), effect)


def _traces(side: Any) -> list[Trace]:
    from warpline.trace.open import open_trace  # noqa: PLC0415 - importing warpline stays fast

    if isinstance(side, str | Path):
        return [open_trace(side)]
    if isinstance(side, Sequence):
        return [trace for one in side for trace in _traces(one)]
    return [side]


class CompareModule(ModuleType):
    """The type of `warpline.compare`: this package, made callable."""

    __call__ = staticmethod(compare)


sys.modules[__name__].__class__ = CompareModule
