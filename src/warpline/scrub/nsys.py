"""Scrub an nsys SQLite export: write a new database from the known tables and columns.

Nothing of the old file is copied as it is: no page, no schema, no view, trigger, index, statistic or blob. Texts are
taken out of ``StringIds`` only where a known column refers to them, and get new numbers.
"""

from __future__ import annotations

import contextlib
import math
import re
import sqlite3
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

from warpline.errors import UnreadableFile, WarplineError
from warpline.scrub import nsys_fields as fields
from warpline.scrub.devices import device_name, is_chip
from warpline.scrub.messages import ending, facts, message, metric
from warpline.scrub.names import NameScrubber
from warpline.scrub.nsys_fields import PAIRS, STRINGS, TABLES, WIDE, ColumnRules
from warpline.scrub.tally import Tally
from warpline.scrub.values import MAX_SIZE, with_few_digits
from warpline.sources.nsys.report_file import EXPORT_AGAIN
from warpline.sources.sqlite.database import READ_ERRORS, Database, open_database, quoted

Progress = Callable[[float], None]
"""Called with the completed share of the work."""
MAX_NARROW = 1 << 33
"""Ids, counts and sizes of a launch have 32 bits, signed or not."""
DOMAIN_EVENTS = (33, 75, 76)
"""Rows of NVTX that name a category or a domain."""
_ODD = "odd"
"""Stands for a value of a type that its column does not have."""
_TYPES = {
    "integer": f"CASE WHEN typeof({{0}}) IN ('integer', 'null') THEN {{0}} ELSE '{_ODD}' END",
    "number": f"CASE WHEN typeof({{0}}) IN ('integer', 'real', 'null') THEN {{0}} ELSE '{_ODD}' END",
    "text": "CASE WHEN typeof({0}) IN ('text', 'null') THEN {0} ELSE 0 END",
}
_DECLARED = {"text": "TEXT", "number": "REAL", "integer": "INTEGER", "any": ""}


