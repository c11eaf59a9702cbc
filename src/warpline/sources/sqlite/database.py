"""Open a profiler's SQLite file so that a damaged or hostile one can do no harm.

Tables are optional and their columns differ by version, so nothing is selected before it is known to
exist. SQLite checks the type of each value: a non-integer in an integer column is read as null. Reading stops at the
first damaged page, keeps the rows before it, and records the damage.
"""

from __future__ import annotations

import itertools
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import polars as pl
from msgspec import Struct, field

from warpline.errors import UnreadableFile
from warpline.sources.sqlite.plain_file import RECORD_AGAIN

CHUNK_ROWS = 4096
"""Rows held as Python objects at a time; larger chunks were not faster, and would let a hostile file fill memory."""
TEXT_CHUNK_ROWS = 1024
"""The same for texts, which may be long."""
MAX_VALUE_BYTES = 64 << 20
"""No text of a real export is near this limit; the longest is a program's whole output."""
MIN_ROW_BYTES = 4
"""A row takes at least this much of its page, so a file of n bytes holds at most n / 4 rows per table. In a hostile
file, pages that point at each other could otherwise yield rows forever."""
GRACE_SECONDS = 60.0
MIN_BYTES_PER_SECOND = 1 << 20
"""Two hundred times slower than measured: a slower read is an endless loop, not a slow disk."""
READ_ERRORS = (sqlite3.Error, OverflowError, MemoryError, UnicodeDecodeError)
"""Errors that damage raises; the last one if SQLite's message quotes damaged bytes."""
PROGRESS_STEPS = 200_000
"""SQLite's virtual-machine steps between two checks of the clock."""


class Damage(Struct, frozen=True):
    """A table that could be read only up to a point."""

    table: str
    rows: int
    reason: str


class Database(Struct):
    """The tables of one export, by name."""

    connection: sqlite3.Connection
    file_bytes: int
    columns: dict[str, tuple[str, ...]]
    """The columns of every real table; views and virtual tables are not listed, hence never read."""
    damage: list[Damage] = field(default_factory=list)

    def fetch(
        self,
        table: str,
        integers: Iterable[str] = (),
        texts: Iterable[str] = (),
        numbers: Iterable[str] = (),
        hexes: Iterable[str] = (),
    ) -> pl.DataFrame:
        """The requested columns of a table; null if the table, the column or a value of that type is missing.

        `hexes` are blobs, as hexadecimal text.
        """
        wanted = [
            *((name, pl.Int64(), _INTEGER) for name in integers),
            *((name, pl.Float64(), _NUMBER) for name in numbers),
            *((name, pl.String(), _TEXT) for name in texts),
            *((name, pl.String(), _HEX) for name in hexes),
        ]
        present = [entry for entry in wanted if entry[0] in self.columns.get(table, ())]
        if not present:
            return pl.DataFrame(schema={name: dtype for name, dtype, _ in wanted})
        selection = ", ".join(sql.format(column=quoted(name)) for name, _, sql in present)
        text_columns = [index for index, (_, _, sql) in enumerate(present) if sql in {_TEXT, _HEX}]
        query = f"SELECT {selection} FROM {quoted(table)}"
        schema = {name: dtype for name, dtype, _ in present}
        try:
            self.connection.text_factory = str
            frames = [_frame(schema, columns) for columns in self.chunks(table, query, text_columns)]
        except _NotUtf8:
            self.connection.text_factory = _decode
            frames = [_frame(schema, columns) for columns in self.chunks(table, query, text_columns)]
        frame = pl.concat(frames) if frames else pl.DataFrame(schema=schema)
        absent = [pl.lit(None, dtype).alias(name) for name, dtype, _ in wanted if name not in schema]
        return frame.with_columns(absent).select(name for name, _, _ in wanted)

    def chunks(self, table: str, query: str, text_columns: list[int]) -> Iterator[list[tuple[Any, ...]]]:
        """The columns of one chunk of rows after the other, up to the end or the damage, which is noted."""
        limit_rows = self.file_bytes // MIN_ROW_BYTES
        chunk_rows = TEXT_CHUNK_ROWS if text_columns else CHUNK_ROWS
        total, characters, reason = 0, 0, ""
        rows: list[tuple[Any, ...]] = []
        cursor: Iterator[tuple[Any, ...]] = iter(())
        try:
            with self._bounded_time() as bound:
                cursor = iter(self.connection.execute(query))
                while not reason:
                    rows = []
                    # extend() keeps the items it got before an error, so rows before the damage are used.
                    rows.extend(itertools.islice(cursor, chunk_rows))
                    if not rows:
                        return
                    total += len(rows)
                    columns = list(zip(*rows, strict=True))
                    characters += sum(len(value) for index in text_columns for value in columns[index] if value)
                    if total > limit_rows or characters > 2 * self.file_bytes:
                        reason = "it has more rows than fit in the file"
                        break
                    rest = bound.left()
                    yield columns
                    bound.allow(rest)
                    rows = []
        except READ_ERRORS as error:
            reason = str(error)
            if text_columns and "decode to UTF-8" in reason:
                raise _NotUtf8 from error
            if rows:
                yield list(zip(*rows, strict=True))
                total += len(rows)
        if reason:
            self.damage.append(Damage(table, total, reason))

    @contextmanager
    def _bounded_time(self) -> Iterator[_Bound]:
        bound = _Bound()
        bound.allow(GRACE_SECONDS + self.file_bytes / MIN_BYTES_PER_SECOND)
        self.connection.set_progress_handler(lambda: bound.left() < 0, PROGRESS_STEPS)
        try:
            yield bound
        finally:
            self.connection.set_progress_handler(None, 0)


