"""Which optimizers a step runs, and what to write so that they update many parameters with one kernel."""

from __future__ import annotations

import re

import polars as pl

from warpline.findings.evidence import Evidence
from warpline.trace.columns import Bools

RANGE = r"^Optimizer\.step#(.+)\.step$"
"""torch.optim names the range around a step after the optimizer's class."""
WITH_FUSED = ("Adam", "AdamW", "SGD")
"""Optimizers of torch.optim that take fused=True on a GPU (torch 2.11)."""


def fused_version(evidence: Evidence, kernels: Bools) -> str | None:
    """What to write for the optimizers that launched these kernels; None where no range names them."""
    names = evidence.trace.ranges["name"].cast(pl.String).str.extract(RANGE).drop_nulls().unique().sort()
    mine = [name for name in names if (kernels & _steps_of(evidence, name)).any()]
    return "; ".join(_advice(name) for name in mine) or None


def _steps_of(evidence: Evidence, name: str) -> Bools:
    return evidence.scene.within_ranges(rf"^Optimizer\.step#{re.escape(name)}\.step$")


def _advice(name: str) -> str:
    if name in WITH_FUSED:
        return f"torch.optim.{name}(model.parameters(), …, fused=True), without foreach=False"
    return (
        f"torch.optim has no fused {name}: step = torch.compile(optimizer.step), torch._foreach_ functions in a step "
        "of your own, or torch.optim.AdamW(model.parameters(), …, fused=True) if that will do"
    )
