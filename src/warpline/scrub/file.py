"""Scrub or check a whole file: detect its kind, choose the output, and write it safely."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

from warpline.errors import UnreadableFile, UsageError, WarplineError
from warpline.scrub.kinds import Kind, Leak, Tally
from warpline.scrub.text import Scrubber
from warpline.sources.detect import GZIP_MAGIC, detect
from warpline.sources.detect import Kind as FileKind

Progress = Callable[[float], None]
"""Called with the completed share of the work."""
BLOCK_BYTES = 1 << 20
GZIP_LEVEL = 6
_KINETO = (FileKind.KINETO, FileKind.KINETO_GZ)
_NSYS = (FileKind.NSYS_SQLITE, FileKind.NSYS_SQLITE_GZ)


@dataclass(frozen=True, slots=True)
class Result:
    """The leaks of a file, and where they were found."""

    file: Path
    format: str
    """``kineto`` or ``nsys-sqlite``."""
    output: Path | None
    """The scrubbed file; None after a check."""
    kept: tuple[Kind, ...]
    leaks: tuple[Leak, ...]

    @property
    def clean(self) -> bool:
        """Whether the given file contains no leaks."""
        return not self.leaks


class _Sink(Protocol):
    def write(self, data: bytes, /) -> object: ...


def check(file: Path, keep: Collection[Kind] = (), progress: Progress = lambda _: None) -> Result:
    """List what would leak from a file; write nothing."""
    return _work(file, None, keep, progress)


def scrub(
    file: Path,
    output: Path | None = None,
    *,
    keep: Collection[Kind] = (),
    in_place: bool = False,
    force: bool = False,
    progress: Progress = lambda _: None,
) -> Result:
    """Write the scrubbed file: beside the original as NAME.scrubbed.ext, to ``output``, or ``in_place``."""
    _supported(file)
    target = _target(file, output, in_place, force)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        result = _work(file, part, keep, progress, packed=target.suffix == ".gz", target=target)
        if in_place:
            shutil.copymode(file, part)
        part.replace(target.resolve())
    except OSError as error:
        raise WarplineError("cannot-write", f"{target} cannot be written: {error.strerror or error}") from error
    finally:
        for leftover in (part, *(part.with_name(part.name + end) for end in ("-journal", "-wal", "-shm"))):
            leftover.unlink(missing_ok=True)
    return result


def default_output(file: Path) -> Path:
    """NAME.scrubbed.ext beside the file; a compressed file keeps both its extensions."""
    name, packed = (file.name[:-3], ".gz") if file.name.endswith(".gz") else (file.name, "")
    stem, dot, extension = name.rpartition(".")
    return file.with_name((f"{stem}.scrubbed.{extension}" if dot and stem else f"{name}.scrubbed") + packed)


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
    if target.exists() and not force:
        raise UsageError("would-overwrite", f"{target} exists", "add -f to replace it, or give another name with -o")
    return target


def _supported(file: Path) -> str:
    kind = detect(file)
    if kind in _KINETO:
        return "kineto"
    if kind in _NSYS:
        return "nsys-sqlite"
    if kind in (FileKind.NSYS_REP, FileKind.QDREP, FileKind.QDSTRM):
        raise WarplineError(
            "cannot-scrub",
            f"{file.name} is in NVIDIA's own report format, which only nsys can write: share its export instead",
            f"nsys export --type sqlite -o {file.stem}.sqlite {file.name}, then warpline scrub {file.stem}.sqlite",
        )
    if kind in {FileKind.NCU_REP, FileKind.NCU_REP_GZ, FileKind.NCU_REP_XZ}:
        raise WarplineError(
            "cannot-scrub",
            f"{file.name} is a Nsight Compute report, which only ncu can write",
            f"share its table instead: ncu --import {file.name} --csv --page raw",
        )
    what = "a folder" if kind is FileKind.DIRECTORY else "neither a torch.profiler trace nor an nsys export"
    raise WarplineError(
        "cannot-scrub", f"{file.name} is {what}", "give a .json, .json.gz, .sqlite or .sqlite.gz, one at a time"
    )


def _work(
    file: Path,
    part: Path | None,
    keep: Collection[Kind],
    progress: Progress,
    packed: bool = False,
    target: Path | None = None,
) -> Result:
    kind = _supported(file)
    scrubber, tally = Scrubber(keep), Tally()
    try:
        if kind == "kineto":
            _scrub_trace(file, part, packed, scrubber, tally, progress)
        else:
            _scrub_export(file, part, packed, scrubber, tally, progress)
    except EOFError as error:
        raise UnreadableFile("damaged-file", f"{file} ends early", "copy it again") from error
    return Result(file, kind, target, tuple(sorted(scrubber.keep)), tally.leaks())


def _scrub_trace(
    file: Path, part: Path | None, packed: bool, scrubber: Scrubber, tally: Tally, progress: Progress
) -> None:
    from warpline.scrub.kineto import TraceScrubber, event_pieces  # noqa: PLC0415 - loads the reader of traces

    size = max(file.stat().st_size, 1)
    trace = TraceScrubber(scrubber, tally)
    for piece in event_pieces(_blocks(file, lambda done: progress(done / size / 2))):
        trace.learn(piece)
    trace.again()
    with _sink(part, packed) as sink:
        for piece in event_pieces(_blocks(file, lambda done: progress(0.5 + done / size / 2))):
            sink.write(trace.clean(piece))


def _blocks(file: Path, progress: Progress) -> Iterator[bytes]:
    """The text of a plain or compressed file, in blocks; reports progress in bytes of the file."""
    from warpline.sources.kineto.inflate import Inflater  # noqa: PLC0415 - loads the reader of traces
    from warpline.sources.nsys.unpack import most_bytes  # noqa: PLC0415

    with file.open("rb") as source:
        if source.read(2) == GZIP_MAGIC:
            inflater, told = Inflater(file, BLOCK_BYTES, most_bytes()), 0
            for block in inflater:
                told += len(block)
                progress(min(told / 12, file.stat().st_size))
                yield block
            if inflater.broken:
                raise UnreadableFile(
                    "damaged-file",
                    f"{file} is damaged or truncated, and the missing part cannot be scrubbed: {inflater.notes[-1]}",
                    "copy or record it again",
                )
            return
        source.seek(0)
        done = 0
        while block := source.read(BLOCK_BYTES):
            done += len(block)
            progress(done)
            yield block


class _Nowhere:
    """A sink for a check, which discards the output."""

    def write(self, data: bytes, /) -> object:
        return len(data)


class _Packer:
    """gzip without name or time and in blocks of one size, so that the same text gives the same bytes."""

    def __init__(self, file: BinaryIO) -> None:
        from warpline.sources.zlib_engine import GZIP_WINDOW_BITS, engine  # noqa: PLC0415 - as the readers

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


@contextmanager
def _sink(part: Path | None, packed: bool) -> Iterator[_Sink]:
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


def _scrub_export(
    file: Path, part: Path | None, packed: bool, scrubber: Scrubber, tally: Tally, progress: Progress
) -> None:
    from warpline.scrub.nsys import scrub_export  # noqa: PLC0415 - loads when it is used
    from warpline.sources.nsys.unpack import plain_sqlite  # noqa: PLC0415

    with plain_sqlite(file) as plain, tempfile.TemporaryDirectory(prefix="warpline-") as folder:
        if plain.health:
            raise UnreadableFile("damaged-file", f"{file}: {plain.health[0].message}", "copy it or export it again")
        if part is None:
            scrub_export(plain.path, file.name, scrubber, tally, write=False, progress=progress)
            return
        copy = Path(folder, "export.sqlite") if packed else part
        shutil.copyfile(plain.path, copy)
        scrub_export(copy, file.name, scrubber, tally, write=True, progress=progress)
        if packed:
            with copy.open("rb") as source, _sink(part, packed) as sink:
                while block := source.read(BLOCK_BYTES):
                    sink.write(block)
