"""Scrub or check a whole file: detect its kind, choose the output, and write it safely."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from warpline.errors import UnreadableFile, UsageError, WarplineError
from warpline.scrub.kineto import ScrubOutput, TraceScrubber
from warpline.scrub.names import NameScrubber
from warpline.scrub.nsys import ExportScrubber
from warpline.scrub.tally import KeptText, ScrubChange, Tally, kept_texts
from warpline.sources.detect import detect
from warpline.sources.kinds import (
    DIRECTORY,
    KINETO,
    MEMORY_SNAPSHOT,
    NCU_KINDS,
    NSYS_REPORT,
    NSYS_SQLITE,
    NSYS_STREAM,
    Kind,
)
from warpline.sources.nsys.report_file import EXPORT_AGAIN
from warpline.sources.sqlite.plain_file import plain_sqlite
from warpline.sources.stdin import as_shell_word
from warpline.sources.unpack import XZ_MAGIC, Packing, Unpacked, packing_of
from warpline.sources.zlib_engine import GZIP_WINDOW_BITS, engine

Progress = Callable[[float], None]
"""Called with the completed share of the work."""
BLOCK_BYTES = 1 << 20
GZIP_LEVEL = 6
USUAL_RATIO = 12
"""How many times smaller a packed trace usually is; only progress depends on it."""
PRIVATE_MODE = 0o600
KEEP_NAMES = "names"
"""The value of ``--keep`` for names that people chose."""


class ScrubResult(Struct, frozen=True):
    """What a scrubbed file keeps, and what it does not."""

    file: Path
    format: str
    """``kineto`` or ``nsys-sqlite``."""
    output: Path | None
    """The scrubbed file; None after a check."""
    keep: tuple[str, ...]
    kept: int
    """Number of values that passed."""
    changes: tuple[ScrubChange, ...]
    texts: tuple[KeptText, ...] = ()
    """The kinds of text that stay, and why."""

    @property
    def clean(self) -> bool:
        """Whether nothing is dropped or replaced."""
        return not self.changes

    def count(self, action: str) -> int:
        """Number of values that were dropped or replaced."""
        return sum(change.count for change in self.changes if change.action == action)


def check(file: Path, keep: Collection[str] = (), progress: Progress = lambda _: None) -> ScrubResult:
    """List what would be dropped or replaced; write nothing."""
    with tempfile.TemporaryDirectory(prefix="warpline-") as folder:
        # A trace is written nowhere; a database needs a file.
        return _work(file, Path(folder, "checked"), keep, progress, packed=False, target=None)


def scrub(
    file: Path,
    output: Path | None = None,
    *,
    keep: Collection[str] = (),
    in_place: bool = False,
    force: bool = False,
    progress: Progress = lambda _: None,
) -> ScrubResult:
    """Write the scrubbed file: to ``output``, ``in_place``, or into the working directory as NAME.scrubbed.ext."""
    _supported(file)
    target = _target(file, output, in_place, force)
    part: Path | None = None
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.resolve().parent)
        os.close(handle)  # created with mode 600
        part = Path(name)
        result = _work(file, part, keep, progress, packed=target.suffix == ".gz", target=target)
        part.chmod(PRIVATE_MODE)
        if not (in_place or force) and target.exists():
            raise _exists(target)
        part.replace(target.resolve())
    except OSError as error:
        raise WarplineError("cannot-write", f"{target} cannot be written: {error.strerror or error}") from error
    finally:
        if part is not None:
            part.unlink(missing_ok=True)
    return result


def default_output(file: Path) -> Path:
    """NAME.scrubbed.ext in the working directory; a compressed file keeps both its extensions."""
    name, packed = (file.name[:-3], ".gz") if file.name.endswith((".gz", ".xz")) else (file.name, "")
    stem, dot, extension = name.rpartition(".")
    return Path((f"{stem}.scrubbed.{extension}" if dot and stem else f"{name}.scrubbed") + packed)


def _target(file: Path, output: Path | None, in_place: bool, force: bool) -> Path:
    if in_place:
        if output is not None:
            raise UsageError("two-outputs", "--in-place and -o contradict each other", "give only one of them")
        return file
    target = output or default_output(file)
    if target.exists() and target.samefile(file):
        raise UsageError("would-overwrite", f"{target} is the input file", "give another name, or --in-place")
    if target.is_dir():
        raise UsageError("would-overwrite", f"{target} is a folder", "give a file name")
    if (target.exists() or target.is_symlink()) and not force:
        raise _exists(target)
    return target


def _exists(target: Path) -> UsageError:
    return UsageError("would-overwrite", f"{target} exists", "add -f to replace it, or give another name with -o")


def _supported(file: Path) -> Kind:
    kind = detect(file)
    if kind in (KINETO, NSYS_SQLITE):
        return kind
    if kind in (NSYS_REPORT, NSYS_STREAM):
        export = as_shell_word(Path(f"{file.stem}.sqlite"))
        raise WarplineError(
            "cannot-scrub",
            f"{file.name} is in NVIDIA's own report format, which only nsys can write: share its export instead",
            f"nsys export --type sqlite -o {export} {as_shell_word(file)}, then warpline scrub {export}",
        )
    if kind in NCU_KINDS:
        raise WarplineError(
            "cannot-scrub",
            f"{file.name} is of Nsight Compute: its reports and pages name the host, the process and its files",
            f"share what warpline dive {as_shell_word(file)} prints, and read it first",
        )
    if kind is MEMORY_SNAPSHOT:
        raise WarplineError(
            "cannot-scrub",
            f"{file.name} is a memory snapshot, which consists of the program's paths and functions",
            f"share what warpline memory {as_shell_word(file)} --by op prints, and read it first",
        )
    if kind is DIRECTORY:
        raise WarplineError(
            "cannot-scrub",
            f"{file.name} is a folder: a run's manifest and logs hold command lines and output",
            "scrub its traces one at a time, and share only those",
        )
    raise WarplineError(
        "cannot-scrub",
        f"{file.name} is neither a torch.profiler trace nor an nsys export",
        "give a .json, .json.gz, .sqlite or .sqlite.gz, one at a time",
    )


def _work(
    file: Path, part: Path, keep: Collection[str], progress: Progress, packed: bool, target: Path | None
) -> ScrubResult:
    kind = _supported(file)
    names, tally = NameScrubber(KEEP_NAMES in keep), Tally()
    fields = frozenset(keep) - {KEEP_NAMES}
    try:
        if kind is KINETO:
            trace = TraceScrubber(names, tally, fields)
            _scrub_trace(trace, file, part if target else None, packed, progress)
            used, texts = trace.used, kept_texts(trace.texts())
        else:
            export = ExportScrubber(names, tally, fields)
            _scrub_export(export, file, part, packed, progress)
            used, texts = export.used, kept_texts(export.texts())
    except EOFError as error:
        raise UnreadableFile("damaged-file", f"{file} ends early", "copy it again") from error
    absent = sorted(fields - used)
    if absent:
        raise UsageError(
            "no-such-field", f"{file.name} has nothing to keep under {absent[0]}", "--check lists the fields"
        )
    return ScrubResult(file, kind.name, target, tuple(sorted(keep)), tally.kept, tally.changes(), texts)


def _scrub_trace(trace: TraceScrubber, file: Path, part: Path | None, packed: bool, progress: Progress) -> None:
    size = max(file.stat().st_size, 1)
    with _sink(part, packed) as sink:
        trace.scrub(_blocks(file, lambda done: progress(done / size)), sink)


def _blocks(file: Path, progress: Progress) -> Iterator[bytes]:
    """The text of a plain or compressed file, in blocks; reports progress in bytes of the file."""
    with file.open("rb") as source:
        shrunk = 1 if packing_of(source.read(len(XZ_MAGIC))) is Packing.PLAIN else USUAL_RATIO
    unpacked, done, size = Unpacked(file, BLOCK_BYTES), 0, file.stat().st_size
    for block in unpacked:
        done += len(block)
        progress(min(done / shrunk, size))
        yield block
    if unpacked.damage:
        raise UnreadableFile(
            "damaged-file",
            f"{file} is damaged or truncated, and the missing part cannot be scrubbed: {unpacked.damage}",
            "copy or record it again",
        )


class _Packer:
    """gzip without name or time and in blocks of one size, so that the same text gives the same bytes."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._engine = engine.compressobj(GZIP_LEVEL, engine.DEFLATED, GZIP_WINDOW_BITS)
        self._pending = bytearray()

    def write(self, data: bytes, /) -> object:
        self._pending += data
        whole = len(self._pending) - len(self._pending) % BLOCK_BYTES
        for start in range(0, whole, BLOCK_BYTES):
            self._file.write(self._engine.compress(bytes(self._pending[start : start + BLOCK_BYTES])))
        del self._pending[:whole]
        return len(data)

    def finish(self) -> None:
        self._file.write(self._engine.compress(bytes(self._pending)) + self._engine.flush())


class _Nowhere:
    """Discards what is written."""

    def write(self, data: bytes, /) -> object:
        return len(data)


@contextmanager
def _sink(part: Path | None, packed: bool) -> Iterator[ScrubOutput]:
    if part is None:
        yield _Nowhere()
        return
    with part.open("wb") as file:
        if not packed:
            yield file
            return
        packer = _Packer(file)
        yield packer
        packer.finish()


def _scrub_export(export: ExportScrubber, file: Path, part: Path, packed: bool, progress: Progress) -> None:
    with plain_sqlite(file, EXPORT_AGAIN) as plain, tempfile.TemporaryDirectory(prefix="warpline-") as folder:
        if plain.health:
            raise UnreadableFile("damaged-file", f"{file}: {plain.health[0].message}", "copy it or export it again")
        copy = Path(folder, "export.sqlite") if packed else part
        export.scrub(plain.path, file, copy, progress)
        if packed:
            with copy.open("rb") as source, _sink(part, packed) as sink:
                while block := source.read(BLOCK_BYTES):
                    sink.write(block)
