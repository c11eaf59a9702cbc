"""Strings of an nsys export that leak because of their role: program output, and names of unrelated processes."""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass, field

from warpline.scrub.nsys_tables import all_tables, quoted

SYSTEM_WIDE = frozenset(("ThreadNames", "PROCESSES", "SCHED_EVENTS", "COMPOSITE_EVENTS"))
"""Tables that list the whole machine, not only the profiled processes."""
STREAMS = ("ProcessStreams", "ANALYSIS_FILE")
PROCESS_BITS = 24
"""globalTid is (machine, process, thread); the thread takes the lowest 24 bits."""
_REFERENCE = re.compile(
    r"(?i)(?:name|text|symbol|module|file|path|content|string|label|argument|function)\w*(?:Id)?(?<!Enum)$"
)
"""Columns that refer to strings, by their names; the number of an enum does not."""
_DECLARED = re.compile(r"(?m)^\s*\"?(\w+)\"?\s.*REFERENCES StringIds")


@dataclass(slots=True)
class Roles:
    """The roles of strings."""

    outputs: set[int] = field(default_factory=set)
    """Ids in ``StringIds`` of the programs' stdout."""
    strangers: set[int] = field(default_factory=set)
    """Ids in ``StringIds`` that are unreferenced, or referenced only as thread names of processes that were not
    profiled."""
    profiled: set[int] = field(default_factory=set)
    """Processes that any other table references, as globalTid without its lowest bits."""


def find_roles(connection: sqlite3.Connection) -> Roles:
    """The roles of the strings of one export."""
    tables = all_tables(connection)
    profiled = _profiled(connection, tables)
    return Roles(_outputs(connection, tables), _strangers(connection, tables, profiled), profiled)


def _outputs(connection: sqlite3.Connection, tables: dict[str, tuple[str, ...]]) -> set[int]:
    """Ids of the programs' stdout. stderr stays: it says why a failed program left an empty profile."""
    found: set[int] = set()
    kept: set[int] = set()
    for table in STREAMS:
        columns = tables.get(table, ())
        if "contentId" not in columns:
            continue
        name = next((column for column in ("filenameId", "filename", "fileName") if column in columns), "NULL")
        for file, content in connection.execute(f"SELECT {name}, contentId FROM {quoted(table)}").fetchall():
            text = file
            if isinstance(file, int) and "StringIds" in tables:
                row = connection.execute("SELECT value FROM StringIds WHERE id = ?", (file,)).fetchone()
                text = row[0] if row else ""
            if isinstance(content, int):
                (kept if "stderr" in str(text) else found).add(content)
    return found - kept


def _profiled(connection: sqlite3.Connection, tables: dict[str, tuple[str, ...]]) -> set[int]:
    found: set[int] = set()
    for table, columns in tables.items():
        for column in ("globalTid", "globalPid"):
            if column in columns and table not in SYSTEM_WIDE:
                found.update(value >> PROCESS_BITS for value in _integers(connection, table, column))
    return found


def _strangers(connection: sqlite3.Connection, tables: dict[str, tuple[str, ...]], profiled: set[int]) -> set[int]:
    if not {"id", "value"} <= set(tables.get("StringIds", ())):
        return set()
    found = {key for (key,) in connection.execute("SELECT id FROM StringIds") if isinstance(key, int)}
    definitions = dict(connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall())
    for table, columns in tables.items():
        # nsys documents in a comment which columns reference strings.
        declared = set(_DECLARED.findall(str(definitions.get(table, ""))))
        for column in columns:
            if table not in {"ThreadNames", "StringIds"} and (column in declared or _REFERENCE.search(column)):
                found.difference_update(_integers(connection, table, column))
    if {"nameId", "globalTid"} <= set(tables.get("ThreadNames", ())):
        for name, thread in connection.execute("SELECT nameId, globalTid FROM ThreadNames").fetchall():
            if not isinstance(thread, int) or thread >> PROCESS_BITS in profiled:
                found.discard(name)
    return found


def _integers(connection: sqlite3.Connection, table: str, column: str) -> set[int]:
    """The distinct integers of a column."""
    name = quoted(column)
    query = f"SELECT DISTINCT {name} FROM {quoted(table)} WHERE typeof({name}) = 'integer'"
    return {value for (value,) in connection.execute(query)}
