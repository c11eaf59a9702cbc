"""Judges each trace that appears in a folder, once: its step goes into the history, and a new level is reported.

A file is judged when it has stopped changing. What was judged is known from the history alone, so that a watch can be
ended at any time, and two may look at one folder. A trace of another program than the one before it, by the rule of
`warpline compare`, is said to be one and left out of the series.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from warpline.compare.change_points import MIN_LEVEL_POINTS, levels
from warpline.compare.comparison import other_work
from warpline.compare.history import GateRun, append_run, labels_in, read_history
from warpline.compare.measurement import measure_sound
from warpline.compare.spread import IDLE_SPREAD
from warpline.compare.step_numbers import step_numbers
from warpline.compare.typical_step import TypicalStep, typical_step
from warpline.errors import UnreadableFile, WarplineError
from warpline.estimate import Estimate
from warpline.findings.diagnosis import diagnose
from warpline.ranks.files import RankFile, jobs_among, ranked_files
from warpline.ranks.job import open_job
from warpline.trace.open import open_trace
from warpline.units import duration, several, speedup

SCHEMA = "warpline.watch/1"
NUMBER = "step_ms"
METRIC = "watch"
LARGE_CHANGE = IDLE_SPREAD
"""From this change on the step of the trace before is said: two runs of one program may differ by so much."""
DAMAGED = {"damaged-recording"}
"""Errors that a recording may have because it is still being written."""
WatchOutcome = Literal["recorded", "slower", "faster", "not_comparable", "no answer"]
State = tuple[tuple[str, int, int], ...]
"""Path, size and time of change of each file."""


class LevelChange(Struct, frozen=True):
    """A new level of the step, and the first trace that has it."""

    since: str
    before_ms: float
    after_ms: float


class WatchedTrace(Struct, frozen=True):
    """What is said about one trace, or one set of ranks."""

    at: str
    trace: str
    outcome: WatchOutcome
    device: str = ""
    numbers: dict[str, float] = {}
    cause: str | None = None
    fix: str | None = None
    gain: Estimate | None = None
    change: LevelChange | None = None
    before_ms: float | None = None
    """The step of the trace before it on the same device; None if there is none. One trace alone is no new level."""
    other_program: str | None = None
    """Why its step is not compared with that of the trace before."""
    error: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """One line of JSON."""
        return {"schema": SCHEMA, **to_builtins(self)}

    def line(self) -> str:
        """One line for people."""
        name = " ".join(self.trace.split())
        if self.error is not None:
            return f"{name} · cannot answer: {self.error}"
        step = f"step {duration(1e6 * self.numbers[NUMBER])}" if NUMBER in self.numbers else "no steps"
        if self.before_ms and abs(self.numbers[NUMBER] / self.before_ms - 1) >= LARGE_CHANGE:
            step = f"{step}, {duration(1e6 * self.before_ms)} in the trace before"
        parts = [name, step, self.cause or "no verdict"]
        if self.fix and self.gain:
            parts.append(f"{self.fix} {speedup(self.gain.expected)} ({self.gain.speedups})")
        if self.change:
            before, after = (duration(1e6 * value) for value in (self.change.before_ms, self.change.after_ms))
            parts.append(f"{self.outcome.upper()}: {before} → {after} since {self.change.since}")
        if self.other_program is not None:
            parts.append(f"not compared: {self.other_program}")
        return " · ".join(parts)


class WatchedFiles(Struct, frozen=True):
    """A trace or a set of ranks that may be judged."""

    name: str
    files: tuple[Path, ...]
    state: State
    is_complete: bool
    """Whether no more ranks are to come, as far as the files say."""
    job: str | None = None
    """What the folder calls the job at the moment; None for a trace."""

    @property
    def label(self) -> str:
        """By which the history knows it: another state of the same files is another trace."""
        return f"{hashlib.blake2b(repr(self.state).encode(), digest_size=6).hexdigest()} {self.name}"


class Watch:
    """A folder, and what is known about its files."""

    def __init__(
        self, folder: Path, history: Path, name: str, settle_s: float, patience_s: float, least: float
    ) -> None:
        self.folder, self.history, self.name = folder.resolve(), history, name
        self.settle_s, self.patience_s, self.least_effect = settle_s, patience_s, least
        self._judged = labels_in(history, self.project, name)
        self._since: dict[str, float] = {}
        """When each state that is not judged was first seen."""
        self._unreadable: set[str] = set()
        """States that could not be read so far."""
        self._steps: dict[str, TypicalStep] = {}
        """Of the trace judged last, by its label."""

    @property
    def project(self) -> Path:
        """The folder that holds the watched one, where `warpline history` finds its runs."""
        return self.folder.parent

    def look(self) -> Iterator[WatchedTrace]:
        """Judge what has appeared and stopped changing."""
        now = time.monotonic()
        new = [one for one in candidates(self.folder) if one.label not in self._judged]
        self._since = {one.label: self._since.get(one.label, now) for one in new}
        self._unreadable &= self._since.keys()
        for one in new:
            age_s = now - self._since[one.label]
            is_late = age_s >= max(self.patience_s, self.settle_s)
            if is_late or (age_s >= self.settle_s and one.is_complete and one.label not in self._unreadable):
                yield from self._judge(one, is_late)

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits to be judged."""
        return not self._since

    def _judge(self, one: WatchedFiles, is_late: bool) -> Iterator[WatchedTrace]:
        try:
            found = self._answered(one)
        except WarplineError as error:
            may_grow = isinstance(error, UnreadableFile) or error.code in DAMAGED
            if may_grow and not is_late:
                self._unreadable.add(one.label)
                return
            found = WatchedTrace(_now(), one.name, "no answer", error=f"{error.code}: {error.message}")
        except Exception as error:  # a file that breaks the reader must not end the watch, today and after each restart
            what = " ".join(f"internal-error: {type(error).__name__}: {error}".split())[:300]
            found = WatchedTrace(_now(), one.name, "no answer", error=what)
        if _state(self.folder, one.files) != one.state:
            return  # it changed while it was read
        found = self._with_level(found, one)
        run = GateRun(found.at, self.name, one.label, found.outcome, found.device, found.numbers)
        self._judged.add(one.label)
        self._since.pop(one.label, None)
        if append_run(self.history, run, self.project, METRIC, len(one.files), once=True):
            yield found

    def _answered(self, one: WatchedFiles) -> WatchedTrace:
        """The step and the verdict of a trace or a job."""
        if one.job is not None:
            job = open_job(self.folder, job=one.job)
            numbers, device = {NUMBER: job.step_ns / 1e6}, several(len(job.ranks), "rank")
            return WatchedTrace(_now(), one.name, "recorded", device, numbers, job.verdict.cause)
        diagnosis = diagnose(open_trace(one.files[0]))
        run = measure_sound(diagnosis)
        device = ", ".join(dict.fromkeys(run.setting.devices))
        self._steps = {**self._steps, one.label: run.step}
        numbers = {
            name: value.expected for name, value in step_numbers(diagnosis, run.counts, run.step.lengths_ns).items()
        }
        answer = WatchedTrace(_now(), one.name, "recorded", device, numbers)
        verdict = diagnosis.verdict
        if verdict is None:
            return answer
        return replace(answer, cause=verdict.cause, fix=verdict.fix, gain=verdict.gain if verdict.fix else None)

    def _with_level(self, found: WatchedTrace, one: WatchedFiles) -> WatchedTrace:
        """With the change of the level that this trace makes certain, unless an earlier one has reported it."""
        if NUMBER not in found.numbers:
            return found
        runs = read_history(self.history, self.project, self.name, NUMBER, self.least_effect, found.device).runs
        if runs:
            before = self._step(runs[-1])
            step = self._steps.get(one.label)
            why = other_work(before, step, one=_named(runs[-1]), other=found.trace) if before and step else None
            if why is not None:
                del self._steps[one.label]
                return replace(found, outcome="not_comparable", other_program=why)
            found = replace(found, before_ms=runs[-1].numbers[NUMBER])
        self._steps = {label: step for label, step in self._steps.items() if label == one.label}
        values = [*(run.numbers[NUMBER] for run in runs), found.numbers[NUMBER]]
        steps = levels(values, self.least_effect)
        if len(steps) < 2:
            return found
        old, new = steps[-2:]
        recent = runs[max(0, new.start - MIN_LEVEL_POINTS) :]
        if any(run.outcome in {"slower", "faster"} for run in recent):
            return found
        first = _named(runs[new.start]) if new.start < len(runs) else found.trace
        outcome: WatchOutcome = "slower" if new.median > old.median else "faster"
        return replace(found, outcome=outcome, change=LevelChange(first, old.median, new.median))

    def _step(self, run: GateRun) -> TypicalStep | None:
        """The step of an earlier trace; None if it is a job, or its file has gone or changed."""
        if run.label not in self._steps:
            file = self.folder / _named(run)
            if not file.is_file() or _candidate(self.folder, [RankFile(file)], is_whole=True).label != run.label:
                return None
            try:
                self._steps[run.label] = typical_step(open_trace(file))
            except WarplineError:
                return None  # it goes just now
        return self._steps[run.label]


