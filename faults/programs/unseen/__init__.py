"""Unseen cases: models in plain torch, in training and serving, with the faults that engineers meet most often."""

from __future__ import annotations

from faults.programs.case import cases_of

from . import dispatch, healthy, kernels, loading, memory, sync, transfer

CASES = cases_of(dispatch, sync, kernels, transfer, loading, memory, healthy)