class ExportScrubber:
    """Writes one export."""

    def __init__(self, names: NameScrubber, tally: Tally, keep: Collection[str] = ()) -> None:
        self.keep = frozenset(keep)
        self.used: set[str] = set()
        self._names, self._tally = names, tally
        self._cleaners: dict[str, Callable[[str], str | None]] = {
            fields.KERNEL: names.kernel,
            fields.CALL: names.call,
            fields.RANGE: names.range,
            "domain": names.domain,
            fields.THREAD: names.thread,
            fields.PROCESS: names.process,
            fields.MESSAGE: message,
            fields.METRIC: metric,
            fields.DEVICE: lambda text: device_name(text) if text else text,
            fields.CHIP: lambda text: text if is_chip(text) else None,
            fields.STREAM_FILE: lambda text: "stderr" if "stderr" in text else "stdout",
            fields.STREAM: ending,
            fields.TIME: lambda text: (
                text if re.fullmatch(r"\d{4}[-/]\d{2}[-/]\d{2}[ T]\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?Z?", text) else None
            ),
            "raw": lambda text: text,
        }
        self._strings: dict[int, str] = {}
        self._known: dict[tuple[str, str], str | None] = {}
        self._numbers: dict[tuple[str, str], int] = {}

    def scrub(self, path: Path, shown: Path, target: Path, progress: Progress) -> None:
        """Read the export at ``path`` and write the new one at ``target``."""
        with open_database(path, shown, EXPORT_AGAIN) as database:
            database.connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
            if not (database.columns.keys() & {*TABLES, *PAIRS}):
                raise UnreadableFile(
                    "not-nsys",
                    f"{shown} is an SQLite file without a single table of Nsight Systems",
                    "give an export made with: nsys export --type sqlite REPORT.nsys-rep",
                )
            target.unlink(missing_ok=True)
            try:
                output = sqlite3.connect(target, isolation_level=None)
                try:
                    for pragma in ("journal_mode=off", "synchronous=off", "encoding='UTF-8'"):
                        output.execute(f"PRAGMA {pragma}").fetchall()
                    output.execute("BEGIN")
                    self._tables(database, output, progress)
                    output.execute("COMMIT")
                finally:
                    output.close()
            except sqlite3.Error as error:
                raise WarplineError(
                    "cannot-write", f"{target.name} cannot be written: {error}", "free some disk space"
                ) from error
            if database.damage:
                damage = database.damage[0]
                raise UnreadableFile(
                    "damaged-file",
                    f"{shown.name}: {damage.table} is damaged after row {damage.rows} ({damage.reason})",
                    EXPORT_AGAIN,
                )

    def texts(self) -> Iterator[tuple[str, str, str | None]]:
        """The kind of each different text, the text and what became of it."""
        kinds = {
            fields.THREAD: "label",
            fields.PROCESS: "label",
            fields.METRIC: fields.MESSAGE,
            fields.CHIP: fields.DEVICE,
        }
        for (role, text), new in self._known.items():
            yield kinds.get(role, role), text, new

    def _tables(self, database: Database, output: sqlite3.Connection, progress: Progress) -> None:
        self._strings = {
            key: value
            for keys, texts in _rows(database, STRINGS, [("id", "integer"), ("value", "text")])
            for key, value in zip(keys, texts, strict=True)
            if isinstance(key, int) and isinstance(value, str)
        }
        self._count_others(database)
        for index, (table, columns) in enumerate(database.columns.items()):
            progress(index / len(database.columns))
            if table in TABLES:
                self._table(database, output, table, columns)
            elif table in PAIRS and {"name", "value"} <= set(columns):
                self._pairs(database, output, table)
            elif table in self.keep:
                self._whole(database, output, table, columns)
            elif table != STRINGS and not table.startswith("sqlite_"):
                self._tally.dropped[table] += 1
            if database.damage:
                return
        output.execute("CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT)")
        output.executemany(
            "INSERT INTO StringIds VALUES (?, ?)", ((key, text) for (_, text), key in self._numbers.items())
        )
        self._count_strings()
        progress(1.0)

    def _count_others(self, database: Database) -> None:
        """Whatever the file has besides tables; damage is found when the tables are read."""
        with contextlib.suppress(*READ_ERRORS):
            self._count_schema(database)

    def _count_schema(self, database: Database) -> None:
        for kind in ("view", "trigger", "index"):
            for (sql,) in database.connection.execute("SELECT sql FROM sqlite_master WHERE type = ?", (kind,)):
                self._tally.dropped[kind] += sql is not None
        for pragma in ("freelist_count", "user_version", "application_id"):
            (number,) = database.connection.execute(f"PRAGMA {pragma}").fetchone()
            self._tally.dropped[pragma] += bool(number)

    def _table(self, database: Database, output: sqlite3.Connection, table: str, present: tuple[str, ...]) -> None:
        known = TABLES[table]
        for column in present:
            if column not in known.all and not self._keeps(f"{table}.{column}"):
                self._tally.dropped[f"{table}.{column}"] += 1
        extra = [column for column in present if column not in known.all and f"{table}.{column}" in self.keep]
        wanted = [(column, _kind(known, column)) for column in known.all if column in present]
        wanted += [(column, "any") for column in extra]
        if not wanted:
            return
        insert = _created(output, table, [(column, _DECLARED[kind]) for column, kind in wanted])
        for chunk in _rows(database, table, wanted):
            events = dict(zip([column for column, _ in wanted], chunk, strict=True)).get("eventType")
            cleaned = [
                self._column(table, known, column, kind, values, events)
                for (column, kind), values in zip(wanted, chunk, strict=True)
            ]
            output.executemany(insert, zip(*cleaned, strict=True))

    def _column(
        self,
        table: str,
        known: ColumnRules,
        column: str,
        kind: str,
        values: tuple[Any, ...],
        events: tuple[Any, ...] | None,
    ) -> list[Any]:
        """One column of a chunk, checked."""
        place, keeps = f"{table}.{column}", self._keeps(f"{table}.{column}")
        role = known.texts.get(column) or known.strings.get(column)
        if kind == "any":
            self._tally.kept += len(values)
            return list(values)
        if role is None:
            new = [_number(value, kind, column in WIDE, keeps) for value in values]
        else:
            by_row = (
                [role] * len(values) if events is None or role != fields.RANGE else [_nvtx(event) for event in events]
            )
            clean = self._string if column in known.strings else self._text
            return [
                None if value is None else clean(place, "raw" if keeps else which, value)
                for which, value in zip(by_row, values, strict=True)
            ]
        lost = sum(value is not None and entry is None for value, entry in zip(values, new, strict=True))
        self._tally.kept += sum(entry is not None for entry in new)
        if lost:
            self._tally.dropped[place] += lost
        return new

    def _text(self, place: str, role: str, value: Any) -> str | None:
        """A text in its own column."""
        new = self._cleaned(role, value) if isinstance(value, str) else None
        if new is None:
            self._tally.dropped[place] += 1
        elif new == value:
            self._tally.kept += 1
        else:
            self._tally.replaced[place] += 1
        return new

    def _string(self, place: str, role: str, value: Any) -> int | None:
        """A reference to a text: its new number."""
        text = self._strings.get(value) if isinstance(value, int) else None
        new = self._text(place, role, text) if text is not None else None
        if new is None:
            return None
        return self._numbers.setdefault((role, new), len(self._numbers) + 1)

    def _cleaned(self, role: str, text: str) -> str | None:
        key = (role, text)
        if key not in self._known:
            self._known[key] = self._cleaners[role](text)
        return self._known[key]

    def _count_strings(self) -> None:
        """Texts that no known column refers to."""
        used = {text for _, text in self._known}
        unused = sum(text not in used for text in self._strings.values())
        if unused:
            self._tally.dropped[f"{STRINGS}.value"] += unused

    def _pairs(self, database: Database, output: sqlite3.Connection, table: str) -> None:
        insert = _created(output, table, [("name", "TEXT"), ("value", "TEXT")])
        known, place = facts(self._names), f"{table}.value"
        for names, values in _rows(database, table, [("name", "text"), ("value", "text")]):
            for name, value in zip(names, values, strict=True):
                if isinstance(name, str) and isinstance(value, str) and self._keeps(place):
                    output.execute(insert, (name, value))
                    self._tally.kept += 1
                    continue
                clean = known.get(name) if isinstance(name, str) else None
                new = clean(value) if clean is not None and isinstance(value, str) else None
                if new is None:
                    self._tally.dropped[place] += 1
                    continue
                output.execute(insert, (name, new))
                self._tally.kept += new == value
                self._tally.replaced.update({place: 1} if new != value else {})

    def _whole(self, database: Database, output: sqlite3.Connection, table: str, columns: tuple[str, ...]) -> None:
        """A table that the user wants to keep as it is."""
        self.used.add(table)
        insert = _created(output, table, [(column, "") for column in columns])
        for chunk in _rows(database, table, [(column, "any") for column in columns]):
            self._tally.kept += len(chunk) * len(chunk[0])
            output.executemany(insert, zip(*chunk, strict=True))

    def _keeps(self, place: str) -> bool:
        if place not in self.keep:
            return False
        self.used.add(place)
        return True


