"""What an export knows about its own recording, beyond the timeline: outputs, remarks, who used CUDA, and its size."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from warpline.scrub.quote import MAX_INPUT_CHARS
from warpline.sources.nsys.columns import process
from warpline.sources.nsys.database import READ_ERRORS, Database, open_database
from warpline.sources.nsys.facts import Facts, read_facts
from warpline.sources.nsys.strings import Strings
from warpline.sources.nsys.unpack import plain_sqlite

LONGEST_OUTPUT = 200_000
"""A failure is told at the end of an output."""
_GPU_TABLES = ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE")


@dataclass(frozen=True, slots=True)
class Evidence:
    """The recording as the file tells of it."""

    facts: Facts
    outputs: tuple[str, ...]
    """The ends of what the program wrote to stdout and stderr."""
    remarks: tuple[str, ...]
    """Everything that nsys said while recording, warnings and information alike."""
    kernel_processes: frozenset[int]
    """Processes that ran kernels or graphs."""
    rows: dict[str, int]
    """Rows by table, of those that have any."""


def read_evidence(path: Path) -> Evidence:
    """The evidence of an SQLite export, plain or gzipped."""
    with plain_sqlite(path) as plain, open_database(plain.path, path) as database:
        remarks = tuple(
            text[:MAX_INPUT_CHARS] for text in database.fetch("DIAGNOSTIC_EVENT", texts=["text"])["text"].drop_nulls()
        )
        return Evidence(
            read_facts(database),
            _outputs(database),
            remarks,
            frozenset(pid for table in _GPU_TABLES for pid in _processes(database, table)),
            _rows(database),
        )


def _outputs(database: Database) -> tuple[str, ...]:
    strings = Strings.of(database)
    texts = strings.texts(database.fetch("ProcessStreams", ["contentId"])["contentId"])
    return tuple(text[-LONGEST_OUTPUT:] for text in texts if text and text.strip())


def _processes(database: Database, table: str) -> list[int]:
    frame = database.fetch(table, ["globalPid"]).with_columns(process("globalPid").alias("process"))
    return [int(pid) for pid in frame["process"].unique().drop_nulls()]


def _rows(database: Database) -> dict[str, int]:
    """Rows by table; by the last row's number, which needs no scan of the table."""
    rows: dict[str, int] = {}
    for table in database.columns:
        try:
            quoted = '"' + table.replace('"', '""') + '"'
            (count,) = database.connection.execute(f"SELECT max(rowid) FROM {quoted}").fetchone()
        except READ_ERRORS:
            continue
        if isinstance(count, int) and count > 0:
            rows[table] = count
    return rows
