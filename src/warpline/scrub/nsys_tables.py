"""The tables of an SQLite file to scrub: which contain texts, their rows in batches, and changes to them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote

Value = int | float | str | bytes | None
Row = tuple[Value, ...]

BATCH_ROWS = 2000
ALWAYS_READ = ("guid",)
"""Columns that identify a device even as a number."""
ROLE_COLUMNS = {"StringIds": ("id",), "PROCESSES": ("globalPid",)}
"""Integer columns that determine the role of the texts beside them."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table that contains texts, and the key of its rows."""

    name: str
    columns: tuple[str, ...]
    """The columns with texts, and the columns that determine their role."""
    keys: tuple[str, ...]
    """``rowid`` or an alias of it; the primary key if the table has no rowid."""
    has_rowid: bool


@contextmanager
def opened(path: Path, write: bool) -> Iterator[sqlite3.Connection]:
    """Open the file with safe settings and without a journal, which would keep the removed texts."""
    mode = "rw" if write else "ro&immutable=1"
    connection = sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode={mode}", uri=True, isolation_level=None)
    try:
        # nsys stores the program's output, which need not be UTF-8; it must be written back unchanged.
        connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
        for pragma in ("trusted_schema=off", "cell_size_check=on", "mmap_size=0", "secure_delete=on"):
            connection.execute(f"PRAGMA {pragma}").fetchall()
        if write:
            for pragma in ("journal_mode=off", "synchronous=off"):
                connection.execute(f"PRAGMA {pragma}").fetchall()
        yield connection
    finally:
        connection.close()


def all_tables(connection: sqlite3.Connection) -> dict[str, tuple[str, ...]]:
    """The columns of every table."""
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    return {
        name: tuple(str(row[1]) for row in connection.execute(f"PRAGMA table_info({quoted(name)})"))
        for (name,) in rows
        if isinstance(name, str) and not name.startswith("sqlite_")
    }


def tables_with_text(connection: sqlite3.Connection) -> list[Table]:
    """Tables with a text or a blob in any row, whatever their declared column types."""
    found = []
    for name, columns in all_tables(connection).items():
        tests = [
            f"max(typeof({quoted(column)}) IN ('text', 'blob')"
            + (f" OR {quoted(column)} <> 0)" if column.lower() in ALWAYS_READ else ")")
            for column in columns
        ]
        (holds,) = connection.execute(f"SELECT {', '.join(tests)} FROM {quoted(name)}").fetchall()
        texts = [column for column, held in zip(columns, holds, strict=True) if held]
        if texts:
            roles = [column for column in ROLE_COLUMNS.get(name, ()) if column in columns and column not in texts]
            found.append(_table(connection, name, columns, (*texts, *roles)))
    return found


def _table(connection: sqlite3.Connection, name: str, all_columns: tuple[str, ...], columns: tuple[str, ...]) -> Table:
    taken = {column.lower() for column in all_columns}
    rowid = next((word for word in ("rowid", "_rowid_", "oid") if word not in taken), "rowid")
    try:
        connection.execute(f"SELECT {rowid} FROM {quoted(name)} LIMIT 0")
    except sqlite3.OperationalError:  # declared WITHOUT ROWID, hence with a primary key
        info = connection.execute(f"PRAGMA table_info({quoted(name)})").fetchall()
        return Table(name, columns, tuple(quoted(str(row[1])) for row in info if row[5]), has_rowid=False)
    return Table(name, columns, (rowid,), has_rowid=True)


def batches(connection: sqlite3.Connection, table: Table) -> Iterator[list[Row]]:
    """Rows, with their keys first. Rows may change between batches, because each batch is a new query."""
    selected = ", ".join((*table.keys, *map(quoted, table.columns)))
    query = f"SELECT {selected} FROM {quoted(table.name)}"
    if not table.has_rowid:
        yield connection.execute(query).fetchall()
        return
    (rowid,) = table.keys
    rows = connection.execute(f"{query} ORDER BY {rowid} LIMIT {BATCH_ROWS}").fetchall()
    while rows:
        yield rows
        rows = connection.execute(
            f"{query} WHERE {rowid} > ? ORDER BY {rowid} LIMIT {BATCH_ROWS}", (rows[-1][0],)
        ).fetchall()


def update(connection: sqlite3.Connection, table: Table, key: Row, column: str, value: Value) -> None:
    """Overwrite one value."""
    mark = "?"
    if isinstance(value, str) and not _is_utf8(value):
        value, mark = value.encode("utf-8", "surrogateescape"), "CAST(? AS TEXT)"
    connection.execute(
        f"UPDATE {quoted(table.name)} SET {quoted(column)} = {mark} WHERE {_where(table)}", (value, *key)
    )


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def delete(connection: sqlite3.Connection, table: Table, key: Row) -> None:
    """Delete one row."""
    connection.execute(f"DELETE FROM {quoted(table.name)} WHERE {_where(table)}", key)


def free_pages(path: Path) -> Iterator[bytes]:
    """Free pages, which still contain what was deleted from a table."""
    with path.open("rb") as file:
        head = file.read(100)
        page_bytes = int.from_bytes(head[16:18], "big")
        page_bytes = 65_536 if page_bytes == 1 else page_bytes
        trunk = int.from_bytes(head[32:36], "big")
        left = int.from_bytes(head[36:40], "big")
        # File format, "The Freelist": each trunk page names the next one and the leaves below it.
        while trunk and left > 0 and page_bytes:
            page = _page(file, trunk, page_bytes)
            count = min(int.from_bytes(page[4:8], "big"), page_bytes // 4 - 2, left)
            for offset in range(8, 8 + 4 * count, 4):
                yield _page(file, int.from_bytes(page[offset : offset + 4], "big"), page_bytes)
            yield page[8 + 4 * count :]
            trunk, left = int.from_bytes(page[:4], "big"), left - count - 1


def _page(file: BinaryIO, number: int, page_bytes: int) -> bytes:
    file.seek(max(number - 1, 0) * page_bytes)
    return file.read(page_bytes)


def reset_counters(path: Path) -> None:
    """Set the change counters in the file header to one, so that the same rows give the same bytes."""
    with path.open("r+b") as file:
        # File format, "The Database Header": change counter, schema cookie, and version-valid-for number.
        for offset in (24, 40, 92):
            file.seek(offset)
            file.write((1).to_bytes(4, "big"))


def _where(table: Table) -> str:
    return " AND ".join(f"{key} IS ?" for key in table.keys)


def quoted(name: str) -> str:
    """A quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'
