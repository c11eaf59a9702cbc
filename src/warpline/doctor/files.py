"""Why a profile is empty or incomplete. Files are recognised by their content."""

from __future__ import annotations

import bz2
import csv
import io
import re
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from msgspec.structs import replace

from warpline.doctor.advice import check_of
from warpline.doctor.failures import known_failure
from warpline.doctor.messages import read_messages
from warpline.doctor.model import Check, Examination
from warpline.doctor.recording import LARGE_PROFILE_BYTES, contents, examine_recording
from warpline.errors import UnreadableFile, WarplineError
from warpline.sources.detect import detect
from warpline.sources.kinds import (
    DIRECTORY,
    NCU_CSV,
    NCU_REPORT,
    NSYS_REPORT,
    NSYS_SQLITE,
    NSYS_STREAM,
    REPORT_MAGIC,
    UNKNOWN,
)
from warpline.sources.ncu.container import Container, read_container
from warpline.sources.nsys.program import ending_of
from warpline.sources.nsys.report_file import export_report, find_nsys, report_version
from warpline.sources.registry import kinds, suffixes_of
from warpline.sources.stdin import as_shell_word, without_spool
from warpline.sources.unpack import XZ_MAGIC, Packing, Unpacked, packing_of, unpacked_head
from warpline.trace.open import files_named, is_profile, open_trace
from warpline.units import several, size

LOG_SUFFIXES = (".log", ".txt")
MAX_TEXT_BYTES = 8 << 20
MAX_UNPACKED_BYTES = 1 << 30
_TOOL_OUTPUT = re.compile(
    r"==PROF==|==(?:ERROR|WARNING)==|\bnsys\b|Nsight|Generating '|Processing \[|\[\d+/\d+\]|SKIPPED:|CUPTI|Time \(%\)"
)
_RECORDED = re.compile(r"^Collecting data\.\.\.|^Generating '", re.MULTILINE)
"""nsys ran a program, whose output may precede this line."""
_BZIP2 = b"BZh"


def examine_files(paths: Iterable[Path], progress: Callable[[str], None] = lambda _: None) -> list[Examination]:
    """Examine every file, and every profile and log in a folder; `progress` is told which."""
    files = [(file, path) for path in paths for file in _files(path)]
    found = []
    for number, (file, given) in enumerate(files, 1):
        name = file.name if file == given else str(file.relative_to(given))
        progress(f"{name} ({number:,} of {len(files):,})")
        found.append(replace(examine_file(file), subject=name))
    return found


def _files(path: Path) -> list[Path]:
    if not path.is_dir() or detect(path) is not DIRECTORY:
        return [path]
    suffixes = (*suffixes_of(*kinds()), *LOG_SUFFIXES)
    named = files_named(path, lambda name: is_profile(name, suffixes))
    files = [file for file in named if file.is_file()]
    if not files:
        raise UnreadableFile("which-trace", f"{path} contains no profile and no log", "name a file")
    return files


def examine_file(path: Path) -> Examination:
    """Examine one file; raise an error only if it does not exist."""
    try:
        checks = _examine(path, path.name)
    except WarplineError as error:
        if error.code == "no-such-file":
            raise
        checks = [_unreadable(error, path)]
    return Examination("file", path.name, tuple(checks))


def _examine(path: Path, name: str) -> list[Check]:
    unpacked = _unpacked(path, name)
    if unpacked is not None:
        return unpacked
    kind = detect(path)
    if kind is NSYS_SQLITE:
        return _stale(path) + examine_recording(path)
    if kind is NSYS_REPORT:
        return _report(path, name)
    if kind is NSYS_STREAM:
        report = path.with_suffix(".nsys-rep")
        if report.is_file():
            means = "A report of the same name exists: the import worked, and the stream can be deleted."
            return [known_failure("stream-not-imported").found("a raw stream", "note", means, (f"rm {name}",))]
        return [
            known_failure("stream-not-imported").found(
                "the file is nsys's raw stream, which only its importer can read"
            )
        ]
    if kind is NCU_REPORT:
        return examine_ncu_report(b"".join(Unpacked(path)))
    if kind is NCU_CSV:
        return examine_ncu_text(_text(path))
    return _log(path, name) if kind is UNKNOWN else _timeline(path)


