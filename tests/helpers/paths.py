"""Where the tests find things."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
DEMO = ROOT / "src" / "warpline" / "data" / "demo.json.xz"
"""The bundled trace."""
SUITES = ROOT / "faults" / "recordings"
"""Recorded suites of planted faults, a folder each."""
SHARED = Path(os.environ.get("WARPLINE_SHARED", ROOT.parent / "shared")) / "data"

RECORDINGS = [*sorted((DATA / "kineto").glob("*.gz")), *sorted((DATA / "nsys").glob("*.gz"))]
"""One profile of each kind that we recorded; the planted faults have tests of their own."""
