"""Output of ``warpline run``: the diagnosis of the recorded trace, or one line that says why there is none."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warpline.cli.diagnose import Answer, finished_answer, show
from warpline.cli.output import print_json, say
from warpline.errors import UnreadableFile, WarplineError
from warpline.untrusted_json import read_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warpline.capture.run import Run
    from warpline.capture.tool_commands import Flag


NCU_SUFFIX = ".ncu-rep"


def answer(result: Run, diagnose: bool, as_json: bool) -> int:
    """Print it; the exit code is the program's, even if the trace cannot be diagnosed and the program failed."""
    nothing = result.nothing
    try:
        _print_answer(result.manifest, result.folder, _readable(result.trace), nothing, diagnose, as_json)
    except WarplineError as error:
        nothing = WarplineError(error.code, error.message, error.hint, result.exit_code or error.exit_code)
        if as_json:
            _print_answer(result.manifest, result.folder, None, nothing, diagnose=False, as_json=True)
    if result.trace is not None:
        _say_where(result)
    if nothing is not None:
        raise nothing
    return result.exit_code


def answer_from(manifest: Path, diagnose: bool, as_json: bool) -> None:
    """The diagnosis of a run from its folder, for example of a container."""
    try:
        written = dict(read_json(manifest))
        trace = manifest.parent / written["files"][0] if written["files"] else None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UnreadableFile("bad-manifest", f"{manifest} cannot be read: {error}", "record again") from error
    _print_answer(written, manifest.parent, _readable(trace), None, diagnose, as_json)


def print_flags(flags: Sequence[Flag], as_json: bool, explain: bool = True) -> None:
    """Print a command line for a shell, explained, or as JSON."""
    from warpline.capture.recorded import SCHEMA  # noqa: PLC0415
    from warpline.capture.tool_commands import words_of  # noqa: PLC0415

    if as_json:
        parts = [{"words": list(flag.words), "why": flag.why} for flag in flags]
        print_json({"schema": SCHEMA, "command": words_of(flags), "flags": parts})
    elif explain:
        width = min(max(len(shlex.join(flag.words)) for flag in flags), 60)
        for flag in flags:
            say(f"{shlex.join(flag.words):{width}}  {flag.why}")
    else:
        say(" \\\n  ".join(shlex.join(flag.words) for flag in flags))


def _print_answer(
    manifest: dict[str, Any],
    folder: Path,
    trace: Path | None,
    nothing: WarplineError | None,
    diagnose: bool,
    as_json: bool,
) -> None:
    wanted = trace if diagnose else None
    if not as_json:
        if wanted is not None:
            show(wanted, Answer())
        return
    inside = wanted is not None and wanted.suffix == NCU_SUFFIX
    print_json(
        {
            **manifest,
            "folder": str(folder),
            "nothing": nothing.line() if nothing else None,
            "diagnosis": _diagnosed(wanted) if wanted is not None and not inside else None,
            **({"dive": _dived(wanted)} if wanted is not None and inside else {}),
        }
    )


def _dived(report: Path) -> dict[str, Any]:
    from warpline.dive.answer import dive_files  # noqa: PLC0415 - loaded when used

    return dive_files([report]).to_dict()


def _diagnosed(trace: Path) -> Any:
    return json.loads(finished_answer(trace).json)


def _readable(trace: Path | None) -> Path | None:
    """The trace to diagnose; for an nsys report its SQLite export, stored beside it."""
    if trace is None or trace.suffix != ".nsys-rep":
        return trace
    from warpline.sources.nsys.report_file import export_report  # noqa: PLC0415 - polars loads only when it is used

    return export_report(trace, trace.parent).rename(trace.with_suffix(".sqlite"))


def _say_where(result: Run) -> None:
    folder = _short(result.folder)
    say(f"warpline: the run is in {folder}", err=True)
    others = result.manifest["files"][1:]
    if others:
        more = f"{len(others)} more trace{'s' if len(others) > 1 else ''} there"
        say(f"warpline: {more}: warpline diagnose {shlex.quote(str(folder / others[0]))}", err=True)
    if result.trace is not None and result.trace.suffix == NCU_SUFFIX:
        say(f"warpline: the Nsight Compute report is {_short(result.trace)}", err=True)


def _short(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