def _unpacked(path: Path, name: str) -> list[Check] | None:
    """The checks of a file compressed with xz or bzip2; None for other files."""
    if not path.is_file():
        return None
    with path.open("rb") as file:
        head = file.read(len(XZ_MAGIC))
    if not head.startswith((XZ_MAGIC, _BZIP2)):
        return None
    with tempfile.TemporaryDirectory(prefix="warpline-") as folder:
        inner = Path(folder) / Path(name).stem
        try:
            if head.startswith(XZ_MAGIC):
                _write_unpacked(path, inner)
            else:
                with bz2.open(path) as packed:
                    inner.write_bytes(packed.read(MAX_UNPACKED_BYTES))
        except (OSError, EOFError) as error:
            raise UnreadableFile("damaged-file", f"{name} cannot be decompressed: {error}", "copy it again") from error
        try:
            return _examine(inner, inner.name)
        except UnreadableFile as error:  # which names the unpacked copy, unknown to the user and soon gone
            raise UnreadableFile(error.code, error.message.replace(str(inner), name), error.hint) from error


def _write_unpacked(path: Path, inner: Path) -> None:
    unpacked = Unpacked(path, limit_bytes=MAX_UNPACKED_BYTES)
    with inner.open("wb") as file:
        for piece in unpacked:
            file.write(piece)
    if unpacked.damage:
        raise EOFError(unpacked.damage)


def _timeline(path: Path) -> list[Check]:
    trace = open_trace(path)
    entries = trace.health_entries
    codes = {entry.code for entry in entries}
    checks = [
        check_of(entry, codes, recorded_kernels=True)
        for entry in entries
        if entry.code not in ("empty-trace", "no-gpu-work")
    ]
    message = next((entry.message for entry in entries if entry.code in ("empty-trace", "no-gpu-work")), "")
    if "empty-trace" in codes:
        means = (
            "The profiler never reached its active steps (its schedule waits for prof.step()), or it stopped before "
            "anything ran."
        )
        do = (
            "call prof.step() after every step, or profile without a schedule",
            "call torch.cuda.synchronize() before the profiler stops",
        )
        checks.insert(0, Check("empty-torch-trace", "problem", message, means, do))
    elif codes & {"other-device", "counters-only"}:
        return checks
    elif len(trace.gpu) == 0 and len(trace.api):
        checks.insert(0, known_failure("two-cupti-clients").found(message, means=_CALLS_ONLY))
    elif len(trace.gpu) == 0:
        listed = len(trace.devices)
        means = (
            f"The process saw {listed} GPU(s): only the CPU was profiled, or no kernel ran in these steps, or another "
            "tool (nsys, ncu) was using CUPTI. torch's warnings say which."
            if listed
            else "The profile lists no device: the program ran without a GPU, or the profiler did not detect one."
        )
        do = ("torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])", "warpline doctor")
        checks.insert(0, Check("no-gpu-in-it", "warning", message, means, do))
    if path.stat().st_size >= LARGE_PROFILE_BYTES:
        fewer = "record fewer steps: schedule(wait=1, warmup=1, active=3), without with_stack and profile_memory"
        checks.append(known_failure("too-large").found(f"the file size is {size(path.stat().st_size)}", do=(fewer,)))
    return [*checks, contents(trace)]


_CALLS_ONLY = (
    "torch recorded CUDA calls, but CUPTI delivered no GPU events: another tool was using CUPTI (nsys, ncu, Proton, an "
    "injection path), or the profiler was stopped before a synchronisation."
)


def _stale(path: Path) -> list[Check]:
    """A check if a newer report exists beside the export."""
    report = path.with_suffix("").with_suffix(".nsys-rep") if path.suffix == ".gz" else path.with_suffix(".nsys-rep")
    if not report.is_file() or report.stat().st_mtime <= path.stat().st_mtime:
        return []
    seen = f"{report.name} beside it is newer than this export"
    do = (f"nsys export --type sqlite --force-overwrite=true {report.name}",)
    return [Check("stale-export", "warning", seen, "The export belongs to an earlier recording.", do)]


def _report(path: Path, name: str) -> list[Check]:
    with path.open("rb") as file:
        head = file.read(1 << 16)
    if not head.startswith(REPORT_MAGIC) or head.count(b"\xef\xbf\xbd") > 8:
        means = "The report was corrupted in transit, for example by a download in text mode."
        seen = "the report does not start like an nsys report, or bytes in it were replaced"
        do = ("copy the report again in binary mode: scp, or docker cp",)
        return [known_failure("report-from-newer-nsys").found(seen, means=means, do=do)]
    checks = []
    if path.stat().st_size >= LARGE_PROFILE_BYTES:
        checks.append(known_failure("too-large").found(f"the file size is {size(path.stat().st_size)}"))
    needed, nsys = report_version(path), find_nsys()
    if needed and nsys and nsys.version and needed.newer_than(nsys.version):
        seen = f"written by nsys {needed}; the installed nsys is {nsys.version}"
        return [*checks, known_failure("report-from-newer-nsys").found(seen)]
    if nsys is None:
        written = f"written by nsys {needed}" if needed else "written by an unknown version of nsys"
        version = f"nsys {needed} or newer" if needed else "the nsys that wrote it"
        export = (f"on a machine with {version}: nsys export --type sqlite {name}", "warpline doctor EXPORT.sqlite")
        seen = f"{written}, but nsys is not installed here"
        return [*checks, Check("report-not-opened", "unknown", seen, "Only nsys can open reports.", export)]
    return checks + examine_recording(export_report(path))


