"""Why a profile is empty or odd: the file is recognised by its content and asked for its own evidence."""

from __future__ import annotations

import bz2
import lzma
import re
import tempfile
from collections.abc import Iterable
from pathlib import Path

from warpline.doctor import failures
from warpline.doctor.advice import finding_of
from warpline.doctor.messages import read_messages
from warpline.doctor.model import Examination, Finding
from warpline.doctor.ncu_files import examine_ncu_report, examine_ncu_text
from warpline.doctor.recording import LARGE_BYTES, examine_recording
from warpline.errors import UnreadableFile, WarplineError
from warpline.sources.detect import GZIP_MAGIC, REPORT_MAGIC, Kind, detect
from warpline.sources.nsys.program import ending_of
from warpline.sources.nsys.report_file import export_report, find_nsys, report_version
from warpline.sources.zlib_engine import GZIP_WINDOW_BITS, DamagedGzip, engine
from warpline.trace.open import open_trace
from warpline.units import size

SUFFIXES = (
    *(".json", ".json.gz", ".sqlite", ".sqlite.gz", ".nsys-rep", ".qdrep", ".qdstrm"),
    *(".ncu-rep", ".csv", ".csv.gz", ".log", ".txt"),
)
"""Files of a folder that are looked at; a file that is named is looked at whatever it is called."""
LONGEST_TEXT = 8 << 20
LARGEST_PACKED = 1 << 30
_TOOL_OUTPUT = re.compile(
    r"==PROF==|==(?:ERROR|WARNING)==|\bnsys\b|Nsight|Generating '|Processing \[|\[\d+/\d+\]|SKIPPED:|CUPTI|Time \(%\)"
)
_RECORDED = re.compile(r"^Collecting data\.\.\.|^Generating '", re.MULTILINE)
"""nsys ran a program, whose output may stand above."""
_XZ, _BZIP2 = b"\xfd7zXZ\x00", b"BZh"


def examine_files(paths: Iterable[Path]) -> list[Examination]:
    """Every file, and every profile and log within a folder."""
    return [examine_file(file) for path in paths for file in _files(path)]


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.rglob("*") if file.name.endswith(SUFFIXES) and file.is_file())
    if not files:
        raise UnreadableFile("which-trace", f"{path} holds no profile and no log", "name a file")
    return files


def examine_file(path: Path) -> Examination:
    """One file; an error only where there is no such file."""
    try:
        findings = _examine(path, path.name)
    except WarplineError as error:
        if error.code == "no-such-file":
            raise
        findings = [_unreadable(error, path)]
    return Examination("file", path.name, tuple(findings))


def _examine(path: Path, name: str) -> list[Finding]:
    unpacked = _unpacked(path, name)
    if unpacked is not None:
        return unpacked
    kind = detect(path)
    if kind in (Kind.KINETO, Kind.KINETO_GZ):
        return _kineto(path)
    if kind in (Kind.NSYS_SQLITE, Kind.NSYS_SQLITE_GZ):
        return _stale(path) + examine_recording(path)
    if kind in (Kind.NSYS_REP, Kind.QDREP):
        return _report(path, name)
    if kind is Kind.QDSTRM:
        report = path.with_suffix(".nsys-rep")
        if report.is_file():
            means = "A report of the same name lies beside it: the import worked, and the stream can go."
            return [failures.STREAM_NOT_IMPORTED.found("a raw stream", "note", means, (f"rm {name}",))]
        return [
            failures.STREAM_NOT_IMPORTED.found("the file is nsys's raw stream, which no tool but its importer reads")
        ]
    if kind is Kind.NCU_REP:
        return examine_ncu_report(path.read_bytes())
    if kind in (Kind.NCU_CSV, Kind.NCU_CSV_GZ):
        return examine_ncu_text(_text(path))
    return _log(path, name)


def _unpacked(path: Path, name: str) -> list[Finding] | None:
    """The findings of a file packed with xz or bzip2, which are looked into."""
    if not path.is_file():
        return None
    with path.open("rb") as file:
        head = file.read(6)
    if not head.startswith((_XZ, _BZIP2)):
        return None
    with tempfile.TemporaryDirectory(prefix="warpline-") as folder:
        inner = Path(folder) / Path(name).stem
        try:
            with lzma.open(path) if head.startswith(_XZ) else bz2.open(path) as packed:
                inner.write_bytes(packed.read(LARGEST_PACKED))
        except (OSError, EOFError, lzma.LZMAError) as error:
            raise UnreadableFile("damaged-file", f"{name} cannot be unpacked: {error}", "copy it again") from error
        return _examine(inner, inner.name)


def _kineto(path: Path) -> list[Finding]:
    trace = open_trace(path)
    entries = trace.health_entries
    codes = {entry.code for entry in entries}
    findings = [
        finding_of(entry, codes, recorded_kernels=True)
        for entry in entries
        if entry.code not in ("empty-trace", "no-gpu-work")
    ]
    said = next((entry.message for entry in entries if entry.code in ("empty-trace", "no-gpu-work")), "")
    if "empty-trace" in codes:
        means = (
            "The profiler never came to its active steps (its schedule waits for prof.step()), or it was left before "
            "anything ran."
        )
        do = (
            "call prof.step() after every step, or profile without a schedule",
            "synchronise before leaving the block",
        )
        findings.insert(0, Finding("empty-torch-trace", "problem", said, means, do))
    elif len(trace.gpu) == 0 and len(trace.api):
        findings.insert(0, failures.TWO_CUPTI_CLIENTS.found(said, means=_CALLS_ONLY))
    elif len(trace.gpu) == 0:
        listed = len(trace.devices)
        means = (
            f"The process saw {listed} GPU(s): only the CPU was profiled, or nothing ran in these steps, or another "
            "tool (nsys, ncu) held CUPTI. The file does not tell which; torch's warnings do."
            if listed
            else "The profile lists no device: the program ran without a GPU, or the profiler did not see one."
        )
        do = ("torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])", "warpline doctor")
        findings.insert(0, Finding("no-gpu-in-it", "warning", said, means, do))
    if path.stat().st_size >= LARGE_BYTES:
        fewer = "record fewer steps: schedule(wait=1, warmup=1, active=3), without with_stack and profile_memory"
        findings.append(failures.TOO_LARGE.found(f"the file has {size(path.stat().st_size)}", do=(fewer,)))
    return findings


