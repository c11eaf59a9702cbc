"""Diagnoses that many tests only look at: made once in a worker."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from warpline.findings.diagnosis import Diagnosis, diagnose
from warpline.trace.open import open_trace


@cache
def diagnosed(path: Path) -> Diagnosis:
    """With findings; nobody may change it."""
    return diagnose(open_trace(path, cache=False), why=True)
