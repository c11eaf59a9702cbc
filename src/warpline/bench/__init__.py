"""Reliable timing: `warpline.bench(fn)`.

The package is callable, so that `warpline.bench(fn)` and `warpline.bench.compare(a, b)` go together.

>>> warpline.bench(torch.mm, a, b)
>>> warpline.bench.compare(eager, compiled, x)
"""

from __future__ import annotations

import sys
from types import ModuleType

from warpline.bench.api import bench, compare
from warpline.bench.cold import ColdStartTimes, Orders, cold_start
from warpline.bench.result import BenchNote, PairedComparison, Result

__all__ = ["BenchNote", "ColdStartTimes", "Orders", "PairedComparison", "Result", "bench", "cold_start", "compare"]


class Bench(ModuleType):
    """The type of `warpline.bench`: this package, made callable."""

    __call__ = staticmethod(bench)
    bench = staticmethod(bench)
    compare = staticmethod(compare)
    cold_start = staticmethod(cold_start)


sys.modules[__name__].__class__ = Bench
