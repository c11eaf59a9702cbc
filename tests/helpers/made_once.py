"""What takes long to make and is only read is made once for all workers of a run."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest


def made_once(folders: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """A folder that the first worker which asks for it fills; the others wait. If it fails, the next one tries."""
    own = folders.getbasetemp()
    common = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    made, partial = common / name, common / f"{name}.partial"
    with (common / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            partial.mkdir(exist_ok=True)
            make(partial)
            partial.rename(made)
    return made