def _rows(database: Database, table: str, wanted: list[tuple[str, str]]) -> Iterator[list[tuple[Any, ...]]]:
    """The columns of a table, chunk by chunk; a value of another type than its column is marked."""
    if not set(database.columns.get(table, ())) >= {column for column, _ in wanted}:
        return
    parts = [_TYPES[kind].format(quoted(column)) if kind != "any" else quoted(column) for column, kind in wanted]
    texts = [index for index, (_, kind) in enumerate(wanted) if kind == "text"]
    yield from database.chunks(table, f"SELECT {', '.join(parts)} FROM {quoted(table)}", texts)


def _kind(known: ColumnRules, column: str) -> str:
    return "text" if column in known.texts else "number" if column in known.numbers else "integer"


def _number(value: Any, kind: str, wide: bool, keeps: bool) -> Any:
    """A number that may stay; a measured one is bounded as in a trace of torch.profiler."""
    if not isinstance(value, int | float):
        return None
    if keeps:
        return value
    most = MAX_SIZE if kind == "number" or isinstance(value, float) else math.inf if wide else MAX_NARROW
    if abs(value) >= most:
        return None
    return float(with_few_digits(repr(value))) if isinstance(value, float) else value


def _nvtx(event: Any) -> str:
    return "domain" if event in DOMAIN_EVENTS else fields.RANGE


def _created(output: sqlite3.Connection, table: str, columns: list[tuple[str, str]]) -> str:
    """Create a table; the statement that inserts a row."""
    listed = ", ".join(f"{quoted(column)} {declared}".rstrip() for column, declared in columns)
    output.execute(f"CREATE TABLE {quoted(table)} ({listed})")
    return f"INSERT INTO {quoted(table)} VALUES ({', '.join('?' * len(columns))})"
