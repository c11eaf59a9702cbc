"""The `manifest.json` of a run: the program, the machine, the settings, and the report of each process."""

from __future__ import annotations

import contextlib
import errno
import gzip
import itertools
import json
import os
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

from warpline import __version__
from warpline.capture.bare_step_timer import StepTime
from warpline.capture.plan import Plan
from warpline.capture.process_record import NOTHING, PARTS, read_parts
from warpline.capture.run_folder import MANIFEST, SCHEMA
from warpline.capture.second_pass_file import write_second_pass
from warpline.errors import UsageError, WarplineError

PROBLEMS = "problems.txt"
COMPRESSION = 3
"""Files five times smaller than plain text, in a tenth of the time that torch's own level 9 takes."""
FOLDER_MODE, FILE_MODE = 0o700, 0o600
_HOME, _KEEP_OUT = ".warpline", ".gitignore"
_created: list[Path] = []
"""Folders that this process created, in order."""


def new_folder(name: str, output: Path | None = None) -> Path:
    """Create the folder of a new run: `.warpline/runs/NAME`, or the given one if it is not in use."""
    if len(Path(name).parts) != 1 or name == os.pardir:
        raise UsageError("bad-name", f"{name!r} is not a valid folder name", "use --output for a path")
    try:
        if output is None:
            return _create_folder(_home() / "runs", name).absolute()
        _private(output)
    except OSError as error:
        what = f"{error.filename or output or _HOME} cannot be created as a folder: {error.strerror or error}"
        raise WarplineError("no-folder", what, "choose another with --output FOLDER") from error
    return output.absolute()


def _home() -> Path:
    home = Path(_HOME)
    _private(home)
    keep_out = home / _KEEP_OUT
    if not keep_out.exists():
        keep_out.write_text("*\n", encoding="ascii")
    return home


def in_use(folder: Path) -> bool:
    """Whether the folder already contains a run."""
    return (folder / MANIFEST).exists()


def _create_folder(runs: Path, name: str) -> Path:
    """Create a folder of that name, with a number if needed: runs that start together get different folders."""
    _private(runs)
    for number in itertools.count(1):
        folder = runs / (name if number == 1 else f"{name}-{number}")
        with contextlib.suppress(FileExistsError):
            folder.mkdir(FOLDER_MODE)
            _created.append(folder.absolute())
            return folder
    raise AssertionError  # the count never ends


def _private(folder: Path) -> None:
    """Create the folder and its missing parents for this user alone; those that exist stay as they are."""
    if folder.is_dir():
        return
    if folder.parent != folder:
        _private(folder.parent)
    with contextlib.suppress(FileExistsError):
        folder.mkdir(FOLDER_MODE)
        _created.append(folder.absolute())
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))


def leave_nothing(folder: Path) -> None:
    """Remove what `new_folder` created for a run that did not start; folders with anything else in them stay."""
    home = Path(_HOME).absolute()
    for created in reversed(_created):
        if created not in {folder, *folder.parents}:
            continue
        if created == home and {path.name for path in home.iterdir()} == {_KEEP_OUT}:
            (home / _KEEP_OUT).unlink()
        with contextlib.suppress(OSError):
            created.rmdir()


def make_private(folder: Path, before: set[Path]) -> None:
    """Let only this user read what was written to the folder, other than what was there before."""
    for path in set(folder.rglob("*")) - before:
        if not path.is_symlink():
            with contextlib.suppress(OSError):
                path.chmod(FOLDER_MODE if path.is_dir() else FILE_MODE)


def gather(folder: Path) -> list[dict[str, Any]]:
    """Collect the reports of the processes, compress their traces, and delete the working files."""
    parts = read_parts(folder)
    for part in parts:
        if part["file"]:
            part["file"] = _pack(folder / part["file"]).name
            write_second_pass(folder, part)
            if (part["look"] or {}).get("stacks_file"):
                part["look"]["stacks_file"] = _pack(folder / part["look"]["stacks_file"]).name
    shutil.rmtree(folder / PARTS, ignore_errors=True)
    (folder / ".first").unlink(missing_ok=True)
    for left in folder.glob("*.json"):
        if left.name != MANIFEST and not left.stat().st_size:
            left.unlink()  # a name reserved by a process that was killed before it could write
    return parts


def _pack(path: Path) -> Path:
    target = path.with_name(f"{path.name}.gz")
    if not path.exists():
        return target
    try:
        with path.open("rb") as plain, gzip.open(target, "wb", compresslevel=COMPRESSION) as packed:
            shutil.copyfileobj(plain, packed, 1 << 20)
    except OSError:  # no space for both: keep the uncompressed file
        target.unlink(missing_ok=True)
        return path
    path.unlink()
    return target


def manifest_of(plan: Plan, parts: list[dict[str, Any]], **facts: Any) -> dict[str, Any]:
    """The manifest: facts about the run, then one entry per trace."""
    versions = {"warpline": __version__, **_versions(parts), **facts.pop("versions", {})}
    recorded = [part for part in parts if part["state"] != NOTHING]
    silent = [part for part in parts if part["state"] == NOTHING]
    return {
        "schema": SCHEMA,
        **facts,
        "with": plan.tool,
        "versions": versions,
        "bounds": {
            "skip": plan.skip,
            "settle_s": plan.settle_s,
            "warmup": plan.warmup,
            "steps": plan.steps,
            "seconds": plan.seconds,
            "megabytes": plan.megabytes,
            "after_s": plan.after_s,
            "whole": plan.whole,
        },
        "options": {
            "shapes": plan.shapes,
            "stacks": plan.stacks,
            "memory": plan.memory,
            "lines": plan.lines,
            "dataflow": plan.dataflow,
        },
        "traces": [_entry(part) for part in recorded],
        "not_recorded": [_entry(part) for part in silent],
    }


def _entry(part: dict[str, Any]) -> dict[str, Any]:
    entry = {name: value for name, value in part.items() if name not in {"python", "torch", "cuda", "number"}}
    bare, recorded = part["bare_step_ns"], part["recorded_step_ns"]
    entry["overhead"] = round(recorded["median_ns"] / bare["median_ns"], 3) if bare and recorded else None
    return entry


def _versions(parts: list[dict[str, Any]]) -> dict[str, str | None]:
    first = next((part for part in parts if part["torch"]), None)
    return {name: first[name] if first else None for name in ("python", "torch", "cuda")}


def write_times(folder: Path, trace: str, bare: StepTime | None) -> None:
    """Write a manifest that says no more of a trace than how long its steps took before they were recorded."""
    entry = {"file": trace, "bare_step_ns": asdict(bare) if bare else None}
    write_manifest(folder, {"schema": SCHEMA, "files": [trace], "traces": [entry]})


def write_manifest(folder: Path, manifest: dict[str, Any]) -> Path:
    """Write the manifest as readable JSON."""
    path = folder / MANIFEST
    try:
        # A word of the command that is not UTF-8 is no text of JSON.
        text = json.dumps(manifest, indent=1, ensure_ascii=False) + "\n"
        path.write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        what = f"{path} could not be written: {error.strerror or error}"
        raise WarplineError(
            "not-written", what, "free some disk space, or choose another folder with --output"
        ) from error
    return path
