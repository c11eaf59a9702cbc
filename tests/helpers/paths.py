"""Where the tests find things."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
SUITES = ROOT / "faults" / "recordings"
"""Recorded suites of planted faults, a folder each."""
SHARED = Path(os.environ.get("WARPLINE_SHARED", ROOT.parent / "shared")) / "data"

RECORDINGS = [*sorted((DATA / "kineto").glob("*.gz")), *sorted((DATA / "nsys").glob("*.gz"))]
"""One profile of each kind that we recorded; the planted faults have tests of their own."""


def recorded_case(folder: str, name: str) -> dict[str, Any]:
    """What the manifest of a suite of planted faults says of one case."""
    cases = json.loads((SUITES / folder / "faults.json").read_text(encoding="utf-8"))["cases"]
    (found,) = [case for case in cases if case["name"] == name]
    return dict(found)
