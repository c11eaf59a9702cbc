"""The local record: SQLite files of this user, to which many processes append at once.

Each row is one transaction. Writers wait for each other, and a process that is killed leaves either its whole row or
none: SQLite's write-ahead log sees to both.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from warpline.errors import UnreadableFile, WarplineError
from warpline.sources.private_files import FILE_MODE, private_folder
from warpline.sources.record_files import VARIABLE
from warpline.sources.valid_text import valid_text

WAIT_S = 30.0
"""How long a writer waits for the others."""
MAX_VALUE_BYTES = 1 << 20
"""A row holds a few kilobytes; a larger value is no row of ours."""
MAX_ROWS = 1_000_000
"""A damaged file may go round in circles."""
VERSION = 1
TABLES = """
create table if not exists runs (
    id integer primary key, at text not null, project text not null, name text not null, label text not null,
    outcome text not null, metric text not null, device text not null, recordings integer not null,
    numbers text not null
);
create index if not exists runs_of_a_program on runs (project, name);
create table if not exists outcomes (
    id integer primary key, at text not null, a text not null, b text not null, fix text not null,
    predicted_low real not null, predicted real not null, predicted_high real not null, spread real not null,
    measured real not null, timed integer not null, unique (a, b, fix)
);
"""
"""`runs`: one row for each run of the gate. `outcomes`: one for each prediction that met a measurement."""
Value = str | int | float


def append(path: Path, statement: str, values: Sequence[Value]) -> bool:
    """Add a row, and say whether the statement added one; the file is made if it is not there."""
    with _opened(path, create=True) as database:
        database.execute("begin immediate")
        added = database.execute(statement, _valid(values)).rowcount
        database.execute("commit")
        return added > 0


def rows(path: Path, query: str, values: Sequence[Value] = ()) -> list[tuple[Value, ...]]:
    """The rows of a query; none if there is no file."""
    if not path.exists():
        return []
    with _opened(path, create=False) as database:
        return database.execute(query, _valid(values)).fetchmany(MAX_ROWS)


def _valid(values: Sequence[Value]) -> tuple[Value, ...]:
    """The values, as UTF-8 can hold them: names of files may be other bytes."""
    return tuple(valid_text(value) if isinstance(value, str) else value for value in values)


@contextlib.contextmanager
def _opened(path: Path, create: bool) -> Iterator[sqlite3.Connection]:
    try:
        if create and not path.exists():
            _create_private(path)
        database = sqlite3.connect(path, timeout=WAIT_S, isolation_level=None)
        try:
            database.execute("pragma trusted_schema = off")
            database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
            database.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
            _prepare(database, path)
            yield database
        finally:
            database.close()
    except OSError as error:
        raise WarplineError("no-history", f"{path}: {error.strerror}", _HINT) from error
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # the latter if its message quotes damaged bytes
        raise UnreadableFile("bad-history", f"{path.name} cannot be used as a history: {error}", _HINT) from error


_HINT = f"name another file in {VARIABLE}"


def _create_private(path: Path) -> None:
    """Create the file for this user alone, unless it exists."""
    if not path.parent.is_dir():
        private_folder(path.parent)
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, FILE_MODE))


def _prepare(database: sqlite3.Connection, path: Path) -> None:
    """Turn on the write-ahead log and make the tables, once."""
    version = int(database.execute("pragma user_version").fetchone()[0])
    if version == VERSION:
        views = database.execute("select name from sqlite_master where type = 'view' or rootpage = 0").fetchmany(1)
        if views:  # a view of our table's name may never end
            raise UnreadableFile("bad-history", f"{path.name} is another program's database", _HINT)
        return
    if version:
        raise UnreadableFile("bad-history", f"{path.name} is a history of another version ({version})", _HINT)
    if database.execute("select count(*) from sqlite_master where type = 'table'").fetchone()[0]:
        # Another process may be making the tables right now; its version is then set.
        if int(database.execute("pragma user_version").fetchone()[0]) != VERSION:
            raise UnreadableFile("bad-history", f"{path.name} is another program's database", _HINT)
        return
    _use_log(database)
    database.execute("begin immediate")
    for statement in TABLES.split(";"):
        database.execute(statement)
    database.execute(f"pragma user_version = {VERSION}")
    database.execute("commit")


def _use_log(database: sqlite3.Connection) -> None:
    """SQLite does not wait for others when it changes the kind of its log, so we do."""
    until = time.monotonic() + WAIT_S
    while True:
        try:
            database.execute("pragma journal_mode = wal")
            return
        except sqlite3.OperationalError:
            if time.monotonic() > until:
                raise
            time.sleep(0.01)
