"""Convert an nsys report (``.nsys-rep``, ``.qdrep``, ``.qdstrm``) to an SQLite export with the installed nsys.

The body of a report is undocumented, and nsys refuses reports newer than itself. The first line names the version that
wrote it, so that the refusal can be predicted and explained.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from warpline.errors import UnreadableFile, WarplineError
from warpline.quote import quote
from warpline.sources.cache_folder import Content, cache_folder
from warpline.sources.cache_limit import make_room
from warpline.sources.private_files import (
    FILE_MODE,
    folder_until_exit,
    is_own_folder,
    open_file,
    own_folder,
    publish,
    temporary_folder,
)

HEADER_BYTES = 256
EXPORT_SECONDS = 1800
EXPORT_AGAIN = "export the report again: nsys export --type sqlite --force-overwrite=true REPORT.nsys-rep"
VERSION_SECONDS = 60
MAX_STEM = 100
"""Characters of the report's name in the export's name."""

_HEADER = re.compile(rb"NVIDIA Tegra Profiler Report ([0-9@]+)")
_VERSION = re.compile(r"(\d{4})\.(\d+)(?:\.(\d+))?(?:\.(\d+))?")


class Version(Struct, frozen=True):
    """A version of nsys: year, release, update and build; unknown parts are 0."""

    numbers: tuple[int, ...]

    def __str__(self) -> str:
        return ".".join(str(number) for number in self.numbers)

    def newer_than(self, other: Version) -> bool:
        """Whether ``other`` refuses a report of this version; builds, which often differ, are ignored."""
        return self.numbers[:3] > other.numbers[:3]


class Nsys(Struct, frozen=True):
    """An nsys that can be run."""

    path: Path
    version: Version | None


def report_version(path: Path) -> Version | None:
    """The version that wrote a report; None if its header does not say (before 2023.4, or within ncu)."""
    try:
        with path.open("rb") as file:
            head = file.read(HEADER_BYTES)
    except OSError as error:
        raise UnreadableFile("unreadable-file", f"{path} cannot be read: {error.strerror or error}") from error
    found = _HEADER.search(head)
    if not found:
        return None
    parts = [int(part) for part in found[1].split(b"@") if part][:4]
    # "1" stands for all old reports; the nsys inside Nsight Compute writes a bare build number.
    return Version(tuple(parts)) if len(parts) > 1 else None


def find_nsys() -> Nsys | None:
    """The nsys given by WARPLINE_NSYS, or the one on PATH."""
    named = os.environ.get("WARPLINE_NSYS", "")
    found = shutil.which(named or "nsys")
    if not found:
        if named:
            raise WarplineError("nsys-missing", f"WARPLINE_NSYS is {named}, which cannot be run", "correct or unset it")
        return None
    return Nsys(Path(found), _version_of(Path(found)))


def _version_of(nsys: Path) -> Version | None:
    try:
        answer = subprocess.run(
            [str(nsys), "--version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=VERSION_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _VERSION.search(answer.stdout)
    return Version(tuple(int(part) for part in found.groups() if part)) if found else None


def export_report(path: Path, cache: Path | None = None) -> Path:
    """The SQLite export of a report, from the cache if it was exported before.

    It stays where it is while this process runs. If the cache cannot be written, it is made in a temporary folder.
    """
    content = _content(path)
    name = _export_name(path, content.digest)
    target = (cache if cache is not None else cache_folder()) / name
    if is_own_folder(target.parent) and _hold(target):
        return target
    nsys = _usable_nsys(path)
    try:
        return _exported(nsys, content, _ready(target.parent) / name)
    except OSError:
        folder = folder_until_exit()
    try:
        return _exported(nsys, content, folder / name)
    except OSError as error:
        raise WarplineError(
            "nsys-export-failed",
            f"the export of {path.name} cannot be stored: {error.strerror or error}",
            "set WARPLINE_CACHE or TMPDIR to a writable folder with enough space",
        ) from error


def _export_name(path: Path, digest: str) -> str:
    return f"{path.stem[:MAX_STEM]}-{digest}.sqlite"


def _exported(nsys: Nsys, content: Content, target: Path) -> Path:
    """Export under another name and rename: an interrupted export is never taken for a whole one."""
    with temporary_folder(target.parent) as work:
        made = _export(nsys, content.file, work)
        made.chmod(FILE_MODE)
        _hold(made)
        if not content.is_unchanged():  # nobody may find it by that content
            target = target.with_name(_export_name(content.file, os.urandom(20).hex()))
        publish(made, target)
    return target


def _ready(folder: Path) -> Path:
    """The folder of exports, with room made if it is the cache."""
    own_folder(folder)
    if folder == cache_folder():
        make_room()
    return folder


_held: list[BinaryIO] = []


def _hold(export: Path) -> bool:
    """Lock an export for as long as this process runs, so that no other removes it; False if there is none.

    SQLite opens a file by its name, so an open descriptor alone would not keep it.
    """
    try:
        file = open_file(export)
    except OSError:
        return False
    with contextlib.suppress(OSError):  # a file system without locks
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    try:
        is_still_there = os.path.samestat(os.fstat(file.fileno()), export.lstat())
        if is_still_there and os.fstat(file.fileno()).st_size:
            with contextlib.suppress(OSError):
                os.utime(file.fileno())
            _held.append(file)
            return True
    except OSError:
        pass
    file.close()
    return False


def _content(path: Path) -> Content:
    try:
        return Content.of(path)
    except OSError as error:
        raise UnreadableFile("unreadable-file", f"{path} cannot be read: {error.strerror or error}") from error


def _usable_nsys(path: Path) -> Nsys:
    needed, nsys = report_version(path), find_nsys()
    stream = path.suffix == ".qdstrm"
    if nsys is None:
        wanted = (
            f"{needed} or newer" if needed else ("of the same version" if stream else "of the same version or newer")
        )
        what = "raw stream" if stream else "report"
        raise WarplineError(
            "nsys-missing",
            f"{path.name} is a {what} of Nsight Systems, which only nsys can open, but nsys is not on PATH",
            f"on a machine with nsys {wanted}: nsys export --type sqlite -o {path.stem}.sqlite {path.name}",
        )
    if needed and nsys.version and needed.newer_than(nsys.version):
        raise _wall(path, needed, nsys)
    return nsys


def _wall(path: Path, needed: Version, nsys: Nsys) -> WarplineError:
    return WarplineError(
        "nsys-version-wall",
        f"{path.name} was written by nsys {needed}, but the installed nsys, {nsys.version}, refuses newer reports",
        f"install nsys {needed} or newer, or export where it was recorded: "
        f"nsys export --type sqlite -o {path.stem}.sqlite {path.name}",
    )


def _export(nsys: Nsys, path: Path, work: Path) -> Path:
    made = work / "export.sqlite"
    command = [str(nsys.path), "export", "--type", "sqlite", "--lazy=true", "--force-overwrite=true"]
    try:
        answer = subprocess.run(
            [*command, "-o", str(made), str(path.absolute())],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=EXPORT_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired as error:
        raise WarplineError(
            "nsys-export-failed", f"nsys did not finish exporting {path.name} within {EXPORT_SECONDS // 60} minutes"
        ) from error
    if answer.returncode == 0 and made.is_file() and made.stat().st_size:
        return made
    raise _export_failed(nsys, path, answer.stderr + "\n" + answer.stdout, answer.returncode)


def _export_failed(nsys: Nsys, path: Path, said: str, status: int) -> WarplineError:
    lines = [line for line in said.splitlines() if line.strip()]
    telling = [
        line for line in lines if re.search(r"error|newer|version|fail|unable|cannot|importer", line, re.IGNORECASE)
    ]
    last = quote((telling or lines or [f"exit status {status}"])[0])
    if path.suffix == ".qdstrm":
        return WarplineError(
            "nsys-version-wall",
            f"{path.name} is a raw stream that nsys {nsys.version or ''} did not import: {last}",
            "import it with the QdstrmImporter of exactly the version that recorded it: "
            f"QdstrmImporter --input-file {path.name}",
        )
    if re.search(r"newer|created (?:in|by|with).{0,60}version", said, re.IGNORECASE):
        return WarplineError(
            "nsys-version-wall",
            f"{path.name} was written by a newer nsys than {nsys.version or 'the installed one'}: {last}",
            "install the newest nsys, or export where it was recorded: "
            f"nsys export --type sqlite -o {path.stem}.sqlite {path.name}",
        )
    return WarplineError(
        "nsys-export-failed",
        f"nsys {nsys.version or ''} could not export {path.name}: {last}",
        "the report may be incomplete: copy or record it again",
    )
