"""Opens a profile of any kind: detect, read and build; or load it from the cache."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path

import polars as pl
from msgspec.structs import replace

from warpline.capture.run_folder import MANIFEST, recorded_files
from warpline.errors import UnreadableFile
from warpline.sources.cache_folder import content_of, limit_bytes
from warpline.sources.detect import detect
from warpline.sources.health import HealthEntry
from warpline.sources.kinds import DIRECTORY, KINETO, NSYS_STREAM, Kind
from warpline.sources.registry import source_of, sources, suffixes_of
from warpline.sources.rows import Rows
from warpline.sources.stdin import as_shell_word
from warpline.trace.arrays import NONE
from warpline.trace.cache import load, store
from warpline.trace.checks import check
from warpline.trace.companions import COMPANIONS, Companions
from warpline.trace.execution_trace import execution_trace_beside, is_execution_trace
from warpline.trace.link import link
from warpline.trace.repair import guarantee
from warpline.trace.schema import Dataflow, Health, Steps
from warpline.trace.steps.choice import StepChoice, steps_named
from warpline.trace.steps.find import find_steps
from warpline.trace.trace import Trace


def open_trace(
    path: str | Path,
    *,
    steps: str | None = None,
    step_range: str | None = None,
    cache: bool = True,
) -> Trace:
    """Open a profile: Kineto or XLA JSON, an nsys export or an nvprof database, plain or gzipped, or an .nsys-rep.

    `steps` selects steps ("3:6"), `step_range` names the NVTX range or record_function that is a step,
    and `cache=False` parses the file again instead of using the cache.
    """
    file = Path(path)
    if cache:
        limit_bytes()  # a wrong setting is an error for every file, whatever its size
    if file.is_dir() and detect(file) is DIRECTORY:
        file, _ = trace_of_folder(file)
    content = content_of(file) if cache else None
    trace = load(content.key, file) if content else None
    if trace is None:
        trace = build(file, _read(file))
        if content and content.is_unchanged():
            store(content.key, trace)
    companions = Companions(file, partial(open_trace, cache=cache))
    if not companions.exists and trace.source == KINETO.name and len(trace.ops):
        processes = {int(process) for process in trace.threads.process if process != NONE}
        companions.execution_trace = execution_trace_beside(file, processes)
    if companions.exists:
        dataflow = Dataflow(partial(companions.dataflow, trace.all_steps))
        trace = replace(trace, companions=companions, dataflow=dataflow)
    if step_range is not None:
        trace = replace(trace, all_steps=Steps(steps_named(trace.ranges, step_range).table()))
    return trace if steps is None else trace.with_steps(StepChoice.parse(steps))


_LISTED = 5
MAX_FILES = 10_000
"""Files of a folder that are looked at: ten recordings of a job of a thousand ranks."""


class NotATimeline(UnreadableFile):
    """The file is known, but has no timeline."""

    def __init__(self, file: Path, kind: Kind) -> None:
        self.read_by = kind.read_by
        """The verb that reads it, if there is one."""
        word = as_shell_word(file)
        if self.read_by:
            hint = f"warpline {self.read_by} {word}"
        elif file.suffix == ".py":
            hint = f"to record the program: warpline run {word}"
        else:
            hint = f"give a torch.profiler trace or an nsys export; of a log: warpline doctor {word}"
        super().__init__("not-a-trace", f"{file} is {kind.without_timeline}", hint)


def _read(file: Path) -> Rows:
    kind = detect(file)
    source = source_of(kind)
    if source is not None:
        return source.read(file)
    raise NotATimeline(file, kind)


def trace_of_folder(folder: Path) -> tuple[Path, list[Path]]:
    """The profile to open of a folder, and the others of the same run.

    Of a run of `warpline run` it is the first one of its manifest; other folders must have a single profile, as
    tensorboard_trace_handler leaves it: several must be told apart by name.
    """
    recorded = _files_of_run(folder)
    if recorded:
        return recorded[0], recorded[1:]
    files = profiles_in(folder)
    if len(files) > 1:
        files = [file for file in files if source_of(detect(file)) is not None] or files
    if len(files) == 1:
        return files[0], []
    listed = ", ".join(str(file.relative_to(folder)) for file in files[:_LISTED])
    found = f"{len(files)} profiles ({listed}{' …' if len(files) > _LISTED else ''})" if files else "no profile"
    raise UnreadableFile("which-trace", f"{folder} holds {found}", "name one file")


def profiles_in(folder: Path) -> list[Path]:
    """The files of a folder, at any depth, that may be profiles by their names; an nsys export may be a folder, and an
    execution trace belongs to another file."""
    suffixes = _profile_suffixes()
    named = files_named(folder, lambda name: is_profile(name, suffixes))
    return [
        file for file in named if not is_execution_trace(file) and (file.is_file() or detect(file) is not DIRECTORY)
    ]


def files_named(folder: Path, wanted: Callable[[str], bool]) -> list[Path]:
    """What a folder holds at any depth under names that are wanted, in order. Of more than `MAX_FILES`, each of which
    would be opened, it is an error."""
    found = list(islice((file for file in folder.rglob("*") if wanted(file.name)), MAX_FILES + 1))
    if len(found) > MAX_FILES:
        raise UnreadableFile(
            "too-many-files",
            f"{folder} holds more than {MAX_FILES:,} files named as profiles",
            "name one file or folder",
        )
    return sorted(found)


def _files_of_run(folder: Path) -> list[Path]:
    """The profiles that the manifest of a run names, an nsys report by its export; empty without a manifest."""
    files = [
        export if file.suffix == ".nsys-rep" and (export := file.with_suffix(".sqlite")).is_file() else file
        for file in recorded_files(folder)
        if is_profile(file.name)
    ]
    return [file for file in files if file.is_file()]


def is_profile(name: str, suffixes: tuple[str, ...] = ()) -> bool:
    """Whether a file of that name may be a profile of its own, not what `warpline run` wrote beside one; `suffixes` are
    those of profiles, where the caller has them."""
    return name.endswith(suffixes or _profile_suffixes()) and not name.endswith(COMPANIONS) and name != MANIFEST


def _profile_suffixes() -> tuple[str, ...]:
    # nsys may leave a raw stream beside its report.
    return suffixes_of(*(source.kind for source in sources() if source.kind is not NSYS_STREAM))


def build(file: Path, rows: Rows) -> Trace:
    """Build a trace from a reader's rows: all tables, linked and checked. Removes the tables from the rows, so that
    none is in memory twice."""
    frames, repairs = guarantee(rows)
    facts = {"source": rows.source, **rows.meta}
    frames["meta"] = pl.DataFrame(
        {"key": list(facts), "value": list(facts.values())}, schema={"key": pl.String, "value": pl.String}
    )
    trace = Trace.of_tables(file, rows.source, link(frames))
    steps = find_steps(trace)
    if steps is not None:
        trace = replace(trace, all_steps=Steps(steps.table()))
    said = rows.health + _unsaid(repairs.health(), rows.health)
    return replace(trace, health=Health(_health_table(said + _unsaid(check(trace), said))))


_EXPLAINED_BY = {
    "empty-trace": {"no-kernels", "launches-without-kernels"},
    "no-gpu-work": {"no-kernels", "launches-without-kernels", "other-device", "counters-only"},
}
"""Entries of the linked trace that add nothing once the reader, which knows the cause, has spoken."""


def _unsaid(found: list[HealthEntry], said: list[HealthEntry]) -> list[HealthEntry]:
    known = {entry.code for entry in said}
    return [entry for entry in found if entry.code not in known and not _EXPLAINED_BY.get(entry.code, set()) & known]


def _health_table(entries: list[HealthEntry]) -> pl.DataFrame:
    columns = {name: [getattr(entry, name) for entry in entries] for name in Health.columns}
    return pl.DataFrame(columns, schema=dict.fromkeys(Health.columns, pl.String))