class _Bound:
    """The time that SQLite may still take: processor time of this thread, so that a busy machine is no endless loop."""

    _end = 0.0

    def allow(self, seconds: float) -> None:
        self._end = time.thread_time() + seconds

    def left(self) -> float:
        return self._end - time.thread_time()


class _NotUtf8(Exception):
    """A text of the table is not UTF-8: the table must be read again with the slower, lenient decoder."""


def _frame(schema: Mapping[str, pl.DataType], columns: list[tuple[Any, ...]]) -> pl.DataFrame:
    named = zip(schema.items(), columns, strict=True)
    return pl.DataFrame([pl.Series(name, values, dtype) for (name, dtype), values in named])


# SQLite reports the type of a value, so that text or a blob in an integer column becomes null instead of an error.
_INTEGER = "CASE typeof({column}) WHEN 'integer' THEN {column} END"
_NUMBER = "CASE typeof({column}) WHEN 'integer' THEN {column} * 1.0 WHEN 'real' THEN {column} END"
_TEXT = "CASE typeof({column}) WHEN 'text' THEN {column} END"
_HEX = "CASE typeof({column}) WHEN 'blob' THEN hex({column}) END"


def quoted(name: str) -> str:
    """A quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def open_database(path: Path, shown: Path | None = None, again: str = RECORD_AGAIN) -> Iterator[Database]:
    """Open the plain file at ``path`` read-only, and close it at the end; ``shown`` is its name in errors, ``again``
    their hint."""
    # immutable: no lock, no journal recovery, nothing written beside the file.
    uri = f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1"
    name = (shown or path).name
    try:
        connection = sqlite3.connect(uri, uri=True, isolation_level=None)
    except sqlite3.Error as error:
        raise UnreadableFile("unreadable-file", f"{name} cannot be opened as SQLite: {error}") from error
    try:
        # Names of tables; the rows of a table are read as UTF-8 first.
        connection.text_factory = _decode
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        for pragma in ("trusted_schema=off", "cell_size_check=on", "query_only=on", "mmap_size=0"):
            connection.execute(f"PRAGMA {pragma}")
        yield Database(connection, path.stat().st_size, _tables_despite_damage(connection, name, again))
    finally:
        connection.close()


def _decode(raw: bytes) -> str:
    """Text as UTF-8; nsys stores the program's output, which need not be valid UTF-8."""
    return raw.decode("utf-8", "replace")


def _tables_despite_damage(connection: sqlite3.Connection, name: str, again: str) -> dict[str, tuple[str, ...]]:
    try:
        return _tables(connection)
    except READ_ERRORS:
        pass
    try:
        # SQLite refuses a file that is shorter than its header says, or that has a damaged table definition. This
        # setting makes it continue; nothing can be written, because the file is open read-only.
        connection.execute("PRAGMA writable_schema=on")
        return _tables(connection)
    except READ_ERRORS as error:
        raise UnreadableFile(
            "damaged-file",
            f"{name} starts like SQLite, but its list of tables cannot be read ({error}): its writer was "
            "interrupted, or the copy is incomplete",
            again,
        ) from error


def _tables(connection: sqlite3.Connection) -> dict[str, tuple[str, ...]]:
    # Views have no root page and virtual tables have page 0.
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0").fetchall()
    names = [name for (name,) in rows if isinstance(name, str)]
    return {name: tuple(row[1] for row in connection.execute(f"PRAGMA table_info({quoted(name)})")) for name in names}
