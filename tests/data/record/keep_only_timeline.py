"""Reduces an nsys SQLite export to its timeline, so that it can be published.

nsys stores the whole environment of every process, the process list and the host's name. What may stay is
named here; all else goes: keep_only_timeline.py IN.sqlite OUT.sqlite.gz
"""

import gzip
import pathlib
import shutil
import sqlite3
import sys
import tempfile

TIMELINE = ("CUPTI_ACTIVITY_KIND_", "CUDA_", "NVTX_", "ENUM_")
TABLES = {
    "OSRT_API",
    "PROFILER_OVERHEAD",
    "StringIds",
    "ThreadNames",
    "DIAGNOSTIC_EVENT",
    "META_DATA_EXPORT",
    "META_DATA_CAPTURE",
    "TARGET_INFO_SYSTEM_ENV",
    "TARGET_INFO_GPU",
    "TARGET_INFO_CUDA_DEVICE",
    "TARGET_INFO_CUDA_CONTEXT_INFO",
    "TARGET_INFO_CUDA_STREAM",
    "TARGET_INFO_SESSION_START_TIME",
}
CAPTURE = ("CAPTURE_EVENT_TYPE", "%CUDA_GRAPH_TRACE_OPTIONS%", "%COLLECT_%")
EXPORT = ("EXPORT_PRODUCT_VERSION", "EXPORT_SCHEMA_VERSION%")
SYSTEM = ("NvDriverVersion", "CudaDriverVersion", "OsDescription", "SoftwareReleaseVersion", "LinuxParanoidLevel")


def keep_rows(database: sqlite3.Connection, table: str, column: str, patterns: tuple[str, ...]) -> None:
    condition = " and ".join(f"{column} not like ?" for _ in patterns)
    database.execute(f"delete from {table} where {condition}", patterns)


def reduce(database: sqlite3.Connection) -> None:
    tables = [row[0] for row in database.execute("select name from sqlite_master where type = 'table'")]
    for table in tables:
        if table not in TABLES and not table.startswith(TIMELINE):
            database.execute(f'drop table "{table}"')
    kept = [row[0] for row in database.execute("select name from sqlite_master where type = 'table'")]
    keep_rows(database, "META_DATA_CAPTURE", "name", CAPTURE)
    keep_rows(database, "META_DATA_EXPORT", "name", EXPORT)
    keep_rows(database, "TARGET_INFO_SYSTEM_ENV", "name", SYSTEM)
    database.execute("delete from DIAGNOSTIC_EVENT where text like '%/%' and text not like '%(%/%)%'")
    threads = " union ".join(
        f"select globalTid from {table}"
        for table in kept
        if "globalTid" in columns(database, table) and table != "ThreadNames"
    )
    database.execute(f"delete from ThreadNames where globalTid not in ({threads})")
    names = [
        f"select {column} from {table}"
        for table in kept
        for column in columns(database, table)
        if column in {"nameId", "textId", "demangledName", "shortName", "mangledName", "jsonTextId"}
    ]
    database.execute(
        f"delete from StringIds where id not in ({' union '.join(n + ' where ' + n.split()[1] + ' is not null' for n in names)})"
    )
    database.commit()
    database.execute("vacuum")


def columns(database: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in database.execute(f'pragma table_info("{table}")')]


def main() -> None:
    source, target = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "copy.sqlite"
        shutil.copy(source, copy)
        database = sqlite3.connect(copy)
        reduce(database)
        database.close()
        with open(target, "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
            packed.write(copy.read_bytes())


main()
