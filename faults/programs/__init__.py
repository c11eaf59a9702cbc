"""Steps with one planted fault each, the same work fixed, and healthy steps that look guilty.

Each case is a builder in the module of its cause. They need torch and a CUDA device to run, and neither to be
listed:

>>> from faults.programs import CASES
>>> [case.name for case in CASES if case.cause == "sync"]

The suites: the cases that the rules were written with, held-out ones that were written without a look at the rules,
and, written the same way, field ones after the mistakes of real programs, training ones after those of research, and
serving ones after those of inference and numerical programs; studio, textbook and workshop ones are ordinary programs
with ordinary faults; sealed, clinic, ward and harbour ones are real models, and unseen ones are models in plain torch.
"""

from __future__ import annotations

from faults.programs import (
    clinic,
    cold_start,
    dispatch,
    field,
    fusion,
    harbour,
    healthy,
    held_out,
    loading,
    memory,
    precision,
    sealed,
    serving,
    shape,
    studio,
    sync,
    textbook,
    training,
    transfer,
    traps,
    unseen,
    ward,
    workshop,
)
from faults.programs.case import CAUSES, Case, Step, cases_of

CASES = cases_of(dispatch, sync, precision, fusion, shape, transfer, loading, memory, cold_start, healthy, traps)
SUITES = {
    "planted": CASES,
    "clinic": clinic.CASES,
    "held_out": held_out.CASES,
    "field": field.CASES,
    "harbour": harbour.CASES,
    "sealed": sealed.CASES,
    "serving": serving.CASES,
    "studio": studio.CASES,
    "textbook": textbook.CASES,
    "training": training.CASES,
    "unseen": unseen.CASES,
    "ward": ward.CASES,
    "workshop": workshop.CASES,
}

__all__ = ["CASES", "CAUSES", "SUITES", "Case", "Step"]
