"""The kinds of files, each recognised by its first bytes, unpacked; a file's name is only ever a tie-breaker."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

SQLITE_MAGIC = b"SQLite format 3\x00"
NCU_MAGIC = b"NVR\x00"
REPORT_MAGIC = b"NVIDIA Tegra Profiler Report"

_PICKLE = re.compile(rb"\x80[\x02-\x05]")
"""The start of a pickle: an instruction, and the protocol's number."""
_KINETO_KEY = re.compile(
    rb'"(?:traceEvents|schemaVersion|deviceProperties|displayTimeUnit|baseTimeNanoseconds|traceName)"\s*:|"ph"\s*:'
)
_EXECUTION_TRACE = re.compile(rb'"schema"\s*:\s*"[^"]*chakra|\[pytorch\|profiler\|execution_(?:trace|graph)\|')
_NCU_HEADER = re.compile(rb'^"?ID"?([,;\t])"?Process ID"?\1"?(?:Process|Kernel) Name"?', re.MULTILINE)
_XPLANE = re.compile(rb"\n[\s\S]{0,64}?(?:/host:\w|/device:\w+:|Task Environment)")
"""The name of the first plane, behind the lengths and the number of a plane."""
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_NVPROF_TABLES = (b"CREATE TABLE StringTable", b"CREATE TABLE CUPTI_ACTIVITY_KIND_")
"""nvprof creates all its tables before the first row; nsys has no StringTable."""


class Kind(Struct, frozen=True):
    """A kind of file."""

    name: str
    recognises: Callable[[bytes, Path], bool]
    """Whether a file of that path may be one, by its first megabyte."""
    suffixes: tuple[str, ...] = ()
    """What its files are called, without a suffix for packing."""
    packs: bool = True
    """Whether it is read gzipped and xz-compressed, too."""
    is_folder: bool = False
    """Whether it is a folder, recognised by the names of its files; the first megabyte is then empty."""
    without_timeline: str = "of unknown kind"
    """What a file without a timeline is; completes "FILE is …"."""
    read_by: str | None = None
    """The verb that reads it, if it has no timeline."""


def _text(head: bytes) -> bytes:
    """The start of a text file as UTF-8, without a byte-order mark."""
    if head.startswith(_UTF_16):  # as PowerShell writes what a program prints
        head = head.decode("utf-16", errors="replace").encode()
    return head.removeprefix(b"\xef\xbb\xbf").lstrip()


def _is_json(text: bytes) -> bool:
    return text.startswith((b"{", b"["))


def _is_kineto(head: bytes, _: Path) -> bool:
    text = _text(head)
    return _is_json(text) and _KINETO_KEY.search(text) is not None


def _is_execution_trace(head: bytes, _: Path) -> bool:
    text = _text(head)
    return _is_json(text) and _EXECUTION_TRACE.search(text) is not None


def _is_proton_tree(head: bytes, _: Path) -> bool:
    text = _text(head)
    return text.startswith(b"[") and all(key in text for key in (b'"children"', b'"frame"', b'"metrics"'))


def _is_inspector_log(head: bytes, _: Path) -> bool:
    text = _text(head)
    return text.startswith(b"{") and b'"inspector_output_format_version"' in text


def _is_ncu_csv(head: bytes, _: Path) -> bool:
    text = _text(head)
    return b"\x00" not in text and (text.startswith(b"==PROF==") or _NCU_HEADER.search(text) is not None)


NVPROF = Kind(
    "nvprof",
    lambda head, _: head.startswith(SQLITE_MAGIC) and all(table in head for table in _NVPROF_TABLES),
    (".nvvp", ".nvprof"),
)
"""SQLite database of nvprof or the Visual Profiler."""
NSYS_SQLITE = Kind("nsys-sqlite", lambda head, _: head.startswith(SQLITE_MAGIC), (".sqlite",))
"""Any other SQLite database; whether it is an nsys export shows when it is read."""
_OF_NCU = "a report of Nsight Compute: it has counters of single kernels, and no timeline"
NCU_REPORT = Kind(
    "ncu-rep",
    lambda head, _: head.startswith(NCU_MAGIC),
    (".ncu-rep",),
    without_timeline=_OF_NCU,
    read_by="dive",
)
MEMORY_SNAPSHOT = Kind(
    "memory-snapshot",
    lambda head, _: _PICKLE.match(head) is not None,
    without_timeline="a Python pickle, as torch's memory snapshots are",
    read_by="memory",
)
NSYS_REPORT = Kind(
    "nsys-rep",
    # A byte or two may precede it where a browser or a dashboard spoiled the download.
    lambda head, _: REPORT_MAGIC in head[:64],
    (".nsys-rep", ".qdrep"),
    packs=False,
)
"""Report of nsys; `.qdrep` before 2021.4."""
KINETO = Kind("kineto", _is_kineto, (".json", ".chrome_trace"))
"""Kineto or torch.profiler JSON."""
XPLANE = Kind("xplane", lambda head, _: _XPLANE.match(head) is not None, (".xplane.pb",))
"""XSpace of XLA's profiler (protobuf)."""
EXECUTION_TRACE = Kind(
    "execution-trace",
    _is_execution_trace,
    without_timeline=(
        "an execution trace (Chakra): it lists ops and their tensors, but has no times and no GPU activity; it is read "
        "beside a torch.profiler trace of the same run"
    ),
)
PROTON_TREE = Kind(
    "proton-tree",
    _is_proton_tree,
    (".hatchet",),
    without_timeline=(
        "a profile of Triton's Proton (Hatchet): it has sums per call path, and no timeline, which "
        'proton.start(data="trace") records'
    ),
    read_by="stats",
)
NCCL_INSPECTOR = Kind(
    "nccl-inspector",
    _is_inspector_log,
    (".log", ".jsonl"),
    without_timeline="a log of NCCL Inspector: it has times of collectives, and no timeline",
    read_by="diagnose",
)
NCU_CSV = Kind("ncu-csv", _is_ncu_csv, (".csv",), without_timeline=_OF_NCU, read_by="dive")
"""Page of an ncu report as CSV, or a log of ncu."""
NSYS_STREAM = Kind(
    "qdstrm",
    # The raw stream has no documented beginning.
    lambda head, path: path.suffix == ".qdstrm" and b"\x00" in head,
    (".qdstrm",),
    packs=False,
)
"""Raw stream of nsys, not yet imported."""
DIRECTORY = Kind("directory", lambda _, path: path.is_dir())
UNKNOWN = Kind("unknown", lambda head, path: False)

NCU_KINDS = (NCU_REPORT, NCU_CSV)
"""Reports of Nsight Compute and their pages."""
KINDS_WITHOUT_TIMELINE = (*NCU_KINDS, MEMORY_SNAPSHOT, EXECUTION_TRACE, NCCL_INSPECTOR, PROTON_TREE)
"""Recognised, for verbs that read them or to say what they are; the others are in the table of sources."""
