"""The table of sources: which kinds of files hold a timeline, what reads them, and how answers name the profiler.

Other packages add rows by entry points of the group `warpline.sources`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

from msgspec import Struct

from warpline.plugins import plugins
from warpline.sources.kinds import (
    KINDS_WITHOUT_TIMELINE,
    KINETO,
    NSYS_REPORT,
    NSYS_SQLITE,
    NSYS_STREAM,
    NVPROF,
    XPLANE,
    Kind,
)
from warpline.sources.kineto import read_kineto
from warpline.sources.nsys import NSYS_PARQUET, read_nsys, read_nsys_parquet, read_nsys_report
from warpline.sources.nvprof import read_nvprof
from warpline.sources.rocprofv3 import PERFETTO, ROCPD, ROCPROFV3_JSON, read_pftrace, read_rocpd, read_rocprofv3_json
from warpline.sources.rows import Rows
from warpline.sources.xplane import read_xplane

ENTRY_POINTS = "warpline.sources"
PACKING_SUFFIXES = ("", ".gz", ".xz")


class Source(Struct, frozen=True):
    """A kind of file with a timeline."""

    kind: Kind
    read: Callable[[Path], Rows]
    profilers: Mapping[str, str]
    """How answers name the profiler, by the `source` of the rows."""


_NSYS = {"nsys": "Nsight Systems"}
_ROCPROFV3 = {"rocprofv3": "rocprofv3"}
SOURCES = (
    Source(ROCPROFV3_JSON, read_rocprofv3_json, _ROCPROFV3),
    Source(
        KINETO,
        read_kineto,
        {
            "kineto": "torch.profiler",
            "autograd": "torch.autograd.profiler",
            "xla": "XLA's profiler (JAX, TensorFlow)",
            "rocprof": "rocprof",
            "proton": "Proton (Triton)",
        },
    ),
    Source(ROCPD, read_rocpd, _ROCPROFV3),
    Source(XPLANE, read_xplane, {"xla": "XLA's profiler (JAX, TensorFlow)"}),
    Source(PERFETTO, read_pftrace, _ROCPROFV3),
    Source(NVPROF, read_nvprof, {"nvprof": "nvprof"}),
    Source(NSYS_SQLITE, read_nsys, _NSYS),
    Source(NSYS_PARQUET, read_nsys_parquet, _NSYS),
    Source(NSYS_REPORT, read_nsys_report, _NSYS),
    Source(NSYS_STREAM, read_nsys_report, _NSYS),
)
"""In the order in which their kinds are tried: any other SQLite database counts as an nsys export."""


@cache
def sources() -> tuple[Source, ...]:
    """All rows: our own, then those of other packages."""
    return (*SOURCES, *plugins(ENTRY_POINTS, Source))


def source_of(kind: Kind) -> Source | None:
    """The row of a kind; None if its files have no timeline."""
    return next((source for source in sources() if source.kind == kind), None)


def kinds() -> tuple[Kind, ...]:
    """All kinds in the order in which they are tried, ours first."""
    ours, others = sources()[: len(SOURCES)], sources()[len(SOURCES) :]
    return (*(source.kind for source in ours), *KINDS_WITHOUT_TIMELINE, *(source.kind for source in others))


def suffixes_of(*chosen: Kind) -> tuple[str, ...]:
    """What files of these kinds are called, also packed."""
    return tuple(
        suffix + packed
        for kind in chosen
        for suffix in kind.suffixes
        for packed in (PACKING_SUFFIXES if kind.packs else PACKING_SUFFIXES[:1])
    )


def what_is_read(rows: Sequence[Source]) -> str:
    """The profilers of these rows, each with what their files are called."""
    suffixes: dict[str, list[str]] = {}
    for source in rows:
        suffixes.setdefault(", ".join(source.profilers.values()), []).extend(source.kind.suffixes)
    return "; ".join(f"{profilers} ({', '.join(names)})" for profilers, names in suffixes.items())


def profiler_name(source: str) -> str:
    """How answers name the profiler of rows with this `source`."""
    return next((known.profilers[source] for known in sources() if source in known.profilers), source)
