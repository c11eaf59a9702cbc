"""Mutations of an nsys or nvprof database that know its tables. Each takes a connection and a source of chance."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from typing import Any

from tests.fuzz import values

Mutation = Callable[[sqlite3.Connection, random.Random], None]
MUTATIONS: dict[str, Mutation] = {}

AFFINITIES = ["TEXT", "BLOB", "REAL", "INTEGER", "NUMERIC", ""]
VERSIONS = ["1.0.0", "2.0.0", "2.9.1", "3.4.0", "3.28.1", "4.0.0", "99.1.1", "", "x", "3", "3.x.1", None, "3.20.3.5.6", "-1.-1.-1"]
TIMES = ["start", "end", "timestamp", "startTime", "stopTime", "utcEpochNs"]
LANES = ["globalTid", "globalPid", "streamId", "deviceId", "contextId", "correlationId", "threadId", "processId"]


def mutation(function: Mutation) -> Mutation:
    """Registers a mutation under its name."""
    MUTATIONS[function.__name__] = function
    return function


def quoted(name: str) -> str:
    """A name as SQL takes it."""
    return '"' + name.replace('"', '""') + '"'


def tables_of(database: sqlite3.Connection) -> list[str]:
    """The tables, in the order of the file."""
    rows = database.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    return [str(name) for (name,) in rows]


def columns_of(database: sqlite3.Connection, table: str) -> list[tuple[str, str]]:
    """Name and declared type of each column."""
    return [(str(row[1]), str(row[2])) for row in database.execute(f"PRAGMA table_info({quoted(table)})")]


def _table(database: sqlite3.Connection, chance: random.Random) -> str | None:
    """A table, most often one with rows of a timeline."""
    tables = tables_of(database)
    timeline = [name for name in tables if name.startswith(("CUPTI", "NVTX", "OSRT", "String", "Thread", "TARGET_INFO_GPU"))]
    return chance.choice(timeline if timeline and chance.random() < 0.8 else tables) if tables else None


def value(chance: random.Random) -> Any:
    """Something that SQLite can store."""
    match chance.randrange(6):
        case 0 | 1:
            return None
        case 2 | 3:
            number = values.number(chance)
            return number if isinstance(number, float) or abs(number) < 2**63 else float(min(max(number, -(10**300)), 10**300))
        case 4:
            return values.text(chance).encode("utf-8", "replace").decode()
        case _:
            return chance.choice([b"", b"\xff\xfe", bytes(64), b"\x00" * 3, "\x1b[1m".encode(), chance.randbytes(40)])


def _where(chance: random.Random) -> str:
    """One row, some, or all."""
    number = chance.randint(1, 60)
    return chance.choice([f"rowid = {number}", f"rowid % 3 = {number % 3}", f"rowid > {number}", "1"])


@mutation
def odd_cells(database: sqlite3.Connection, chance: random.Random) -> None:
    """Cells with null, another type, or a value far out."""
    table = _table(database, chance)
    if table is not None:
        column, _ = chance.choice(columns_of(database, table))
        database.execute(f"UPDATE OR IGNORE {quoted(table)} SET {quoted(column)} = ? WHERE {_where(chance)}", [value(chance)])


@mutation
def odd_strings(database: sqlite3.Connection, chance: random.Random) -> None:
    """Names that are null, hostile, blobs, or not UTF-8."""
    for table in ("StringIds", "StringTable"):
        if table in tables_of(database):
            retype(database, table, {"value": ""})
            odd = value(chance) if chance.random() < 0.4 else values.text(chance).encode("utf-8", "replace").decode()
            database.execute(f"UPDATE {table} SET value = ? WHERE {_where(chance)}", [odd])
            if chance.random() < 0.2:
                database.execute(f"UPDATE {table} SET value = CAST(x'ff41c3' AS TEXT) WHERE {_where(chance)}")


@mutation
def lost_strings(database: sqlite3.Connection, chance: random.Random) -> None:
    """Ids of strings that are not there, or are there twice."""
    for table, key in (("StringIds", "id"), ("StringTable", "_id_")):
        if table in tables_of(database):
            if chance.random() < 0.6:
                database.execute(f"DELETE FROM {table} WHERE {_where(chance)}")
            else:
                retype(database, table, {key: chance.choice(AFFINITIES)})
                database.execute(f"INSERT INTO {table} SELECT * FROM {table}")


@mutation
def odd_times(database: sqlite3.Connection, chance: random.Random) -> None:
    """Times that are null, equal, reversed, or near the end of 64 bits."""
    table = _table(database, chance)
    present = [] if table is None else [name for name, _ in columns_of(database, table) if name in TIMES]
    if table is None or not present:
        return
    column = quoted(chance.choice(present))
    change = chance.choice(["0", "-1", "NULL", f"{column} + {2**62}", f"-{column}", f"{column} * 1000000", f"{2**63 - 1}", f"-{2**63 - 1}", f"{column} + 0.5", "CAST(start AS TEXT)"])
    database.execute(f"UPDATE OR IGNORE {quoted(table)} SET {column} = {change} WHERE {_where(chance)}")


@mutation
def odd_ids(database: sqlite3.Connection, chance: random.Random) -> None:
    """Ids that lead nowhere, are all the same, or are exchanged."""
    table = _table(database, chance)
    present = [] if table is None else [name for name, _ in columns_of(database, table) if name.endswith(("Id", "Tid", "Pid", "Name", "id"))]
    if table is None or not present:
        return
    column = quoted(chance.choice(present))
    change = chance.choice(["0", "-1", "NULL", str(2**62), f"{column} + 1", "rowid", "1 - rowid", f"{column} << 24", "'7'", f"-{column}"])
    database.execute(f"UPDATE OR IGNORE {quoted(table)} SET {column} = {change} WHERE {_where(chance)}")


@mutation
def many_lanes(database: sqlite3.Connection, chance: random.Random) -> None:
    """One row on many threads, streams, devices or processes."""
    table = _table(database, chance)
    names = [] if table is None else [name for name, _ in columns_of(database, table)]
    lanes = [name for name in names if name in LANES]
    if table is None or not lanes:
        return
    lane = chance.choice(lanes)
    shown = ", ".join(f"{quoted(name)} + n.x" if name == lane else quoted(name) for name in names)
    count = chance.choice([40, 300, 1500])
    database.execute(
        f"WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < {count}) "
        f"INSERT OR IGNORE INTO {quoted(table)} SELECT {shown} FROM (SELECT * FROM {quoted(table)} LIMIT 1), n"
    )


@mutation
def lost_rows(database: sqlite3.Connection, chance: random.Random) -> None:
    """Rows are missing."""
    table = _table(database, chance)
    if table is not None:
        database.execute(f"DELETE FROM {quoted(table)} WHERE {_where(chance)}")


@mutation
def repeated_rows(database: sqlite3.Connection, chance: random.Random) -> None:
    """Rows are there twice."""
    table = _table(database, chance)
    if table is not None:
        database.execute(f"INSERT OR IGNORE INTO {quoted(table)} SELECT * FROM {quoted(table)} WHERE {_where(chance)}")


@mutation
def lost_table(database: sqlite3.Connection, chance: random.Random) -> None:
    """A table is missing, or has another name."""
    table = _table(database, chance)
    if table is None:
        return
    other = chance.choice(["", "", table.lower() + "_", "CUPTI_ACTIVITY_KIND_KERNEL", "NVTX_EVENTS", 'x"y\x1b[1m', "EXPORT_META_DATA"])
    if not other or other in tables_of(database):
        database.execute(f"DROP TABLE {quoted(table)}")
    else:
        database.execute(f"ALTER TABLE {quoted(table)} RENAME TO {quoted(other)}")


@mutation
def lost_column(database: sqlite3.Connection, chance: random.Random) -> None:
    """A column is missing, or has another name."""
    table = _table(database, chance)
    if table is None or len(columns_of(database, table)) < 2:
        return
    column, _ = chance.choice(columns_of(database, table))
    if chance.random() < 0.5:
        retype(database, table, {}, without=column)
    else:
        database.execute(f"ALTER TABLE {quoted(table)} RENAME COLUMN {quoted(column)} TO {quoted(chance.choice(['x', 'START', 'name2', 'sel ect']))}")


@mutation
def other_types(database: sqlite3.Connection, chance: random.Random) -> None:
    """Columns of another affinity, which turns numbers into texts."""
    table = _table(database, chance)
    if table is not None:
        some = chance.random() < 0.5
        kinds = {name: chance.choice(AFFINITIES) for name, _ in columns_of(database, table) if not some or chance.random() < 0.3}
        retype(database, table, kinds)


@mutation
def view_for_table(database: sqlite3.Connection, chance: random.Random) -> None:
    """A view in place of a table."""
    table = _table(database, chance)
    if table is not None:
        database.execute(f"ALTER TABLE {quoted(table)} RENAME TO {quoted(table + '_rows')}")
        database.execute(f"CREATE VIEW {quoted(table)} AS SELECT * FROM {quoted(table + '_rows')}")


@mutation
def endless_view(database: sqlite3.Connection, chance: random.Random) -> None:
    """A view that never ends, or whose cells are gigabytes, in place of a table."""
    table = _table(database, chance)
    if table is None:
        return
    names = [quoted(name) for name, _ in columns_of(database, table)]
    cells = ", ".join(chance.choice(["x", "x", "x", "zeroblob(1000000000)", "hex(zeroblob(400000000))"]) + f" AS {name}" for name in names)
    database.execute(f"DROP TABLE {quoted(table)}")
    database.execute(f"CREATE VIEW {quoted(table)} AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT {cells} FROM n")


@mutation
def generated_column(database: sqlite3.Connection, chance: random.Random) -> None:
    """A column that SQLite computes."""
    table = _table(database, chance)
    if table is None:
        return
    column, _ = chance.choice(columns_of(database, table))
    made = chance.choice(["1", "'secret'", "zeroblob(300000000)", f"{quoted(column)} || 'x'"])
    try:
        database.execute(f"ALTER TABLE {quoted(table)} ADD COLUMN {quoted(chance.choice(['extra', 'graphId', 'name']))} GENERATED ALWAYS AS ({made}) VIRTUAL")
    except sqlite3.OperationalError:
        return  # there is such a column


@mutation
def extra_objects(database: sqlite3.Connection, chance: random.Random) -> None:
    """A table without rowids, an index, a trigger, a virtual table, statistics."""
    table = _table(database, chance)
    statements = [
        "CREATE TABLE IF NOT EXISTS extra_a (a TEXT PRIMARY KEY, b) WITHOUT ROWID",
        "CREATE VIRTUAL TABLE IF NOT EXISTS extra_b USING fts5(x)",
        "CREATE TABLE IF NOT EXISTS extra_c (x); CREATE TRIGGER IF NOT EXISTS extra_d AFTER INSERT ON extra_c BEGIN DELETE FROM extra_c; END",
        f"CREATE INDEX IF NOT EXISTS extra_e ON {quoted(table)} (rowid + 1)" if table else "ANALYZE",
        "CREATE TABLE IF NOT EXISTS extra_f (id INTEGER PRIMARY KEY AUTOINCREMENT, x); INSERT INTO extra_f VALUES (9223372036854775806, 'y')",
        "ANALYZE",
    ]  # fmt: skip
    try:
        database.executescript(chance.choice(statements))
    except sqlite3.OperationalError:
        return  # not every SQLite has every module


@mutation
def huge_rowids(database: sqlite3.Connection, chance: random.Random) -> None:
    """Rows whose numbers are far apart."""
    table = _table(database, chance)
    if table is not None:
        database.execute(f"UPDATE OR IGNORE {quoted(table)} SET rowid = rowid * {chance.choice([10**6, 10**15])} WHERE {_where(chance)}")


@mutation
def other_meta(database: sqlite3.Connection, chance: random.Random) -> None:
    """Another schema version, or meta data of any kind."""
    for table in ("META_DATA_EXPORT", "EXPORT_META_DATA", "META_DATA_CAPTURE", "TARGET_INFO_SYSTEM_ENV"):
        if table in tables_of(database):
            version = chance.choice(VERSIONS) if chance.random() < 0.7 else value(chance)
            database.execute(f"UPDATE {table} SET value = ? WHERE {_where(chance)}", [version])
            if chance.random() < 0.3:
                database.execute(f"INSERT INTO {table} (name, value) VALUES (?, ?)", [value(chance), value(chance)])


def retype(database: sqlite3.Connection, table: str, kinds: dict[str, str], without: str = "") -> None:
    """Makes the table again with other column types, or without a column."""
    kept = [(name, kinds.get(name, kind)) for name, kind in columns_of(database, table) if name != without]
    made = ", ".join(f"{quoted(name)} {kind}" for name, kind in kept)
    names = ", ".join(quoted(name) for name, _ in kept)
    database.execute(f"CREATE TABLE fuzz_made ({made})")
    database.execute(f"INSERT INTO fuzz_made SELECT {names} FROM {quoted(table)}")
    database.execute(f"DROP TABLE {quoted(table)}")
    database.execute(f"ALTER TABLE fuzz_made RENAME TO {quoted(table)}")
