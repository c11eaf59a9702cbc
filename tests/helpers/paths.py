"""Where the tests find things."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
DEMO = ROOT / "src" / "warpline" / "data" / "demo.json.xz"
"""The bundled trace."""
SUITES = ROOT / "faults" / "recordings"
"""Recorded suites of planted faults, a folder each."""
NO_COMPILER = ROOT / "tests" / "helpers" / "no_compiler"
PROGRAM_PATH = f"{ROOT / 'src'}{os.pathsep}{NO_COMPILER}"
"""PYTHONPATH of a program with torch that compiles nothing: see `no_compiler/sitecustomize.py`."""
SHARED = Path(os.environ.get("WARPLINE_SHARED", ROOT.parent / "shared")) / "data"

EVERY_PROFILE = "WARPLINE_EVERY_PROFILE" in os.environ
"""Whether checks of many profiles take all of them, which takes minutes, or a sample."""

RECORDINGS = [*sorted((DATA / "kineto").glob("*.gz")), *sorted((DATA / "nsys").glob("*.gz"))]
"""One profile of each kind that we recorded; the planted faults have tests of their own."""


def sampled(profiles: Sequence[T], every: int) -> Sequence[T]:
    """One in so many, from the whole of an ordered list; all of them with WARPLINE_EVERY_PROFILE=1."""
    return profiles if EVERY_PROFILE else profiles[::every]
