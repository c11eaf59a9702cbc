"""Steps with one planted fault each, the same work cured, and healthy steps that look guilty.

Each case is a builder in the module of its cause. They need torch and a CUDA device to run, and neither to be
listed:

>>> from warpline.lab.faults import CASES
>>> [case.name for case in CASES if case.cause == "sync"]
"""

from __future__ import annotations

from types import ModuleType

from warpline.lab.faults import (
    cold_start,
    dispatch,
    fusion,
    healthy,
    loading,
    memory,
    precision,
    shape,
    sync,
    transfer,
    traps,
)
from warpline.lab.faults.case import CAUSES, Case, Step


def _cases_of(module: ModuleType) -> list[Case]:
    return [value for value in vars(module).values() if isinstance(value, Case)]


CASES: tuple[Case, ...] = tuple(
    case
    for module in (
        dispatch, sync, precision, fusion, shape, transfer, loading, memory, cold_start, healthy, traps
    )
    for case in _cases_of(module)
)  # fmt: skip

__all__ = ["CASES", "CAUSES", "Case", "Step"]
