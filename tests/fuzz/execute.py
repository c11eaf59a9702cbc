"""Runs one command on one input, in this process, and says what was wrong with the answer."""

from __future__ import annotations

import io
import os
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz import front_door, oracles, seeds
from tests.fuzz.commands import FILE, FOLDER, OTHER, OUTPUT, SEED, TRACE, Command
from tests.fuzz.inputs import HISTORY_FILE, RUN_FOLDER, Files
from warpline.cli import main
from warpline.errors import WarplineError

MEMORY_LIMIT_BYTES = 1 << 30


@dataclass(frozen=True)
class Failure:
    """Something wrong with one answer."""

    kind: str
    """Begins with the oracle's name."""
    place: str
    """The file, line and error of warpline that it comes from; empty where none is known."""

    @property
    def signature(self) -> str:
        """Equal for failures with the same cause, as far as can be told."""
        return f"{self.kind.partition(':')[0]} {self.place}".strip()


@dataclass(frozen=True)
class Outcome:
    """What one run gave."""

    failures: tuple[Failure, ...]
    code: int
    cpu_s: float
    peak_bytes: int
    out: str


@dataclass(frozen=True)
class Answer:
    """Output of a command."""

    code: int
    out: str
    err: str
    place: str = ""


def attempt(files: Files, command: Command, twice: bool = False) -> Outcome:
    """Run the command in a new folder; `twice`, it must give the same answer again."""
    folder = Path(tempfile.mkdtemp(prefix="warpline-fuzz-"))
    begun = time.process_time()
    clear_peak()
    # A process that other tests have made large before is judged by what it grows.
    limit_bytes = max(MEMORY_LIMIT_BYTES, peak_bytes() + MEMORY_LIMIT_BYTES // 2)
    try:
        answer = _run(files, command, folder)
        failures = list(_judged(command, answer, folder))
        if twice and not failures and "scrub" not in command.arguments and "--plot" not in command.arguments:
            again = _run(files, command, folder)
            if (again.code, again.out) != (answer.code, answer.out):
                failures.append(Failure("not-deterministic", ""))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    peak = peak_bytes()
    if peak > limit_bytes:
        failures.append(Failure("memory: over 1 GiB", command.verb))
    return Outcome(tuple(failures), answer.code, time.process_time() - begun, peak, answer.out)


def _judged(command: Command, answer: Answer, folder: Path) -> Iterator[Failure]:
    for problem in oracles.problems(command, answer.code, answer.out, answer.err):
        yield Failure(problem, answer.place or command.verb)
    for written in folder.glob("written*"):
        if written.suffix in {".md", ".txt", ".svg"} and (
            found := oracles.CONTROL.search(written.read_bytes().decode("utf-8", "replace"))
        ):
            yield Failure(f"control-character U+{ord(found.group()):04X} in a file", command.verb)


def _run(files: Files, command: Command, folder: Path) -> Answer:
    for name, content in files.content.items():
        (folder / name).parent.mkdir(exist_ok=True, parents=True)
        (folder / name).write_bytes(content)
    for old in folder.glob("written*"):
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    main_file = folder / files.main
    if command.front:
        return _through_the_front_door(main_file, command)
    words = {FILE: str(main_file), SEED: str(folder / f"seed{main_file.suffix}"), FOLDER: str(folder / RUN_FOLDER)}
    suffix, content = files.partner if files.partner[1] else (main_file.suffix, files.seed)
    words |= {OTHER: str(folder / f"other{suffix}"), TRACE: str(folder / "whole.json")}
    beside = {SEED: files.seed, OTHER: content, TRACE: seeds.documents()["training"].encode()}
    for mark in beside.keys() & set(command.arguments):
        Path(words[mark]).write_bytes(beside[mark])
    arguments = [words.get(word, word.replace(OUTPUT, str(folder / "written"))) for word in command.arguments]
    stdin = files.content[files.main] if command.stdin else b""
    with _streams(stdin) as (out, err), _surroundings(folder):
        place = ""
        try:
            code = main.run(arguments)
        except Exception as error:  # WARPLINE_DEBUG lets it through
            code, place = 1, place_of(error)
            print(f"warpline: internal-error {place}", file=sys.stderr)
        sys.stdout.flush()
        sys.stderr.flush()
    return Answer(code, _text(out), _text(err), place)


def _through_the_front_door(path: Path, command: Command) -> Answer:
    name, seed = command.arguments
    with _streams(b"") as (_, err), _surroundings(path.parent):
        try:
            shown = repr(front_door.FUNCTIONS[name](path, random.Random(seed)))
        except WarplineError as error:
            return Answer(1, "", f"warpline: {error.line()}")
        except Exception as error:
            return Answer(1, "", "warpline: internal-error", place_of(error))
        sys.stderr.flush()
    # What Python's repr escapes cannot reach a terminal, so that only the rest is looked at.
    return Answer(0, shown.encode("ascii", "replace").decode(), _text(err))


class _Pipe(io.BytesIO):
    """What was written stays readable after the stream is closed."""

    def close(self) -> None:
        """Nothing: the wrapper around it closes it when it is collected."""


def _text(stream: io.BytesIO) -> str:
    return stream.getvalue().decode("utf-8", "surrogateescape")


@contextmanager
def _streams(stdin: bytes) -> Iterator[tuple[io.BytesIO, io.BytesIO]]:
    """Standard streams as a pipe would be: UTF-8, and strict."""
    before = sys.stdin, sys.stdout, sys.stderr
    out, err = _Pipe(), _Pipe()
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8", errors="surrogateescape")
    sys.stdout = io.TextIOWrapper(out, encoding="utf-8", errors="strict", write_through=True)
    sys.stderr = io.TextIOWrapper(err, encoding="utf-8", errors="backslashreplace", write_through=True)
    try:
        yield out, err
    finally:
        sys.stdin, sys.stdout, sys.stderr = before


@contextmanager
def _surroundings(folder: Path) -> Iterator[None]:
    """The input's folder as working folder, a cache of its own, and errors with their traceback."""
    before, variables = Path.cwd(), dict(os.environ)
    os.environ.update({"WARPLINE_CACHE": str(folder / ".cache"), "WARPLINE_DEBUG": "1"})
    os.environ["WARPLINE_HISTORY"] = str(folder / HISTORY_FILE)
    os.environ.pop("COLUMNS", None)
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
        os.environ.clear()
        os.environ.update(variables)


def place_of(error: BaseException) -> str:
    """The innermost line of warpline, and the error's type."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/warpline/" in frame.filename]
    if not frames:
        return type(error).__name__
    return f"{frames[-1].filename.rpartition('/warpline/')[2]}:{frames[-1].lineno} {type(error).__name__}"


def clear_peak() -> None:
    """Begins to look for the peak of this process's memory anew, where the system can."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return


def peak_bytes() -> int:
    """The most memory that this process has held."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return 0
    return int(status.partition("VmHWM:")[2].split()[0]) << 10
