"""Nsight Compute: which kernels to profile, and the reason inside each one.

The package is callable, because `warpline.dive` is both a function and the folder of its modules.

>>> warpline.dive("report.ncu-rep").kernels
>>> warpline.dive.compared("before.ncu-rep", "after.ncu-rep")
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from warpline.dive.compare import DiveComparison
    from warpline.dive.model import Dive
    from warpline.trace.trace import Trace


def dive(report: str | Path, trace: str | Path | Trace | None = None) -> Dive:
    """Say why each kernel of a report of Nsight Compute (.ncu-rep or a CSV page) is slow inside.

    With a trace, the gains are carried to its step.

    >>> warpline.dive("report.ncu-rep").kernels.select("name", "reason", "gain")
    """
    from warpline.dive.answer import dive_files  # noqa: PLC0415 - importing warpline stays fast
    from warpline.trace.open import open_trace  # noqa: PLC0415

    opened = open_trace(trace) if isinstance(trace, str | Path) else trace
    return dive_files([report], opened)


def compared(before: str | Path, after: str | Path) -> DiveComparison:
    """What changed between two reports of Nsight Compute, and which change explains the time.

    >>> warpline.dive.compared("before.ncu-rep", "after.ncu-rep").kernels[0].sentence
    """
    from warpline.dive.compare import compare  # noqa: PLC0415 - importing warpline stays fast
    from warpline.sources.ncu import read_report  # noqa: PLC0415

    return compare(read_report(before), read_report(after))


class DiveModule(ModuleType):
    """The type of `warpline.dive`: this package, made callable."""

    __call__ = staticmethod(dive)
    compared = staticmethod(compared)


sys.modules[__name__].__class__ = DiveModule
