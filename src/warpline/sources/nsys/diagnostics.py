"""nsys's own diagnostics of the recording (``DIAGNOSTIC_EVENT``, since schema 3.13), sorted by meaning.

nsys warns often: every compiler and data worker that the program starts "might not have been started correctly". A
diagnostic matters only if it explains missing data.
"""

from __future__ import annotations

import re
from collections import Counter

import polars as pl
from msgspec import Struct, field

from warpline.quote import MAX_INPUT_CHARS, quote
from warpline.sources.health import HealthEntry, Severity
from warpline.sources.nsys.columns import process
from warpline.sources.nsys.tables import Tables
from warpline.units import several

# ENUM_DIAGNOSTIC_SEVERITY_LEVEL
WARNING, ERROR = 2, 3
MAX_QUOTED = 5
"""Diagnostics of unknown meaning that are quoted; the rest are counted."""

_DRIVER = re.compile(
    r"Installed CUDA driver version \(([\d.]+)\) is not supported.{0,400}?driver version ([\d.]+)", re.DOTALL
)
_BUFFERS = re.compile(r"CUPTI buffers:\s*(\d+) of (\d+)")
_RANGE = re.compile(r"Profiling started due to (\w+)")
_LOST_CUDA = re.compile(r"Not all CUDA events might have been collected")
_NO_CUDA = re.compile(r"No CUDA events collected|CUDA profiling might have not been started correctly")
_CUPTI_FAILED = re.compile(
    r"CUPTI_ERROR\w*|(?:CUPTI|CUDA (?:injection|profiling|trac\w{1,20})).{0,80}(?:fail|could not|unable|error)", re.I
)
_CLOCK = re.compile(
    r"non-?monotonic|out[- ]of[- ]order|timestamps? (?:conversion|are) .{0,40}(?:fail|inaccura|invalid)", re.I
)
# Diagnostics about data that warpline does not read, or about features that were not used.
_BENIGN = re.compile(
    r"No .{1,60} events collected|might have not been started correctly|paranoid|CPU kernel IP|IP samples"
    r"|Scheduling information is absent|Not all (?!CUDA).{1,60} events might have been collected"
    r"|context switch|CPU (?:sampling|scheduling)|backtrace|OpenGL|Vulkan|ftrace|perf_event",
    re.IGNORECASE,
)


class Remarks(Struct):
    """The diagnostics that matter."""

    driver_installed: str = ""
    driver_supported: str = ""
    buffers_returned: int | None = None
    buffers_total: int | None = None
    events_lost: set[int] = field(default_factory=set)
    """Processes for which nsys reports that not all CUDA events might have been collected."""
    without_cuda: set[int] = field(default_factory=set)
    """Processes in which no CUDA event was collected."""
    cupti_failures: Counter[str] = field(default_factory=Counter)
    clock_faults: Counter[str] = field(default_factory=Counter)
    others: Counter[tuple[int, str]] = field(default_factory=Counter)
    """Severity and text of warnings and errors of unknown meaning."""
    range_start: str = ""
    """What started the recording in the middle of the program, if anything.

    nsys then always reports that events may be missing, because the program continues; none are missing if CUPTI
    returned all its buffers.
    """


def read_remarks(database: Tables) -> Remarks:
    """The diagnostics of the recording."""
    frame = database.fetch("DIAGNOSTIC_EVENT", ["severity", "globalPid"], ["text"])
    frame = frame.drop_nulls("text").with_columns(process("globalPid").alias("process"))
    frame = frame.group_by("severity", "process", "text", maintain_order=True).agg(pl.len().alias("count"))
    remarks = Remarks()
    for severity, pid, text, count in frame.iter_rows():
        _sort(remarks, severity or 0, pid or 0, text[:MAX_INPUT_CHARS], count)
    return remarks


