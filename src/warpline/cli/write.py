"""Writes to stdout, stderr and files: lines, JSON, and files that are never overwritten without -f.

No other module of the command line writes to the terminal but `output`, which prints reports through here or a console,
so that a file's text is sanitised in one place. It loads nothing heavy: `warpline --help` and errors use it too.
"""

from __future__ import annotations

import codecs
import io
import json
import math
import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from warpline.atomic_write import write_atomically
from warpline.errors import UsageError, WarplineError
from warpline.sanitise import sanitise_json, sanitise_lines
from warpline.sources.stdin import as_typed, without_spool
from warpline.sources.valid_text import valid_text
from warpline.units import several

_PLAIN = {
    **dict.fromkeys("·–−│─", "-"),
    **dict.fromkeys("█■●▁▂▃▄▅▆▇", "#"),
    **dict.fromkeys("░▒", "."),
    **dict.fromkeys("µμ", "u"),
    "×": "x",
    "→": ">",
    "±": "+-",
    "…": "...",
    "✗": "x",
    "✓": "+",
}
"""What stands for a sign that the encoding of stdout lacks; for any other, a question mark."""


def open_what_is_closed() -> None:
    """Where the shell closed stdin, stdout or stderr (`>&-`), nothing is read, and what is written is lost."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, _nothing(mode))


def discard_stdout() -> None:
    """Lose what stdout still holds and gets, since it cannot be written: flushing at exit stays quiet."""
    sys.stdout = _nothing()


def _nothing(mode: str = "w") -> Any:
    """A stream without a reader or a writer, until the process ends."""
    return open(os.devnull, mode, encoding="utf-8")  # noqa: PTH123


def write_plain_signs() -> None:
    """Where stdout or stderr has another encoding than UTF-8, write plain signs for those that it lacks."""
    codecs.register_error("warpline.plain", _plain_signs)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and not _is_utf8(stream):
            stream.reconfigure(errors="warpline.plain")


def _plain_signs(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_PLAIN.get(sign, "?") for sign in error.object[error.start : error.end]), error.end


def _is_utf8(stream: Any) -> bool:
    return codecs.lookup(getattr(stream, "encoding", None) or "utf-8").name == "utf-8"


def say(text: str, *, err: bool = False) -> None:
    """Print a line, or write it on stderr; what stderr does not take is lost, and changes no answer."""
    try:
        click.echo(sanitise_lines(text), err=err)
    except OSError:
        if not err:
            raise
        sys.stderr = _nothing()


def say_error(error: WarplineError) -> None:
    """The line of an error on stderr."""
    say(f"warpline: {without_spool(error.line())}", err=True)


def put_text(text: str, file: Path | None = None) -> None:
    """Write lines of text to stdout or to a file."""
    if file is None:
        sys.stdout.write(sanitise_lines(text))
    else:
        write_text(file, text)


def print_json(answer: Any) -> None:
    """Print the answer as strict JSON on stdout, in ASCII where stdout has another encoding than UTF-8."""
    put_text(json_text(answer, ascii_only=not _is_utf8(sys.stdout)))


def json_text(answer: Any, *, ascii_only: bool = False, indent: int | None = 1) -> str:
    """The answer as JSON; infinity and NaN become null.

    Texts are exact: what a terminal would act on is written as JSON's own escape. Only half a surrogate pair, as Python
    reads a file's name that is not UTF-8, becomes U+FFFD, because other parsers refuse it.
    """
    try:
        text = json.dumps(answer, indent=indent, ensure_ascii=False, allow_nan=False)
    except ValueError:
        text = json.dumps(_finite(answer), indent=indent, ensure_ascii=False)
    return sanitise_json(valid_text(text), ascii_only=ascii_only) + "\n"


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def check_plot(file: Path | None, force: bool) -> None:
    """Refuse a picture that is no SVG file, or one that exists."""
    if file is not None and file.suffix.lower() != ".svg":
        raise UsageError("unknown-format", f"{file.name} is not an SVG file", "use the suffix .svg")
    refuse_existing(file, force)


def refuse_existing(file: Path | None, force: bool) -> None:
    """Refuse to overwrite a file without -f; called before the analysis starts."""
    if file is not None and file.exists() and not force:
        raise UsageError("file-exists", f"{file} exists already", "add -f to overwrite it")


def write_text(file: Path, text: str) -> None:
    """Write the output file."""
    try:
        write_atomically(file, valid_text(text))
    except OSError as error:
        raise WarplineError("cannot-write", f"{file}: {error.strerror}", "name another file") from error


def table_width() -> int | None:
    """Width of a table: COLUMNS if set, else the terminal's width; unlimited without a terminal."""
    asked = os.environ.get("COLUMNS", "")
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def command_line(verb: str, path: Path, *words: str) -> str:
    """A command on a file, as typed in a shell."""
    return shlex.join(["warpline", verb, as_typed(path), *words])


def more_traces(others: Sequence[Path]) -> str:
    """How many more traces lie in a folder, and how to diagnose the first."""
    return f"{several(len(others), 'more trace')} there: {command_line('diagnose', others[0])}"
