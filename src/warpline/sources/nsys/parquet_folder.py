"""A folder of Parquet files, one for each table, as `nsys export --type parquetdir` writes it.

Tables and columns are those of the SQLite export.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import polars as pl
from msgspec import Struct, field

from warpline.errors import UnreadableFile
from warpline.sources.kinds import Kind
from warpline.sources.sqlite.database import Damage
from warpline.sources.unpack import BOMB_RATIO, ROWS_BOMB_BYTES

SUFFIX = ".parquet"
EVERY_EXPORT = ("StringIds", "TARGET_INFO_SESSION_START_TIME", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS")
"""Of these tables, an export of a program that used a GPU has at least one."""
READ_ERRORS = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)
EXPORT_AGAIN = "export the report again: nsys export --type parquetdir --force-overwrite=true REPORT.nsys-rep"

NSYS_PARQUET = Kind(
    "nsys-parquetdir",
    lambda _, path: any((path / f"{table}{SUFFIX}").is_file() for table in EVERY_EXPORT),
    ("_pqtdir",),
    packs=False,
    is_folder=True,
)
"""Folder of an nsys export, with a Parquet file for each table."""


class ParquetTables(Struct):
    """The tables of a folder."""

    folder: Path
    columns: dict[str, tuple[str, ...]] = field(default_factory=dict)
    damage: list[Damage] = field(default_factory=list)

    @classmethod
    def of(cls, folder: Path) -> ParquetTables:
        """The tables of the folder, none read yet; a file that is no Parquet counts as damage."""
        tables = cls(folder)
        for file in sorted(folder.glob(f"*{SUFFIX}")):
            try:
                if not file.is_file():  # to open a pipe would wait for its writer
                    raise OSError("it is no regular file")
                tables.columns[file.stem] = tuple(_scan(file).collect_schema())
            except READ_ERRORS as error:
                tables.damage.append(_damage(file.stem, error))
        if not tables.columns:
            raise UnreadableFile(
                "damaged-file", f"none of the tables in {folder} can be read ({tables.damage[0].reason})", EXPORT_AGAIN
            )
        return tables

    def fetch(
        self, table: str, integers: Iterable[str] = (), texts: Iterable[str] = (), numbers: Iterable[str] = ()
    ) -> pl.DataFrame:
        """The requested columns of a table; null if the table, the column or a value of that type is missing."""
        wanted: dict[str, pl.DataType] = {
            **dict.fromkeys(integers, pl.Int64()),
            **dict.fromkeys(numbers, pl.Float64()),
            **dict.fromkeys(texts, pl.String()),
        }
        present = [name for name in wanted if name in self.columns.get(table, ())]
        frame = self._read(table, present) if present else pl.DataFrame()
        return (
            frame.select(
                pl.col(name).cast(dtype, strict=False)
                if name in frame.columns and _fits(frame.schema[name], dtype)
                else pl.lit(None, dtype).alias(name)
                for name, dtype in wanted.items()
            )
            if len(frame)
            else pl.DataFrame(schema=wanted)
        )

    def _read(self, table: str, columns: list[str]) -> pl.DataFrame:
        file = self.folder / f"{table}{SUFFIX}"
        try:
            rows = _scan(file).select(pl.len()).collect().item()
            if rows * len(columns) * 8 > max(ROWS_BOMB_BYTES, BOMB_RATIO * file.stat().st_size):
                self.damage.append(Damage(table, 0, "it has more rows than fit in the file"))
                return pl.DataFrame()
            return _scan(file).select(columns).collect()
        except READ_ERRORS as error:
            self.damage.append(_damage(table, error))
            return pl.DataFrame()


def _scan(file: Path) -> pl.LazyFrame:
    """A file by its name as it is: `run[1]` is no pattern of names."""
    return pl.scan_parquet(file, glob=False)


def _fits(found: pl.DataType, wanted: pl.DataType) -> bool:
    """Whether values of the one type can be values of the other; text is never a number."""
    if wanted == pl.String():
        return found in (pl.String, pl.Categorical, pl.Enum)
    return found.is_integer() or (found.is_float() and wanted == pl.Float64())


def _damage(table: str, error: BaseException) -> Damage:
    lines = str(error).splitlines()
    return Damage(table, 0, lines[0] if lines else type(error).__name__)
