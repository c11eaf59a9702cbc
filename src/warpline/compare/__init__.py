"""Compares two runs: aligns their work, explains the difference exactly, and says whether it is real.

The package is callable.

>>> warpline.compare("before.json.gz", "after.json.gz").verdict
"""

from __future__ import annotations

import sys
from types import ModuleType

from warpline.compare.api import compare


class Compare(ModuleType):
    """The type of `warpline.compare`: this package, made callable."""

    __call__ = staticmethod(compare)


sys.modules[__name__].__class__ = Compare
