"""What an export says about its own recording, beyond the timeline: outputs, diagnostics, CUDA processes, size."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from warpline.quote import MAX_INPUT_CHARS
from warpline.sources.nsys.columns import process
from warpline.sources.nsys.facts import ProfileFacts, read_facts
from warpline.sources.nsys.report_file import EXPORT_AGAIN
from warpline.sources.nsys.strings import Strings
from warpline.sources.sqlite.database import READ_ERRORS, Database, open_database
from warpline.sources.sqlite.plain_file import plain_sqlite

MAX_OUTPUT_CHARS = 200_000
"""A failure is reported at the end of an output."""
_GPU_TABLES = ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE")


class RecordedEvidence(Struct, frozen=True):
    """The evidence about the recording."""

    facts: ProfileFacts
    outputs: tuple[str, ...]
    """The ends of the program's stdout and stderr."""
    remarks: tuple[str, ...]
    """All diagnostics of nsys, both warnings and information."""
    kernel_processes: frozenset[int]
    """Processes that ran kernels or graphs."""
    rows: dict[str, int]
    """Rows per table, for tables with any."""


def read_evidence(path: Path) -> RecordedEvidence:
    """Read the evidence of an SQLite export, plain or gzipped."""
    with plain_sqlite(path, EXPORT_AGAIN) as plain, open_database(plain.path, path, EXPORT_AGAIN) as database:
        remarks = tuple(
            text[:MAX_INPUT_CHARS] for text in database.fetch("DIAGNOSTIC_EVENT", texts=["text"])["text"].drop_nulls()
        )
        return RecordedEvidence(
            read_facts(database),
            _outputs(database),
            remarks,
            frozenset(pid for table in _GPU_TABLES for pid in _processes(database, table)),
            _rows(database),
        )


def _outputs(database: Database) -> tuple[str, ...]:
    strings = Strings.of(database)
    texts = strings.texts(database.fetch("ProcessStreams", ["contentId"])["contentId"])
    return tuple(text[-MAX_OUTPUT_CHARS:] for text in texts if text and text.strip())


def _processes(database: Database, table: str) -> list[int]:
    frame = database.fetch(table, ["globalPid"]).with_columns(process("globalPid").alias("process"))
    return [int(pid) for pid in frame["process"].unique().drop_nulls()]


def _rows(database: Database) -> dict[str, int]:
    """Rows per table, from the last row's number, which needs no scan of the table."""
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
