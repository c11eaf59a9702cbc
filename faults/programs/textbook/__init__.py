"""Textbook cases: one compact program for each rule, from transformers, convolutional networks and numerical work."""

from __future__ import annotations

from faults.programs.case import cases_of

from . import cold_start, dispatch, healthy, kernels, loading, memory, sync, transfer

CASES = cases_of(dispatch, sync, kernels, transfer, loading, memory, cold_start, healthy)
