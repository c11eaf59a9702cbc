"""Facts about the recorded process."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

TEARDOWN = "TEARDOWN_CUPTI"
"""If 1, Kineto detaches CUPTI when a recording ends; otherwise every later launch stays slower."""
DETACHES_WITH_GRAPHS = (12, 6)
"""The CUDA version from which detaching is safe with CUDA graphs; torch uses the same limit."""


def keep_attached_with_graphs(torch: Any) -> None:
    """Do not detach in a program with CUDA graphs on an older CUDA."""
    version = str(getattr(torch.version, "cuda", None) or "0").split(".")
    if tuple(int(part) for part in version[:2] if part.isdecimal()) < DETACHES_WITH_GRAPHS:
        os.environ[TEARDOWN] = "0"


def tracing_check(torch: Any) -> Callable[[], bool]:
    """A function that says whether torch is compiling or tracing: our calls would become part of the graph."""
    is_compiling = getattr(getattr(torch, "compiler", None), "is_compiling", bool)
    is_tracing = getattr(torch.jit, "is_tracing", bool)
    return lambda: bool(is_compiling() or is_tracing())


def is_data_worker() -> bool:
    """Whether this process is a DataLoader worker."""
    data = sys.modules.get("torch.utils.data")
    return data is not None and data.get_worker_info() is not None


def resident_bytes() -> int:
    """Memory of this process; 0 if /proc does not show it."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - read many times a second
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