def _text(path: Path) -> str:
    """The start and end of a text file, decompressed."""
    with path.open("rb") as file:
        data = file.read(MAX_TEXT_BYTES)
        packing = packing_of(data)
        if packing is not Packing.PLAIN:
            try:
                data, _ = unpacked_head(data, packing, MAX_TEXT_BYTES)
            except ValueError as error:
                raise UnreadableFile(
                    "damaged-file", f"{path.name} is damaged {packing.value}", "copy it again"
                ) from error
        elif len(data) == MAX_TEXT_BYTES:
            file.seek(max(MAX_TEXT_BYTES, path.stat().st_size - MAX_TEXT_BYTES))
            data += b"\n" + file.read(MAX_TEXT_BYTES)
    return data.decode("utf-8", "replace")


def _log(path: Path, name: str) -> list[Check]:
    """Examine a file of unknown kind, which may be a log."""
    if name.endswith((".sqlite", ".sqlite.gz")):
        return [known_failure("export-interrupted").found("the file does not start like an SQLite database")]
    if path.suffix == ".py":
        word = as_shell_word(path)
        do = (f"to record and diagnose it: warpline run {word}", f"to check its source: warpline lint {word}")
        return [Check("not-a-profile", "unknown", f"{name} is a Python program", "", do)]
    text = _text(path)
    if "\x00" in text[:4096]:
        means = "The file is binary and matches no known profile format."
        return [Check("not-a-profile", "unknown", f"{name} is of an unknown kind", means, ("give a profile or a log",))]
    checks = read_messages(text)
    if _RECORDED.search(text) and not any(check.failure == known_failure("program-failed").number for check in checks):
        ending = ending_of(text)
        if ending.failed:
            checks.append(known_failure("program-failed").found(f"the output has: {ending.quote}", "warning"))
    if checks or _TOOL_OUTPUT.search(text):
        return checks
    seen = "the text contains no known output of nsys, ncu or torch"
    return [Check("not-a-profile", "unknown", seen, "", ("give a profile, or the log of a profiler run",))]


def read_ncu_report(data: bytes) -> Container:
    """What the headers of a report's blocks say."""
    return read_container(io.BytesIO(data))


def examine_ncu_report(data: bytes) -> list[Check]:
    """Examine the bytes of an ``.ncu-rep``."""
    report = read_ncu_report(data)
    checks: list[Check] = []
    if report.truncated:
        seen = f"the file ends within a block, after {several(report.results, 'kernel')}"
        means = "ncu was killed, or the copy is incomplete; ncu-ui silently shows fewer kernels."
        checks.append(Check("report-cut-short", "problem", seen, means, ("copy or record it again",)))
    if not report.results:
        checks.append(known_failure("no-kernels-profiled").found("the report contains no profiled kernel"))
        return checks
    return [*checks, known_failure("ncu-is-no-stopwatch").found(f"{several(report.results, 'kernel')} profiled by ncu")]


def examine_ncu_text(text: str) -> list[Check]:
    """Examine ncu's output: messages, and CSV if present."""
    checks = read_messages(text)
    lines = text.splitlines()
    header = next((row for row, line in enumerate(lines) if line.replace('"', "").startswith("ID,Process ID")), None)
    if header is None:
        return checks
    kernels = {row[0] for row in csv.reader(io.StringIO("\n".join(lines[header + 1 :]))) if row and row[0].isdecimal()}
    if kernels:
        checks.append(known_failure("ncu-is-no-stopwatch").found(f"{several(len(kernels), 'kernel')} profiled by ncu"))
    elif not any(check.state == "problem" for check in checks):
        checks.append(known_failure("no-kernels-profiled").found("the CSV has a header but no kernel"))
    return checks


_INTERRUPTED = {"damaged-file", "empty-file", "not-sqlite"}


def _unreadable(error: WarplineError, path: Path) -> Check:
    """The check for a file that cannot be opened."""
    do, seen = (error.hint,) if error.hint else (), without_spool(error.message)
    if error.code in _INTERRUPTED and ".sqlite" in path.name:
        return known_failure("export-interrupted").found(seen)
    if error.code == "nsys-version-wall":
        return known_failure("report-from-newer-nsys").found(seen, do=do)
    sure = error.code in {"damaged-file", "empty-file", "packed-twice", "nsys-export-failed"}
    return Check(error.code, "problem" if sure else "unknown", seen, "", do)
