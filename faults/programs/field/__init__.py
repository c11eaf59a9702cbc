"""Field cases: mistakes as they are made in real programs, written without a look at the rules that judge them."""

from __future__ import annotations

from faults.programs.case import cases_of
from faults.programs.field import (
    cold_start,
    dispatch,
    healthy,
    kernels,
    layout,
    loading,
    memory,
    sync,
    transfer,
)

CASES = cases_of(dispatch, sync, kernels, layout, transfer, loading, memory, cold_start, healthy)
