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


def a_table(database: sqlite3.Connection, chance: random.Random) -> str | None:
    """A table, most often one with rows of a timeline."""
    tables = tables_of(database)
    timeline = [
        name for name in tables if name.startswith(("CUPTI", "NVTX", "OSRT", "String", "Thread", "TARGET_INFO_GPU"))
    ]
    return chance.choice(timeline if timeline and chance.random() < 0.8 else tables) if tables else None


def value(chance: random.Random) -> Any:
    """Something that SQLite can store."""
    match chance.randrange(6):
        case 0 | 1:
            return None
        case 2 | 3:
            number = values.number(chance)
            return (
                number
                if isinstance(number, float) or abs(number) < 2**63
                else float(min(max(number, -(10**300)), 10**300))
            )
        case 4:
            return values.text(chance).encode("utf-8", "replace").decode()
        case _:
            return chance.choice([b"", b"\xff\xfe", bytes(64), b"\x00" * 3, b"\x1b[1m", chance.randbytes(40)])


def where(chance: random.Random) -> str:
    """One row, some, or all."""
    number = chance.randint(1, 60)
    return chance.choice([f"rowid = {number}", f"rowid % 3 = {number % 3}", f"rowid > {number}", "1"])


@mutation
def odd_cells(database: sqlite3.Connection, chance: random.Random) -> None:
    """Cells with null, another type, or a value far out."""
    table = a_table(database, chance)
    if table is not None:
        column, _ = chance.choice(columns_of(database, table))
        database.execute(
            f"UPDATE OR IGNORE {quoted(table)} SET {quoted(column)} = ? WHERE {where(chance)}", [value(chance)]
        )


@mutation
def odd_strings(database: sqlite3.Connection, chance: random.Random) -> None:
    """Names that are null, hostile, blobs, or not UTF-8."""
    for table in ("StringIds", "StringTable"):
        if table in tables_of(database):
            retype(database, table, {"value": ""})
            text = chance.choice([values.text] * 9 + [values.long_text])(chance)
            odd = value(chance) if chance.random() < 0.4 else text.encode("utf-8", "replace").decode()
            database.execute(f"UPDATE {table} SET value = ? WHERE {where(chance)}", [odd])
            if chance.random() < 0.2:
                database.execute(f"UPDATE {table} SET value = CAST(x'ff41c3' AS TEXT) WHERE {where(chance)}")


@mutation
def lost_strings(database: sqlite3.Connection, chance: random.Random) -> None:
    """Ids of strings that are not there, or are there twice."""
    for table, key in (("StringIds", "id"), ("StringTable", "_id_")):
        if table in tables_of(database):
            if chance.random() < 0.6:
                database.execute(f"DELETE FROM {table} WHERE {where(chance)}")
            else:
                retype(database, table, {key: chance.choice(AFFINITIES)})
                database.execute(f"INSERT INTO {table} SELECT * FROM {table}")


@mutation
def odd_times(database: sqlite3.Connection, chance: random.Random) -> None:
    """Times that are null, equal, reversed, or near the end of 64 bits."""
    table = a_table(database, chance)
    present = [] if table is None else [name for name, _ in columns_of(database, table) if name in TIMES]
    if table is None or not present:
        return
    column = quoted(chance.choice(present))
    change = chance.choice(
        [
            "0",
            "-1",
            "NULL",
            f"{column} + {2**62}",
            f"-{column}",
            f"{column} * 1000000",
            f"{2**63 - 1}",
            f"-{2**63 - 1}",
            f"{column} + 0.5",
            "CAST(start AS TEXT)",
        ]
    )
    database.execute(f"UPDATE OR IGNORE {quoted(table)} SET {column} = {change} WHERE {where(chance)}")


@mutation
def odd_ids(database: sqlite3.Connection, chance: random.Random) -> None:
    """Ids that lead nowhere, are all the same, or are exchanged."""
    table = a_table(database, chance)
    present = (
        []
        if table is None
        else [name for name, _ in columns_of(database, table) if name.endswith(("Id", "Tid", "Pid", "Name", "id"))]
    )
    if table is None or not present:
        return
    column = quoted(chance.choice(present))
    change = chance.choice(
        ["0", "-1", "NULL", str(2**62), f"{column} + 1", "rowid", "1 - rowid", f"{column} << 24", "'7'", f"-{column}"]
    )
    database.execute(f"UPDATE OR IGNORE {quoted(table)} SET {column} = {change} WHERE {where(chance)}")


@mutation
def many_lanes(database: sqlite3.Connection, chance: random.Random) -> None:
    """One row on many threads, streams, devices or processes."""
    table = a_table(database, chance)
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
    table = a_table(database, chance)
    if table is not None:
        database.execute(f"DELETE FROM {quoted(table)} WHERE {where(chance)}")


@mutation
def repeated_rows(database: sqlite3.Connection, chance: random.Random) -> None:
    """Rows are there twice."""
    table = a_table(database, chance)
    if table is not None:
        database.execute(f"INSERT OR IGNORE INTO {quoted(table)} SELECT * FROM {quoted(table)} WHERE {where(chance)}")


def retype(database: sqlite3.Connection, table: str, kinds: dict[str, str], without: str = "") -> None:
    """Makes the table again with other column types, or without a column."""
    kept = [(name, kinds.get(name, kind)) for name, kind in columns_of(database, table) if name != without]
    made = ", ".join(f"{quoted(name)} {kind}" for name, kind in kept)
    names = ", ".join(quoted(name) for name, _ in kept)
    database.execute(f"CREATE TABLE fuzz_made ({made})")
    database.execute(f"INSERT INTO fuzz_made SELECT {names} FROM {quoted(table)}")
    database.execute(f"DROP TABLE {quoted(table)}")
    database.execute(f"ALTER TABLE fuzz_made RENAME TO {quoted(table)}")
