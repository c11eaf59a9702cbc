"""What kind of profile a file holds, by its content; a file's name is only ever a tie-breaker."""

from __future__ import annotations

import enum
import re
from pathlib import Path

from warpline.errors import UnreadableFile
from warpline.sources.unpack import GZIP_MAGIC, XZ_MAGIC, unpacked_head

HEAD_BYTES = 1 << 20
"""Kineto writes all device properties before its first event: far less than this."""


class Kind(enum.Enum):
    """A kind of profile."""

    KINETO = "kineto"
    """Kineto or torch.profiler JSON."""
    KINETO_GZ = "kineto-gz"
    KINETO_XZ = "kineto-xz"
    NSYS_SQLITE = "nsys-sqlite"
    """SQLite; whether it is an nsys export shows when it is read."""
    NSYS_SQLITE_GZ = "nsys-sqlite-gz"
    NSYS_SQLITE_XZ = "nsys-sqlite-xz"
    NVPROF = "nvprof"
    """SQLite database of nvprof or the Visual Profiler."""
    NVPROF_GZ = "nvprof-gz"
    NVPROF_XZ = "nvprof-xz"
    NSYS_REP = "nsys-rep"
    QDREP = "qdrep"
    """Report of nsys before 2021.4."""
    QDSTRM = "qdstrm"
    """Raw stream of nsys, not yet imported."""
    NCU_REP = "ncu-rep"
    """Report of Nsight Compute."""
    NCU_REP_GZ = "ncu-rep-gz"
    NCU_REP_XZ = "ncu-rep-xz"
    NCU_CSV = "ncu-csv"
    """Page of such a report as CSV, or a log of ncu."""
    NCU_CSV_GZ = "ncu-csv-gz"
    NCU_CSV_XZ = "ncu-csv-xz"
    EXECUTION_TRACE = "execution-trace"
    """JSON of torch's execution-trace observer (Chakra): ops and tensors, no times."""
    MEMORY_SNAPSHOT = "memory-snapshot"
    """Pickle, as torch writes its memory snapshots."""
    MEMORY_SNAPSHOT_GZ = "memory-snapshot-gz"
    MEMORY_SNAPSHOT_XZ = "memory-snapshot-xz"
    DIRECTORY = "directory"
    UNKNOWN = "unknown"


NCU_KINDS = frozenset(kind for kind in Kind if kind.value.startswith("ncu-"))
"""Reports of Nsight Compute and their pages: no timelines."""
SNAPSHOT_KINDS = frozenset({Kind.MEMORY_SNAPSHOT, Kind.MEMORY_SNAPSHOT_GZ, Kind.MEMORY_SNAPSHOT_XZ})
SQLITE_MAGIC = b"SQLite format 3\x00"
NCU_MAGIC = b"NVR\x00"
REPORT_MAGIC = b"NVIDIA Tegra Profiler Report"

_PICKLE = re.compile(rb"\x80[\x02-\x05]")
"""Begin of a pickle: an instruction, and the protocol's number."""
_OTHER_PACKING = {
    XZ_MAGIC: ("xz", "xz -d"),
    b"\x28\xb5\x2f\xfd": ("zstd", "zstd -d"),
    b"BZh": ("bzip2", "bunzip2"),
    b"PK\x03\x04": ("zip", "unzip"),
    b"\x04\x22\x4d\x18": ("lz4", "lz4 -d"),
    b"7z\xbc\xaf\x27\x1c": ("7z", "7z x"),
}
_KINETO_KEY = re.compile(
    rb'"(?:traceEvents|schemaVersion|deviceProperties|displayTimeUnit|baseTimeNanoseconds|traceName)"\s*:|"ph"\s*:'
)
_EXECUTION_TRACE = re.compile(rb'"schema"\s*:\s*"[^"]*chakra|\[pytorch\|profiler\|execution_(?:trace|graph)\|')
_NCU_HEADER = re.compile(rb'^"?ID"?([,;\t])"?Process ID"?\1"?(?:Process|Kernel) Name"?', re.MULTILINE)
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_NVPROF_TABLES = (b"CREATE TABLE StringTable", b"CREATE TABLE CUPTI_ACTIVITY_KIND_")
"""nvprof creates all its tables before the first row; nsys has no StringTable."""
_PACKED = {
    Kind.KINETO: Kind.KINETO_GZ,
    Kind.NSYS_SQLITE: Kind.NSYS_SQLITE_GZ,
    Kind.NVPROF: Kind.NVPROF_GZ,
    Kind.NCU_CSV: Kind.NCU_CSV_GZ,
    Kind.NCU_REP: Kind.NCU_REP_GZ,
    Kind.MEMORY_SNAPSHOT: Kind.MEMORY_SNAPSHOT_GZ,
}
_PACKED_WITH_XZ = {
    Kind.KINETO: Kind.KINETO_XZ,
    Kind.NSYS_SQLITE: Kind.NSYS_SQLITE_XZ,
    Kind.NVPROF: Kind.NVPROF_XZ,
    Kind.NCU_CSV: Kind.NCU_CSV_XZ,
    Kind.NCU_REP: Kind.NCU_REP_XZ,
    Kind.MEMORY_SNAPSHOT: Kind.MEMORY_SNAPSHOT_XZ,
}


