"""Held-out cases: written without a look at the rules that judge them, on other workloads than the first suite's."""

from __future__ import annotations

from faults.programs.case import cases_of
from faults.programs.held_out import (
    cold_start,
    dispatch,
    healthy,
    kernels,
    loading,
    memory,
    sync,
    transfer,
)

CASES = cases_of(dispatch, sync, kernels, transfer, loading, memory, cold_start, healthy)
