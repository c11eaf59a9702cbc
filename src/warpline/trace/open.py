"""Opens a profile of any kind: detect, read, link, find steps, check; or load it from the cache."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from warpline.errors import UnreadableFile
from warpline.sources.detect import Kind, detect
from warpline.sources.health import HealthEntry
from warpline.sources.rows import Rows
from warpline.trace import cache as trace_cache
from warpline.trace.checks import check, check_steps
from warpline.trace.link import link
from warpline.trace.memory import hand_back_memory
from warpline.trace.schema import TABLES, conform, empty
from warpline.trace.steps import StepChoice, find_steps
from warpline.trace.trace import Trace

if TYPE_CHECKING:
    from warpline.sources.kineto import Scanner


def open_trace(
    path: str | Path,
    *,
    steps: str | None = None,
    step_range: str | None = None,
    cache: bool = True,
    scanner: Scanner = "auto",
) -> Trace:
    """Open a profile: Kineto JSON or an nsys export, plain or gzipped, or an .nsys-rep.

    `steps` selects steps ("3:6"), `step_range` names the NVTX range or record_function that is a step,
    and `cache=False` parses the file again instead of using the cache.
    """
    file = Path(path)
    if file.is_dir():
        file = only_trace_of(file)
    kind = detect(file)
    key = trace_cache.key(file) if cache else None
    trace = trace_cache.load(key, file) if key else None
    if trace is None:
        rows = _read(file, kind, scanner)
        hand_back_memory()
        trace = build(file, rows)
        if key:
            trace_cache.store(key, trace)
    if step_range is not None:
        trace = trace.with_step_range(step_range)
    return trace.with_steps(StepChoice.parse(steps)) if steps is not None else trace


_KINETO = {Kind.KINETO, Kind.KINETO_GZ}
_NSYS = {Kind.NSYS_SQLITE, Kind.NSYS_SQLITE_GZ, Kind.NSYS_REP, Kind.QDREP, Kind.QDSTRM}
_NVPROF = {Kind.NVPROF, Kind.NVPROF_GZ}
_SUFFIXES = (".json", ".json.gz", ".sqlite", ".sqlite.gz", ".nsys-rep", ".qdrep", ".nvvp", ".nvprof")
_LISTED = 5
_WITHOUT_TIMELINE = {
    Kind.UNKNOWN: "of unknown kind",
    Kind.EXECUTION_TRACE: (
        "an execution trace (Chakra): it lists ops and their tensors, but has no times and no GPU activity"
    ),
}


def _read(file: Path, kind: Kind, scanner: Scanner) -> Rows:
    # Loaded when they are needed: a trace from the cache needs neither.
    if kind in _KINETO:
        from warpline.sources.kineto import read_kineto  # noqa: PLC0415

        return read_kineto(file, scanner)
    if kind in _NSYS:
        from warpline.sources.nsys import read_nsys  # noqa: PLC0415

        return read_nsys(file)
    if kind in _NVPROF:
        from warpline.sources.nvprof import read_nvprof  # noqa: PLC0415

        return read_nvprof(file)
    what = _WITHOUT_TIMELINE.get(kind, f"a file of kind {kind.value}, which has no timeline")
    raise UnreadableFile("not-a-trace", f"{file} is {what}", "give a torch.profiler trace or an nsys export")


def only_trace_of(folder: Path) -> Path:
    """The one profile in a folder, as tensorboard_trace_handler leaves it; several must be told apart by name."""
    files = sorted(file for file in folder.rglob("*") if file.name.endswith(_SUFFIXES) and file.is_file())
    if len(files) == 1:
        return files[0]
    listed = ", ".join(str(file.relative_to(folder)) for file in files[:_LISTED])
    found = f"{len(files)} profiles ({listed}{' …' if len(files) > _LISTED else ''})" if files else "no profile"
    raise UnreadableFile("which-trace", f"{folder} holds {found}", "name one file")


def build(file: Path, rows: Rows) -> Trace:
    """Build a trace from a reader's rows: all tables, linked and checked. Removes the tables from the rows, so that
    none is in memory twice."""
    read = rows.tables
    tables = {name: conform(name, read.pop(name)) if name in read else empty(name) for name in TABLES}
    link(tables)
    hand_back_memory()
    tables["steps"] = find_steps(tables)
    found = check(tables) + check_steps(tables["steps"], tables["gpu"])
    tables["health"] = _health_table(rows.health + _unsaid(found, rows.health))
    facts = {"source": rows.source, **rows.meta}
    tables["meta"] = pl.DataFrame(
        {"key": list(facts), "value": list(facts.values())}, schema={"key": pl.String, "value": pl.String}
    )
    return Trace(file, rows.source, dict(tables))


_EXPLAINED_BY = {
    "empty-trace": {"no-kernels", "launches-without-kernels"},
    "no-gpu-work": {"no-kernels", "launches-without-kernels", "other-device"},
}
"""Entries of the linked trace that add nothing once the reader, which knows the cause, has spoken."""


def _unsaid(found: list[HealthEntry], said: list[HealthEntry]) -> list[HealthEntry]:
    known = {entry.code for entry in said}
    return [entry for entry in found if entry.code not in known and not _EXPLAINED_BY.get(entry.code, set()) & known]


def _health_table(entries: list[HealthEntry]) -> pl.DataFrame:
    columns = {name: [getattr(entry, name) for entry in entries] for name in TABLES["health"]}
    return pl.DataFrame(columns, schema=dict.fromkeys(TABLES["health"], pl.String))
