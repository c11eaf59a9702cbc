"""Which API calls put work on a device, by name: runtime and driver, CUDA and HIP."""

from __future__ import annotations

import polars as pl

from warpline.trace.names import named

KERNEL_LAUNCH = r"^(cuda|cu|hip|hipExt)(Module)?Launch(Cooperative)?(Kernel|Device$)|^hipExtLaunch|^hipExtModuleLaunch"
GRAPH_LAUNCH = r"^(cuda|cu|hip)GraphLaunch"
BEGIN_CAPTURE = r"^(cuda|cu|hip)StreamBeginCapture"
END_CAPTURE = r"^(cuda|cu|hip)StreamEndCapture"


def is_launch() -> pl.Expr:
    """Calls that launch one kernel or one graph."""
    return named(f"{KERNEL_LAUNCH}|{GRAPH_LAUNCH}")