def _sort(remarks: Remarks, severity: int, pid: int, text: str, count: int) -> None:
    if found := _DRIVER.search(text):
        remarks.driver_installed, remarks.driver_supported = found[1], found[2]
    elif found := _BUFFERS.search(text):
        returned, total = int(found[1]), int(found[2])
        if returned < total and (remarks.buffers_returned is None or returned < remarks.buffers_returned):
            remarks.buffers_returned, remarks.buffers_total = returned, total
    elif found := _RANGE.search(text):
        remarks.range_start = found[1]
    elif _LOST_CUDA.search(text):
        remarks.events_lost.add(pid)
    elif _NO_CUDA.search(text):
        remarks.without_cuda.add(pid)
    elif severity not in (WARNING, ERROR):
        return
    elif _CUPTI_FAILED.search(text):
        remarks.cupti_failures[quote(text)] += count
    elif _CLOCK.search(text):
        remarks.clock_faults[quote(text)] += count
    elif not _BENIGN.search(text):
        remarks.others[(severity, quote(text))] += count


def remark_health(remarks: Remarks, kernels: int, cuda_processes: set[int]) -> list[HealthEntry]:
    """The health entries for nsys's diagnostics, given what was recorded."""
    entries: list[HealthEntry] = []
    if remarks.driver_installed:
        entries.append(
            HealthEntry(
                "driver-newer-than-nsys",
                "info" if kernels else "warning",
                f"The CUDA driver {remarks.driver_installed} is newer than this nsys, which recorded with its CUPTI "
                f"for {remarks.driver_supported}; "
                + ("kernels were still recorded." if kernels else "record again with a newer nsys."),
            )
        )
    if remarks.buffers_returned is not None:
        entries.append(
            HealthEntry(
                "cupti-buffers-lost",
                "warning",
                f"CUPTI delivered only {remarks.buffers_returned} of {remarks.buffers_total} buffers: the program "
                "was still running or was killed when the recording ended, and its last GPU events are missing.",
            )
        )
    elif remarks.range_start:
        entries.append(
            HealthEntry(
                "capture-range", "info", f"Only part of the program was recorded, from {remarks.range_start} on."
            )
        )
    elif remarks.events_lost & cuda_processes or (remarks.events_lost and not cuda_processes):
        entries.append(
            HealthEntry(
                "cuda-events-lost",
                "warning",
                f"nsys reports that not all CUDA events of {len(remarks.events_lost)} process(es) may have been "
                "collected: the program was still running or was killed when the recording ended.",
            )
        )
    for text, count in remarks.cupti_failures.most_common(MAX_QUOTED):
        severity: Severity = "warning" if kernels else "error"
        entries.append(
            HealthEntry("cupti-failed", severity, f"nsys could not trace CUDA completely{_times(count)}: {text}")
        )
    for text, count in remarks.clock_faults.most_common(MAX_QUOTED):
        entries.append(
            HealthEntry("clock-fault", "warning", f"nsys reports unreliable timestamps{_times(count)}: {text}")
        )
    helpers = remarks.without_cuda - cuda_processes
    if helpers and kernels:
        others = several(len(helpers), "other process was", "other processes were")
        message = f"{others} recorded and used no CUDA (compilers and data workers do not)."
        entries.append(HealthEntry("helper-processes", "info", message))
    entries += _other_health(remarks)
    return entries


def _other_health(remarks: Remarks) -> list[HealthEntry]:
    entries = [
        HealthEntry("nsys-remark", "warning", f"nsys {'failed' if level == ERROR else 'warned'}{_times(count)}: {text}")
        for (level, text), count in remarks.others.most_common(MAX_QUOTED)
    ]
    hidden = len(remarks.others) - MAX_QUOTED
    if hidden > 0:
        entries.append(HealthEntry("nsys-remark", "info", f"nsys wrote {hidden} more kinds of diagnostics."))
    return entries


def _times(count: int) -> str:
    return f" ({count} times)" if count > 1 else ""
