"""Nsight Compute: which kernels to profile, and the reason inside each one.

The package is callable.

>>> warpline.dive("report.ncu-rep").kernels
>>> warpline.dive.compared("before.ncu-rep", "after.ncu-rep")
"""

from __future__ import annotations

import sys
from types import ModuleType

from warpline.dive.api import compare, dive


class DiveModule(ModuleType):
    """The type of `warpline.dive`: this package, made callable."""

    __call__ = staticmethod(dive)
    compared = staticmethod(compare)


sys.modules[__name__].__class__ = DiveModule
del compare
