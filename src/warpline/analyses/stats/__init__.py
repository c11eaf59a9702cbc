"""The reports of ``nsys stats``, answered from a trace of any source, and one of Proton's call paths.

``report(trace, name)`` gives the table of one report, with the names, columns, order and rounding of Nsight
Systems 2025.3; ``REPORTS`` lists them.
"""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
from msgspec import Struct

from warpline.analyses.stats.cuda import (
    cuda_api_gpu_sum,
    cuda_api_sum,
    cuda_api_trace,
    cuda_gpu_kern_gb_sum,
    cuda_gpu_kern_sum,
    cuda_gpu_mem_size_sum,
    cuda_gpu_mem_time_sum,
    cuda_gpu_sum,
    cuda_gpu_trace,
)
from warpline.analyses.stats.kern_exec import cuda_kern_exec_sum, cuda_kern_exec_trace
from warpline.analyses.stats.nvtx import nvtx_pushpop_sum, nvtx_startend_sum, nvtx_sum
from warpline.analyses.stats.nvtx_gpu import nvtx_gpu_proj_sum, nvtx_kern_sum
from warpline.analyses.stats.proton import PATHS
from warpline.analyses.stats.system import osrt_sum, um_sum
from warpline.errors import CannotAnswer, UsageError
from warpline.trace.trace import Trace

__all__ = ["REPORTS", "StatsReport", "find_report", "report"]


class StatsReport(Struct, frozen=True):
    """One report of ``nsys stats``."""

    name: str
    """Name since nsys 2023, for example ``cuda_api_sum``."""
    title: str
    """What nsys prints above the table."""
    build: Callable[[Trace], pl.DataFrame]
    """Gives the table, or raises CannotAnswer where the trace lacks the data."""
    older_names: tuple[str, ...] = ()
    """Names up to nsys 2022."""


def _no_call_paths(_: Trace) -> pl.DataFrame:
    raise CannotAnswer(
        "no-data",
        f"{PATHS}: cannot answer, because the trace has no sums per call path of Proton",
        "give a .hatchet file",
    )


PROTON_SUM = StatsReport(PATHS, "Proton Call Path Summary", _no_call_paths)
"""Only a Proton profile without a timeline (Hatchet) answers it."""
REPORTS: dict[str, StatsReport] = {
    entry.name: entry
    for entry in (
        StatsReport("cuda_api_sum", "CUDA API Summary", cuda_api_sum, ("cudaapisum",)),
        StatsReport("cuda_api_trace", "CUDA API Trace", cuda_api_trace, ("cudaapitrace",)),
        StatsReport("cuda_api_gpu_sum", "CUDA Summary (API/Kernels/MemOps)", cuda_api_gpu_sum, ("apigpusum",)),
        StatsReport("cuda_gpu_kern_sum", "CUDA GPU Kernel Summary", cuda_gpu_kern_sum, ("gpukernsum",)),
        StatsReport(
            "cuda_gpu_kern_gb_sum", "CUDA GPU Kernel/Grid/Block Summary", cuda_gpu_kern_gb_sum, ("gpukerngbsum",)
        ),
        StatsReport(
            "cuda_gpu_mem_time_sum", "CUDA GPU MemOps Summary (by Time)", cuda_gpu_mem_time_sum, ("gpumemtimesum",)
        ),
        StatsReport(
            "cuda_gpu_mem_size_sum", "CUDA GPU MemOps Summary (by Size)", cuda_gpu_mem_size_sum, ("gpumemsizesum",)
        ),
        StatsReport("cuda_gpu_sum", "CUDA GPU Summary (Kernels/MemOps)", cuda_gpu_sum, ("gpusum",)),
        StatsReport("cuda_gpu_trace", "CUDA GPU Trace", cuda_gpu_trace, ("gputrace",)),
        StatsReport(
            "cuda_kern_exec_sum", "CUDA Kernel Launch & Exec Time Summary", cuda_kern_exec_sum, ("kernexecsum",)
        ),
        StatsReport(
            "cuda_kern_exec_trace", "CUDA Kernel Launch & Exec Time Trace", cuda_kern_exec_trace, ("kernexectrace",)
        ),
        StatsReport("nvtx_sum", "NVTX Range Summary", nvtx_sum, ("nvtxsum",)),
        StatsReport("nvtx_pushpop_sum", "NVTX Push/Pop Range Summary", nvtx_pushpop_sum, ("nvtxppsum", "pushpopsum")),
        StatsReport(
            "nvtx_startend_sum", "NVTX Start/End Range Summary", nvtx_startend_sum, ("nvtxsesum", "startendsum")
        ),
        StatsReport("nvtx_kern_sum", "NVTX Range Kernel Summary", nvtx_kern_sum, ("nvtxkernsum",)),
        StatsReport("nvtx_gpu_proj_sum", "NVTX GPU Projection Summary", nvtx_gpu_proj_sum, ("nvtxgpuproj",)),
        StatsReport("osrt_sum", "OS Runtime Summary", osrt_sum, ("osrtsum",)),
        StatsReport("um_sum", "Unified Memory Analysis Summary", um_sum, ("umsum", "unifiedmemory")),
    )
}


def find_report(name: str) -> StatsReport:
    """The report of this name, present or pre-2023."""
    if name in REPORTS:
        return REPORTS[name]
    for entry in (*REPORTS.values(), PROTON_SUM):
        if name in (entry.name, *entry.older_names):
            return entry
    raise UsageError("unknown-report", f"there is no report {name!r}", f"choose from: {', '.join(REPORTS)}")


def report(trace: Trace, name: str) -> pl.DataFrame:
    """The table of a report, with its printed column titles, order and rounding."""
    return find_report(name).build(trace)
