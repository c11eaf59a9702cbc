"""What workers run in tests of the pool and of Ray: importable by other processes."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path


def name_and_sleep(place: str, _cache: bool) -> tuple[bytes, str]:
    """Write the process into the file, and go on for longer than any test."""
    partial = Path(f"{place}.partial")
    partial.write_text(str(os.getpid()))
    partial.rename(place)
    time.sleep(300)
    return b"", ""


def fail_on_two(place: str, _cache: bool) -> tuple[bytes, str]:
    """The name; the process that reads `2` is killed."""
    if place == "2":
        os.kill(os.getpid(), signal.SIGKILL)
    return place.encode(), ""
