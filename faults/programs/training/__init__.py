"""Training cases: written without a look at the rules, after programs that train, evaluate and log."""

from __future__ import annotations

from faults.programs.case import cases_of
from faults.programs.training import (
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
