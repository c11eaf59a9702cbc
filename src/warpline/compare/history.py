"""The history of a program: every run of the gate, in order, and where the level of a number changed."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import Struct, to_builtins

from warpline.compare.change_points import MIN_POINTS, Level, levels
from warpline.compare.gate import Gate, GateOutcome
from warpline.errors import UsageError
from warpline.sources.local_record import append, rows
from warpline.untrusted_json import parse_json

SCHEMA = "warpline.history/1"
COMMIT_VARIABLES = ("GITHUB_SHA", "CI_COMMIT_SHA", "BUILD_SOURCEVERSION", "GIT_COMMIT")
"""Where CI systems put the commit, which is the label of a run by default."""
NOT_COMPARABLE: GateOutcome = "not_comparable"
"""The outcome of a run that is not one of the program."""
MAX_TEXT = 200
COMMIT_DIGITS = 12


class GateRun(Struct, frozen=True):
    """One run of the gate."""

    at: str
    """UTC, ISO 8601."""
    name: str
    label: str
    outcome: str
    device: str
    numbers: dict[str, float]


class NumberHistory(Struct, frozen=True):
    """One number of a program over all runs of its gate."""

    name: str
    number: str
    runs: tuple[GateRun, ...]
    """Those that have the number, the oldest first."""
    levels: tuple[Level, ...]
    device: str = ""
    """Where they ran."""
    left_out: int = 0
    """Runs on another device, of another program, or without the number."""

    @property
    def values(self) -> list[float]:
        """The number in each run."""
        return [run.numbers[self.number] for run in self.runs]

    @property
    def enough(self) -> bool:
        """Whether there are enough runs to look for changes."""
        return len(self.runs) >= MIN_POINTS

    @property
    def changes(self) -> list[tuple[GateRun, float, float]]:
        """The first run of each new level, with the level before and the new one."""
        pairs = zip(self.levels, self.levels[1:], strict=False)
        return [(self.runs[after.start], before.median, after.median) for before, after in pairs]

    def to_dict(self) -> dict[str, Any]:
        """The JSON contract."""
        return {
            "schema": SCHEMA,
            "name": self.name,
            "number": self.number,
            "runs": [
                {
                    "at": run.at,
                    "label": run.label,
                    "outcome": run.outcome,
                    "device": run.device,
                    "value": run.numbers[self.number],
                }
                for run in self.runs
            ],
            "device": self.device,
            "left_out": self.left_out,
            "enough": self.enough,
            "levels": to_builtins(self.levels),
            "changes": [
                {"at": run.at, "label": run.label, "before": before, "after": after}
                for run, before, after in self.changes
            ],
        }


def remember(path: Path, gate: Gate, project: Path, name: str, label: str | None, metric: str) -> None:
    """Append a run of the gate."""
    numbers = {name: value.expected for name, value in gate.numbers.items() if math.isfinite(value.expected)}
    devices = ", ".join(dict.fromkeys(gate.runs[0].setting.devices))
    shown = next((os.environ[key][:COMMIT_DIGITS] for key in COMMIT_VARIABLES if os.environ.get(key)), "")
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    run = GateRun(now, name, shown if label is None else label, gate.outcome, devices, numbers)
    append_run(path, run, project, metric, len(gate.runs))


def append_run(path: Path, run: GateRun, project: Path, metric: str, recordings: int, *, once: bool = False) -> bool:
    """Append a run; with `once` only if the history has none of its label. Returns whether it was appended."""
    place, label = str(project.resolve()), run.label[:MAX_TEXT]
    numbers = json.dumps({key: round(value, 6) for key, value in run.numbers.items()})
    values = (run.at, place, run.name, label, run.outcome, metric, run.device[:MAX_TEXT], recordings, numbers)
    known = "select 1 from runs where project = ? and name = ? and label = ?"
    unless, more = (f" where not exists ({known})", (place, run.name, label)) if once else ("", ())
    return append(
        path,
        "insert into runs (at, project, name, label, outcome, metric, device, recordings, numbers)"
        f" select ?, ?, ?, ?, ?, ?, ?, ?, ?{unless}",
        (*values, *more),
    )


def labels_in(path: Path, project: Path, name: str) -> set[str]:
    """The labels of all runs of a program."""
    query = "select label from runs where project = ? and name = ?"
    return {str(label) for (label,) in rows(path, query, (str(project.resolve()), name))}


def names_in(path: Path, project: Path) -> list[str]:
    """The programs of a project that have a history."""
    found = rows(path, "select distinct name from runs where project = ? order by name", (str(project.resolve()),))
    return [str(name) for (name,) in found]


def read_history(
    path: Path, project: Path, name: str, number: str, least_effect: float, device: str | None = None
) -> NumberHistory:
    """The history of one number on this device, or else on that of the last run of the same program."""
    query = "select at, name, label, outcome, device, numbers from runs where project = ? and name = ? order by id"
    runs = [_run(row) for row in rows(path, query, (str(project.resolve()), name))]
    readable = [run for run in runs if run is not None and run.numbers]
    have = sorted({key for run in readable for key in run.numbers})
    if readable and number not in have:
        raise UsageError("no-number", f"no run of {name} has {number!r}", f"the numbers are {', '.join(have)}")
    of_program = [run for run in readable if number in run.numbers and run.outcome != NOT_COMPARABLE]
    wanted = device if device is not None else of_program[-1].device if of_program else ""
    chosen = [run for run in of_program if run.device == wanted]
    values = [run.numbers[number] for run in chosen]
    left_out = len(runs) - len(chosen)
    return NumberHistory(name, number, tuple(chosen), tuple(levels(values, least_effect)), wanted, left_out)


def _run(row: Sequence[Any]) -> GateRun | None:
    """A run as it was written; None if something else was."""
    at, name, label, outcome, device, numbers = map(str, row)
    try:
        written = parse_json(numbers)
        known = {str(key): float(value) for key, value in written.items() if value is not None}
    except (ValueError, TypeError, AttributeError):
        return None
    finite = {key: value for key, value in known.items() if math.isfinite(value)}
    return GateRun(at, name, label, outcome, device, finite)
