"""Studio cases: written without a look at the rules, the usual mistakes of ordinary PyTorch programs in plain form."""

from __future__ import annotations

from faults.programs.case import cases_of

from . import cold_start, dispatch, healthy, kernels, loading, memory, sync, transfer

CASES = cases_of(dispatch, sync, kernels, transfer, loading, memory, cold_start, healthy)
