"""Where the local record lies: the runs of the gate, and the predictions that met a measurement."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

VARIABLE = "WARPLINE_HISTORY"


def record_file() -> Path:
    """The runs of the gate: `$WARPLINE_HISTORY`, else a file in the user's data folder."""
    chosen = os.environ.get(VARIABLE)
    return Path(chosen) if chosen else platformdirs.user_data_path("warpline", appauthor=False) / "history.sqlite"


def outcomes_file() -> Path:
    """The predictions that met a measurement, beside it: answers depend on this file, and not on the runs."""
    return record_file().with_name("outcomes.sqlite")
