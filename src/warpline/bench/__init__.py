"""Honest timing: `warpline.bench(fn)`. Imports nothing but the standard library, and torch where it is there already.

The package is callable, so that `warpline.bench(fn)` and `warpline.bench.compare(a, b)` go together.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from warpline.bench.api import bench, compare
from warpline.bench.result import Comparison, Note, Result

__all__ = ["Comparison", "Note", "Result", "bench", "compare"]


class _Callable(ModuleType):
    def __call__(self, *args: Any, **options: Any) -> Result:
        return bench(*args, **options)


sys.modules[__name__].__class__ = _Callable
