"""Baselines: what a program took when it was good, as a small JSON file for the repository.

The file is the same for the same recordings, and a change of it reads well in a diff: keys in a fixed order, one kernel
a line. It holds no path, no argument and no environment variable: only kernel names, times and the setting.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import to_builtins

from warpline.analyses.idle.gaps import CAUSES
from warpline.atomic_write import write_atomically
from warpline.compare.comparable import CPU_NAME, Setting
from warpline.compare.counts import KINDS
from warpline.compare.measurement import RunMeasurement
from warpline.compare.stopwatch import BareStepTime
from warpline.compare.typical_step import CPU, Operation, TypicalStep
from warpline.errors import UnreadableFile, UsageError, WarplineError
from warpline.intervals import Spans
from warpline.untrusted_json import read_json

SCHEMA = "warpline.baseline/1"
MAX_BYTES = 64_000_000
"""A larger file is no baseline of ours."""
MAX_AMOUNT = 1e15
"""Nanoseconds of 11 days: no recording takes longer, and no count of a step is larger."""


def path_of(name: str, folder: Path) -> Path:
    """Where a baseline of that name lies; a name that ends in .json is a path."""
    if name.endswith(".json"):
        return Path(name)
    if not name or Path(name).name != name or name.startswith("."):
        raise UsageError("bad-name", f"{name!r} is no name of a baseline", "use letters, digits and dashes")
    return folder / f"{name}.json"


def write_baseline(path: Path, runs: Sequence[RunMeasurement]) -> None:
    """Write the runs as a baseline."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, _text(runs))
    except OSError as error:
        raise WarplineError("cannot-write", f"{path}: {error.strerror}", "name another with --folder") from error


def read_baseline(path: Path) -> list[RunMeasurement]:
    """Read the runs of a baseline."""
    try:
        written = read_json(path, MAX_BYTES)
    except FileNotFoundError as error:
        near = get_close_matches(path.stem, (file.stem for file in path.parent.glob("*.json")), 1)
        hint = f"did you mean {near[0]}?" if near else f"write it with warpline baseline save {path.stem} TRACE"
        raise UnreadableFile("no-baseline", f"there is no baseline {path}", hint) from error
    except (OSError, ValueError) as error:
        raise _refused(path, "is too large, cut off, or not a JSON file") from error
    if not isinstance(written, dict) or written.get("schema") != SCHEMA:
        raise _refused(path, f"is not a baseline of this version ({SCHEMA})")
    try:
        operations = [
            Operation(str(row["kind"]), str(row["name"]), "", (*map(int, row["grid"]),))
            for row in written["operations"]
        ]
        runs = [_run(row, operations, _setting(written["setting"])) for row in written["runs"]]
    except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        raise _refused(path, "is damaged") from error
    if not runs:
        raise _refused(path, "has no runs")
    return runs


def _refused(path: Path, why: str) -> UnreadableFile:
    again = f"write it again with warpline baseline save {path.stem} TRACE… -f"
    return UnreadableFile("not-a-baseline", f"{path.name} {why}", again)


def _text(runs: Sequence[RunMeasurement]) -> str:
    known: dict[tuple[str, str, tuple[int, ...]], int] = {}
    rows = [_row(run, known) for run in runs]
    setting = runs[0].setting
    parts = [
        ("schema", json.dumps(SCHEMA)),
        (
            "setting",
            json.dumps({**to_builtins(setting), "recorded": sorted(setting.recorded)}),
        ),
        ("operations", _lines({"kind": kind, "name": name, "grid": grid} for kind, name, grid in known)),
        ("runs", _lines(rows)),
    ]
    return "{\n" + ",\n".join(f'"{key}": {value}' for key, value in parts) + "\n}\n"


def _lines(rows: Any) -> str:
    """A list with one element a line."""
    return "[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]"


