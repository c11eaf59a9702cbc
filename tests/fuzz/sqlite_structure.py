"""Mutations of a database's tables, columns, types and views; those of rows and cells are in `sqlite_mutators`."""

from __future__ import annotations

import random
import sqlite3

from tests.fuzz.sqlite_mutators import (
    AFFINITIES,
    MUTATIONS,
    a_table,
    columns_of,
    mutation,
    quoted,
    retype,
    tables_of,
    value,
    where,
)

__all__ = ["MUTATIONS"]


@mutation
def lost_table(database: sqlite3.Connection, chance: random.Random) -> None:
    """A table is missing, or has another name."""
    table = a_table(database, chance)
    if table is None:
        return
    other = chance.choice(
        ["", "", table.lower() + "_", "CUPTI_ACTIVITY_KIND_KERNEL", "NVTX_EVENTS", 'x"y\x1b[1m', "EXPORT_META_DATA"]
    )
    if not other or other in tables_of(database):
        database.execute(f"DROP TABLE {quoted(table)}")
    else:
        database.execute(f"ALTER TABLE {quoted(table)} RENAME TO {quoted(other)}")


@mutation
def other_encoding(database: sqlite3.Connection, chance: random.Random) -> None:
    """The texts of the file are UTF-16, or its pages are of another size."""
    other = sqlite3.connect(":memory:")
    other.execute(f"PRAGMA encoding = '{chance.choice(['UTF-16le', 'UTF-16be', 'UTF-8'])}'")
    other.execute(f"PRAGMA page_size = {chance.choice([512, 1024, 65536])}")
    other.executescript("\n".join(database.iterdump()))
    database.deserialize(other.serialize())


@mutation
def lost_rows_everywhere(database: sqlite3.Connection, chance: random.Random) -> None:
    """Every table is empty, or all but one."""
    kept = a_table(database, chance) if chance.random() < 0.5 else None
    for table in tables_of(database):
        if table not in {kept, "META_DATA_EXPORT", "EXPORT_META_DATA"}:
            database.execute(f"DELETE FROM {quoted(table)}")


VERSIONS = [
    "1.0.0",
    "2.0.0",
    "2.9.1",
    "3.4.0",
    "3.28.1",
    "4.0.0",
    "99.1.1",
    "",
    "x",
    "3",
    "3.x.1",
    None,
    "3.20.3.5.6",
    "-1.-1.-1",
]


@mutation
def lost_column(database: sqlite3.Connection, chance: random.Random) -> None:
    """A column is missing, or has another name."""
    table = a_table(database, chance)
    if table is None or len(columns_of(database, table)) < 2:
        return
    column, _ = chance.choice(columns_of(database, table))
    if chance.random() < 0.5:
        retype(database, table, {}, without=column)
    else:
        database.execute(
            f"ALTER TABLE {quoted(table)} RENAME COLUMN {quoted(column)} TO {quoted(chance.choice(['x', 'START', 'name2', 'sel ect']))}"
        )


@mutation
def other_types(database: sqlite3.Connection, chance: random.Random) -> None:
    """Columns of another affinity, which turns numbers into texts."""
    table = a_table(database, chance)
    if table is not None:
        some = chance.random() < 0.5
        kinds = {
            name: chance.choice(AFFINITIES)
            for name, _ in columns_of(database, table)
            if not some or chance.random() < 0.3
        }
        retype(database, table, kinds)


@mutation
def view_for_table(database: sqlite3.Connection, chance: random.Random) -> None:
    """A view in place of a table."""
    table = a_table(database, chance)
    if table is not None:
        database.execute(f"ALTER TABLE {quoted(table)} RENAME TO {quoted(table + '_rows')}")
        database.execute(f"CREATE VIEW {quoted(table)} AS SELECT * FROM {quoted(table + '_rows')}")


@mutation
def endless_view(database: sqlite3.Connection, chance: random.Random) -> None:
    """A view that never ends, or whose cells are gigabytes, in place of a table."""
    table = a_table(database, chance)
    if table is None:
        return
    names = [quoted(name) for name, _ in columns_of(database, table)]
    cells = ", ".join(
        chance.choice(["x", "x", "x", "zeroblob(1000000000)", "hex(zeroblob(400000000))"]) + f" AS {name}"
        for name in names
    )
    database.execute(f"DROP TABLE {quoted(table)}")
    database.execute(
        f"CREATE VIEW {quoted(table)} AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT {cells} FROM n"
    )


@mutation
def generated_column(database: sqlite3.Connection, chance: random.Random) -> None:
    """A column that SQLite computes."""
    table = a_table(database, chance)
    if table is None:
        return
    column, _ = chance.choice(columns_of(database, table))
    made = chance.choice(["1", "'secret'", "zeroblob(300000000)", f"{quoted(column)} || 'x'"])
    try:
        database.execute(
            f"ALTER TABLE {quoted(table)} ADD COLUMN {quoted(chance.choice(['extra', 'graphId', 'name']))} GENERATED ALWAYS AS ({made}) VIRTUAL"
        )
    except sqlite3.OperationalError:
        return  # there is such a column


@mutation
def extra_objects(database: sqlite3.Connection, chance: random.Random) -> None:
    """A table without rowids, an index, a trigger, a virtual table, statistics."""
    table = a_table(database, chance)
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
    table = a_table(database, chance)
    if table is not None:
        database.execute(
            f"UPDATE OR IGNORE {quoted(table)} SET rowid = rowid * {chance.choice([10**6, 10**15])} WHERE {where(chance)}"
        )


@mutation
def other_meta(database: sqlite3.Connection, chance: random.Random) -> None:
    """Another schema version, or meta data of any kind."""
    for table in ("META_DATA_EXPORT", "EXPORT_META_DATA", "META_DATA_CAPTURE", "TARGET_INFO_SYSTEM_ENV"):
        if table in tables_of(database):
            version = chance.choice(VERSIONS) if chance.random() < 0.7 else value(chance)
            database.execute(f"UPDATE {table} SET value = ? WHERE {where(chance)}", [version])
            if chance.random() < 0.3:
                database.execute(f"INSERT INTO {table} (name, value) VALUES (?, ?)", [value(chance), value(chance)])