_CALLS_ONLY = (
    "torch saw the CUDA calls and CUPTI handed it no GPU work: another tool held CUPTI (nsys, ncu, Proton, an "
    "injection path), or the profiler was left before a synchronisation."
)


def _stale(path: Path) -> list[Finding]:
    """An export beside a report that was recorded later."""
    report = path.with_suffix("").with_suffix(".nsys-rep") if path.suffix == ".gz" else path.with_suffix(".nsys-rep")
    if not report.is_file() or report.stat().st_mtime <= path.stat().st_mtime:
        return []
    seen = f"{report.name} beside it is newer than this export"
    do = (f"nsys export --type sqlite --force-overwrite=true {report.name}",)
    return [Finding("stale-export", "warning", seen, "The export is of an earlier recording.", do)]


def _report(path: Path, name: str) -> list[Finding]:
    with path.open("rb") as file:
        head = file.read(1 << 16)
    if not head.startswith(REPORT_MAGIC) or head.count(b"\xef\xbf\xbd") > 8:
        means = "The report was changed on its way, as a dashboard's download as text does."
        seen = "the report does not begin as nsys wrote it, or bytes of it were replaced"
        do = ("copy the report again in binary mode: scp, or docker cp",)
        return [failures.REPORT_FROM_NEWER_NSYS.found(seen, means=means, do=do)]
    findings = []
    if path.stat().st_size >= LARGE_BYTES:
        findings.append(failures.TOO_LARGE.found(f"the file has {size(path.stat().st_size)}"))
    needed, nsys = report_version(path), find_nsys()
    if needed and nsys and nsys.version and needed.newer_than(nsys.version):
        seen = f"written by nsys {needed}; the nsys at hand is {nsys.version}"
        return [*findings, failures.REPORT_FROM_NEWER_NSYS.found(seen)]
    if nsys is None:
        written = f"written by nsys {needed}" if needed else "written by an nsys that does not name its version"
        version = f"nsys {needed} or newer" if needed else "the nsys that wrote it"
        export = (f"where {version} is: nsys export --type sqlite {name}", "warpline doctor EXPORT.sqlite")
        seen = f"{written}, and no nsys is here to open it"
        return [*findings, Finding("report-not-opened", "unknown", seen, "Only nsys opens reports.", export)]
    return findings + examine_recording(export_report(path))


def _text(path: Path) -> str:
    """The beginning and the end of a text, unpacked."""
    with path.open("rb") as file:
        data = file.read(LONGEST_TEXT)
        if data.startswith(GZIP_MAGIC):
            try:
                data = engine.decompressobj(GZIP_WINDOW_BITS).decompress(data, LONGEST_TEXT)
            except DamagedGzip as error:
                raise UnreadableFile("damaged-file", f"{path.name} is damaged gzip", "copy it again") from error
        elif len(data) == LONGEST_TEXT:
            file.seek(max(LONGEST_TEXT, path.stat().st_size - LONGEST_TEXT))
            data += b"\n" + file.read(LONGEST_TEXT)
    return data.decode("utf-8", "replace")


def _log(path: Path, name: str) -> list[Finding]:
    """A file of no known kind: a log, perhaps."""
    if name.endswith((".sqlite", ".sqlite.gz")):
        return [failures.EXPORT_INTERRUPTED.found("the file does not begin like SQLite")]
    text = _text(path)
    if "\x00" in text[:4096]:
        means = "The file is binary and begins like no profile that warpline knows."
        return [Finding("not-a-profile", "unknown", f"{name} is of no known kind", means, ("give a profile or a log",))]
    findings = read_messages(text)
    if _RECORDED.search(text) and not any(finding.failure == failures.PROGRAM_FAILED.number for finding in findings):
        ending = ending_of(text)
        if ending.failed:
            findings.append(failures.PROGRAM_FAILED.found(f"the output has: {ending.quote}", "warning"))
    if findings or _TOOL_OUTPUT.search(text):
        return findings
    seen = "the text holds no line that nsys, ncu or torch is known to print"
    return [Finding("not-a-profile", "unknown", seen, "", ("give a profile, or the log of the profiler's run",))]


_INTERRUPTED = {"damaged-file", "empty-file", "not-sqlite"}


def _unreadable(error: WarplineError, path: Path) -> Finding:
    """What cannot be opened at all."""
    do = (error.hint,) if error.hint else ()
    if error.code in _INTERRUPTED and ".sqlite" in path.name:
        return failures.EXPORT_INTERRUPTED.found(error.message)
    if error.code == "nsys-version-wall":
        return failures.REPORT_FROM_NEWER_NSYS.found(error.message, do=do)
    sure = error.code in {"damaged-file", "empty-file", "packed-twice", "nsys-export-failed"}
    return Finding(error.code, "problem" if sure else "unknown", error.message, "", do)