def detect(path: Path) -> Kind:
    """The kind of the file or folder at ``path``; ``UnreadableFile`` where there is nothing to look at."""
    if path.is_dir():
        return Kind.DIRECTORY
    head = _head(path)
    if not head:
        raise UnreadableFile(
            "empty-file", f"{path} is empty: the program or the export ended before it was written", "record it again"
        )
    if head.startswith(GZIP_MAGIC):
        return _packed_kind(head, path)
    if head.startswith(XZ_MAGIC) and (kind := _kind_within_xz(head, path)):
        return kind
    _refuse_other_packing(head, path)
    return _plain_kind(head, path)


def _head(path: Path) -> bytes:
    try:
        if path.exists() and not path.is_file():
            raise UnreadableFile("unreadable-file", f"{path} is neither a file nor a folder")
        with path.open("rb") as file:
            return file.read(HEAD_BYTES)
    except FileNotFoundError as error:
        raise UnreadableFile("no-such-file", f"{path} does not exist", "check the path") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UnreadableFile("unreadable-file", f"{path} cannot be read: {reason}") from error


def _packed_kind(head: bytes, path: Path) -> Kind:
    try:
        inner, is_all = unpacked_head(head, "gzip", HEAD_BYTES)
    except ValueError as error:
        raise UnreadableFile("damaged-file", f"{path} is damaged gzip: {error}", "copy it again") from error
    if not inner:
        if is_all:
            raise UnreadableFile("empty-file", f"{path} is the gzip of an empty file", "record or export it again")
        raise UnreadableFile("damaged-file", f"{path} is gzip, cut short before its first byte", "copy it again")
    if inner.startswith(GZIP_MAGIC):
        raise UnreadableFile(
            "packed-twice", f"{path} is gzip within gzip: it was packed twice", f"unpack it once: gunzip -k {path.name}"
        )
    _refuse_other_packing(inner, path)
    kind = _plain_kind(inner, path)
    if kind in _PACKED or kind in {Kind.UNKNOWN, Kind.EXECUTION_TRACE}:
        return _PACKED.get(kind, kind)
    raise UnreadableFile(
        "packed-report",
        f"{path} is a gzipped {kind.value} file, which must be unpacked first",
        f"gunzip -k {path.name}",
    )


def _kind_within_xz(head: bytes, path: Path) -> Kind | None:
    """The kind of a profile packed with xz; None for anything else."""
    try:
        inner, is_all = unpacked_head(head, "xz", HEAD_BYTES)
    except ValueError as error:
        raise UnreadableFile("damaged-file", f"{path} is damaged xz: {error}", "copy it again") from error
    if not inner and is_all:
        raise UnreadableFile("empty-file", f"{path} is the xz of an empty file", "record or export it again")
    if not inner:
        raise UnreadableFile("damaged-file", f"{path} is xz, cut short before its first byte", "copy it again")
    return _PACKED_WITH_XZ.get(_plain_kind(inner, path))


def _refuse_other_packing(head: bytes, path: Path) -> None:
    for magic, (name, command) in _OTHER_PACKING.items():
        if head.startswith(magic):
            raise UnreadableFile(
                "packed-file", f"{path} is packed with {name} and must be unpacked first", f"{command} {path.name}"
            )


def _plain_kind(head: bytes, path: Path) -> Kind:
    if head.startswith(SQLITE_MAGIC):
        return Kind.NVPROF if all(table in head for table in _NVPROF_TABLES) else Kind.NSYS_SQLITE
    if head.startswith(NCU_MAGIC):
        return Kind.NCU_REP
    if _PICKLE.match(head):
        return Kind.MEMORY_SNAPSHOT
    # A byte or two may precede it where a browser or a dashboard spoiled the download.
    if REPORT_MAGIC in head[:64]:
        return Kind.QDREP if path.suffix == ".qdrep" else Kind.NSYS_REP
    if not any(head[:4096]):
        raise UnreadableFile(
            "damaged-file", f"{path} begins with zeros: it was never written in full", "record or export it again"
        )
    if head.startswith(_UTF_16):  # as PowerShell writes what a program prints
        head = head.decode("utf-16", errors="replace").encode()
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith((b"{", b"[")):
        if _KINETO_KEY.search(text):
            return Kind.KINETO
        return Kind.EXECUTION_TRACE if _EXECUTION_TRACE.search(text) else Kind.UNKNOWN
    if b"\x00" not in head and (text.startswith(b"==PROF==") or _NCU_HEADER.search(text)):
        return Kind.NCU_CSV
    # The raw stream has no documented beginning.
    return Kind.QDSTRM if path.suffix == ".qdstrm" and b"\x00" in head else Kind.UNKNOWN