def candidates(folder: Path) -> list[WatchedFiles]:
    """Every trace and set of ranks of the folder, as it is now."""
    try:
        files = ranked_files(folder)
    except OSError:
        return []  # files vanished meanwhile; the next look sees what is left
    found, in_jobs = [], set()
    for job in jobs_among(folder, files):
        ranks = [file for file in job.files if file.rank is not None]
        in_jobs |= {file.path for file in ranks}
        found.append(_candidate(folder, ranks, _is_whole(ranks), job.name))
    for file in files:
        if file.path not in in_jobs:
            found.append(_candidate(folder, [file], file.rank is None or file.world_size == 1))
    return [one for one in found if len(one.state) == len(one.files)]


def _candidate(folder: Path, files: Sequence[RankFile], is_whole: bool, job: str | None = None) -> WatchedFiles:
    """A job is named after its own folder, or else its first file: neither changes when more files come."""
    paths = tuple(sorted(file.path for file in files))
    parents = {path.parent for path in paths}
    has_folder = job is not None and len(parents) == 1 and folder not in parents
    named = paths[0].parent if has_folder else paths[0]
    return WatchedFiles(str(named.relative_to(folder)), paths, _state(folder, paths), is_whole, job)


def _is_whole(files: Sequence[RankFile]) -> bool:
    sizes = {file.world_size for file in files}
    return len({file.rank for file in files}) in sizes


def _named(run: GateRun) -> str:
    return run.label.partition(" ")[2]


def _state(folder: Path, files: Sequence[Path]) -> State:
    """Of the files that are still there."""
    found = []
    for file in files:
        try:
            state = file.stat()
        except OSError:
            continue
        found.append((str(file.relative_to(folder)), state.st_size, state.st_mtime_ns))
    return tuple(found)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
