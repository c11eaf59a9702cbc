"""Harbour cases: models in training and in service, sixteen of them slow in one way and eight of them well.

Five use Hugging Face models, built from a config with random weights, so that `transformers` must be installed to
record them.
"""

from __future__ import annotations

from faults.programs.case import cases_of

from . import cold_start, dispatch, healthy, kernels, loading, memory, sync, transfer

CASES = cases_of(dispatch, sync, kernels, transfer, loading, memory, cold_start, healthy)