def _row(run: RunMeasurement, known: dict[tuple[str, str, tuple[int, ...]], int]) -> dict[str, Any]:
    step = run.step
    keys = [(one.kind, one.name, one.grid) for one in step.operations]
    return {
        "file": run.file,
        "step_ns": step.step_ns,
        "averaged": step.averaged,
        "found_by": step.found_by,
        "ahead_ns": step.ahead_ns,
        "covered": step.covered,
        "between_ns": step.between_ns,
        "counts": {name: round(value, 6) for name, value in run.counts.items()},
        "idle_ns": step.idle_ns,
        "lengths_ns": step.lengths_ns.tolist(),
        "sequence": [known.setdefault(key, len(known)) for key in keys],
        "exposed_ns": step.exposed_ns.tolist(),
        "launch_times_ns": run.launch_times,
        "waited_ns": None if step.waited_ns is None else step.waited_ns.tolist(),
        "stopwatch": None if run.stopwatch is None else to_builtins(run.stopwatch),
    }


def _setting(row: dict[str, Any]) -> Setting:
    driver = row["driver"]
    return Setting(
        str(row["source"]),
        tuple(map(str, row["devices"])),
        None if driver is None else str(driver),
        int(row["ranks"]),
        frozenset(map(str, row["recorded"])),
        None if row.get("rank") is None else str(row["rank"]),
    )


def _run(row: dict[str, Any], operations: list[Operation], setting: Setting) -> RunMeasurement:
    lengths = [int(_amount(length)) for length in row["lengths_ns"]]
    _amount(sum(lengths))
    ends = np.cumsum(lengths, dtype=np.int64)
    sequence = [int(place) for place in row["sequence"]]
    exposed = np.array([_amount(length) for length in row["exposed_ns"]], np.float64)
    waited = row.get("waited_ns")
    waits = None if waited is None else np.array([_amount(length) for length in waited], np.float64)
    if waits is not None and len(waits) != len(exposed):
        raise ValueError("waits")
    if not len(ends) or len(exposed) != len(sequence) or min(sequence, default=0) < 0:
        raise ValueError("lengths")
    step = TypicalStep(
        operations=tuple(operations[place] for place in sequence),
        exposed_ns=exposed,
        idle_ns={cause: _amount(row["idle_ns"][cause]) for cause in CAUSES},
        spans=Spans(np.append(0, ends[:-1]), ends),
        averaged=int(row["averaged"]),
        step_ns=_amount(row["step_ns"]),
        device=CPU if setting.devices == (CPU_NAME,) else 0,
        found_by=None if row["found_by"] is None else str(row["found_by"]),
        ahead_ns=_amount(row["ahead_ns"]),
        waited_ns=waits,
        covered=_amount(row.get("covered", 1.0)) or 1.0,
        between_ns=None if row.get("between_ns") is None else _amount(row["between_ns"]),
    )
    counts = {name: _amount(row["counts"][name]) for name in KINDS}
    times = {str(name): _time(time) for name, time in dict(row.get("launch_times_ns") or {}).items()}
    return RunMeasurement(str(row["file"]), setting, step, counts, times, stopwatch=_stopwatch(row.get("stopwatch")))


def _stopwatch(row: dict[str, Any] | None) -> BareStepTime | None:
    if row is None:
        return None
    laps = tuple(int(_amount(lap)) for lap in row["laps_ns"])
    if not laps:
        raise ValueError("laps")
    cpu_ns = row["cpu_ns"]
    return BareStepTime(_time(row["step_ns"]), laps, None if cpu_ns is None else _time(cpu_ns))


def _time(value: Any) -> float:
    """A time that is not zero."""
    return max(_amount(value), 1.0)


def _amount(value: Any) -> float:
    """A time or a count; ValueError for what no program reaches, so that sums and differences stay numbers."""
    amount = float(value)
    if not 0 <= amount <= MAX_AMOUNT:
        raise ValueError("amount")
    return amount
