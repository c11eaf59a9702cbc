"""Scrub an nsys SQLite export in place; work on a copy.

Every text and blob of every table is scrubbed, because nsys interns everything it sees: ``StringIds`` contains
environments and command lines, separated by zero bytes, beside kernel names. Overwritten data is also overwritten on
disk (``secure_delete``), and the file is rebuilt at the end (``VACUUM``), so that no free page keeps any of it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from warpline.errors import UnreadableFile, WarplineError
from warpline.scrub.binary import clean_bytes
from warpline.scrub.kinds import REMOVED, Kind, Tally
from warpline.scrub.nsys_roles import PROCESS_BITS, Roles, find_roles
from warpline.scrub.nsys_rules import identifier, is_identifying, learn_named, named_value
from warpline.scrub.nsys_tables import (
    Row,
    Table,
    Value,
    all_tables,
    batches,
    delete,
    free_pages,
    opened,
    quoted,
    reset_counters,
    tables_with_text,
    update,
)
from warpline.scrub.text import Scrubber

Progress = Callable[[float], None]
"""Called with the completed share of the work."""
_ERRORS = (sqlite3.Error, OverflowError, UnicodeError)
_DISK_ERRORS = ("SQLITE_FULL", "SQLITE_IOERR_WRITE", "SQLITE_CANTOPEN", "SQLITE_READONLY")


@dataclass(slots=True)
class Export:
    """One export that is being scrubbed or checked."""

    connection: sqlite3.Connection
    scrubber: Scrubber
    tally: Tally
    write: bool
    roles: Roles

    def put(self, table: Table, key: Row, column: str, value: Value) -> None:
        """Overwrite one value, unless this is a check."""
        if self.write:
            update(self.connection, table, key, column, value)


def scrub_export(path: Path, shown: str, scrubber: Scrubber, tally: Tally, write: bool, progress: Progress) -> None:
    """Find what leaks from the export at ``path`` and, if ``write``, remove it from that file."""
    try:
        with opened(path, write) as connection:
            _refuse_programs(connection, shown, write)
            export = Export(connection, scrubber, tally, write, find_roles(connection))
            for page in free_pages(path):
                tally.add(clean_bytes(page, scrubber.clean)[1], "free pages")
            _clean_all(export, progress)
        if write:
            reset_counters(path)
    except _ERRORS as error:
        if getattr(error, "sqlite_errorname", "").startswith(_DISK_ERRORS):
            raise WarplineError(
                "cannot-write",
                f"{shown} cannot be scrubbed: {error}",
                "free some disk space, or set TMPDIR to a larger disk",
            ) from error
        raise UnreadableFile(
            "damaged-file",
            f"{shown} cannot be scrubbed, because its tables are damaged ({error})",
            "export the report again: nsys export --type sqlite --force-overwrite=true REPORT.nsys-rep",
        ) from error


def _refuse_programs(connection: sqlite3.Connection, shown: str, write: bool) -> None:
    """Drop views and triggers: no export has them, and they could run during the changes."""
    for kind, name, root in connection.execute("SELECT type, name, rootpage FROM sqlite_master").fetchall():
        if kind == "table" and not root:
            raise WarplineError(
                "not-an-export",
                f"{shown} has the virtual table {name}, which no nsys export has",
                "give an export made with nsys export --type sqlite",
            )
        if kind in ("view", "trigger") and write:
            connection.execute(f"DROP {kind.upper()} IF EXISTS {quoted(str(name))}")


def _clean_all(export: Export, progress: Progress) -> None:
    connection = export.connection
    tables = tables_with_text(connection)
    for table in tables:
        _learn(export, table)
    if export.write:
        connection.execute("BEGIN")
    for index, table in enumerate(tables):
        progress(index / (len(tables) + 1))
        _clean_table(export, table)
    _clean_threads(export)
    if export.write:
        connection.execute("COMMIT")
    _clean_schema(export)
    if export.write:
        connection.execute("VACUUM")
    progress(1.0)


def _learn(export: Export, table: Table) -> None:
    named = _named(table)
    for rows in batches(export.connection, table):
        for row in rows:
            values = row[len(table.keys) :]
            if named:
                learn_named(values[named[0]], values[named[1]], export.scrubber)
            for value in values:
                if isinstance(value, str):
                    export.scrubber.learn(value.replace("\0", "\n"))
                elif isinstance(value, bytes):
                    export.scrubber.learn(value.decode("latin-1").replace("\0", "\n"))


def _named(table: Table) -> tuple[int, int] | None:
    """The positions of name and value, in a table with one fact per row."""
    lower = [column.lower() for column in table.columns]
    return (lower.index("name"), lower.index("value")) if {"name", "value"} <= set(lower) else None


def _clean_table(export: Export, table: Table) -> None:
    named = _named(table)
    for rows in batches(export.connection, table):
        for row in rows:
            key, values = row[: len(table.keys)], row[len(table.keys) :]
            if named and _clean_named(export, table, key, values, named):
                continue
            for column, value in zip(table.columns, values, strict=True):
                if not isinstance(value, str | bytes) and not is_identifying(column):
                    continue
                new, kinds = _cleaned(export, table, column, value, values)
                if kinds:
                    export.tally.add(kinds, f"{table.name}.{column}")
                    export.put(table, key, column, new)


def _clean_named(export: Export, table: Table, key: Row, values: Row, named: tuple[int, int]) -> bool:
    """Scrub a fact by its name; return whether this completes the row."""
    name, value = values[named[0]], values[named[1]]
    if not isinstance(name, str) or not isinstance(value, str):
        return False
    fact = named_value(name, value, export.scrubber)
    if fact.kind is None:
        return False
    new_name, in_name = export.scrubber.clean(name)
    shown = "" if in_name or fact.drop_row else f" ({name[:60]})"
    export.tally.add([fact.kind, *in_name], f"{table.name}.{table.columns[named[1]]}{shown}")
    if fact.drop_row:
        if export.write:
            delete(export.connection, table, key)
        return True
    export.put(table, key, table.columns[named[1]], fact.text)
    if in_name:
        export.put(table, key, table.columns[named[0]], new_name)
    return True


def _cleaned(export: Export, table: Table, column: str, value: Value, values: Row) -> tuple[Value, tuple[Kind, ...]]:
    scrubber = export.scrubber
    if is_identifying(column) and Kind.IDENTIFIER not in scrubber.keep:
        new = identifier(value, scrubber)
        return new, () if new == value else (Kind.IDENTIFIER,)
    if isinstance(value, bytes):
        return clean_bytes(value, scrubber.clean)
    if not isinstance(value, str):
        return value, ()
    role = _role(export, table, column, values)
    if role is not None and role not in scrubber.keep:
        return (REMOVED, (role,)) if value.strip() not in ("", REMOVED) else (value, ())
    return scrubber.clean(value)


def _role(export: Export, table: Table, column: str, values: Row) -> Kind | None:
    """The kind of a value that leaks because of its column."""
    if table.name == "StringIds" and column == "value" and "id" in table.columns:
        key = values[table.columns.index("id")]
        if key in export.roles.outputs:
            return Kind.OUTPUT
        return Kind.PROCESSES if key in export.roles.strangers else None
    if table.name == "ANALYSIS_FILE" and column == "content":
        names = [str(value) for other, value in zip(table.columns, values, strict=True) if "filename" in other.lower()]
        return None if "stderr" in "".join(names) else Kind.OUTPUT
    if table.name == "PROCESSES" and column == "name" and "globalPid" in table.columns:
        process = values[table.columns.index("globalPid")]
        known = not isinstance(process, int) or process >> PROCESS_BITS in export.roles.profiled
        return None if known else Kind.PROCESSES
    return None


def _clean_threads(export: Export) -> None:
    """Delete the rows that name threads of other processes: without their strings they are useless."""
    columns = all_tables(export.connection).get("ThreadNames", ())
    if export.write and "nameId" in columns and Kind.PROCESSES not in export.scrubber.keep:
        export.connection.executemany(
            "DELETE FROM ThreadNames WHERE nameId = ?", [(name,) for name in sorted(export.roles.strangers)]
        )


def _clean_schema(export: Export) -> None:
    """Scrub the comments in table definitions, where nsys documents its columns."""
    for name, sql in export.connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall():
        new, kinds = export.scrubber.clean(str(sql))
        if not kinds:
            continue
        export.tally.add(kinds, "sqlite_master.sql")
        if export.write:
            export.connection.execute("PRAGMA writable_schema=on")
            export.connection.execute("UPDATE sqlite_master SET sql = ? WHERE name IS ? AND sql IS ?", (new, name, sql))
            export.connection.execute("PRAGMA writable_schema=reset")
