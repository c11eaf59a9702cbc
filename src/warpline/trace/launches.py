"""Which API calls put work on a device, by name: runtime and driver, CUDA and HIP."""

from __future__ import annotations

import polars as pl

KERNEL_LAUNCH = r"^(cuda|cu|hip|hipExt)(Module)?Launch(Cooperative)?(Kernel|Device$)|^hipExtLaunch|^hipExtModuleLaunch"
GRAPH_LAUNCH = r"^(cuda|cu|hip)GraphLaunch"
BEGIN_CAPTURE = r"^(cuda|cu|hip)StreamBeginCapture"
END_CAPTURE = r"^(cuda|cu|hip)StreamEndCapture"


def named(pattern: str, column: str = "name") -> pl.Expr:
    """Rows whose interned name matches; each distinct name is looked at once."""
    return pl.col(column).cast(pl.String).str.contains(pattern).fill_null(False)


def is_launch() -> pl.Expr:
    """Calls that launch one kernel or one graph."""
    return named(f"{KERNEL_LAUNCH}|{GRAPH_LAUNCH}")
