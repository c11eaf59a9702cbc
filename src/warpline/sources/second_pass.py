"""The file of a second pass, `NAME.look.json.gz`, which `warpline run` writes beside a trace."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import polars as pl
from msgspec import Struct

from warpline.errors import UnreadableFile
from warpline.sources.unpack import Unpacked

SCHEMA = "warpline.look/1"
MOST_BYTES = 512 << 20
"""Of the file, unpacked: a few steps with every tensor have a hundredth of that."""
ACCESSES = ("read", "write", "update", "make", "view")
DIRECTIONS = ("in", "out")
DAMAGE = (
    *(OSError, EOFError, zlib.error, ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError),
    *(RecursionError, pl.exceptions.PolarsError),
)
"""What a damaged file raises on its way into columns."""


class SecondPassRows(Struct, frozen=True):
    """What the steps of a second pass say."""

    dataflow: pl.DataFrame
    """Rows of the `dataflow` table; empty without the observer's file."""
    lines: pl.DataFrame
    """`start_ns` (since 1970) and `line` of every Python call; empty without frames."""


def nothing_seen() -> SecondPassRows:
    """A pass without rows."""
    return SecondPassRows(pl.DataFrame(), _lines({}))


def read_second_pass(file: Path) -> SecondPassRows:
    """Read the file."""
    try:
        unpacked = Unpacked(file, limit_bytes=MOST_BYTES)
        content = json.loads(b"".join(unpacked))
        if unpacked.damage:
            raise ValueError(unpacked.damage)
        if content["schema"] != SCHEMA:
            raise ValueError(f"its schema is {content['schema']}")
        return SecondPassRows(dataflow_rows(content), _lines(content))
    except DAMAGE as error:
        why = f"{file.name} cannot be read: {type(error).__name__}: {error}"
        raise UnreadableFile("bad-look", why, "record again, or delete that file") from error


def _lines(content: dict[str, Any]) -> pl.DataFrame:
    lines = content.get("lines") or {}
    columns = {"start_ns": pl.Int64(), "line": pl.Int32()}
    return pl.DataFrame({name: _numbers(lines.get(name, []), dtype) for name, dtype in columns.items()}).drop_nulls()


def dataflow_rows(content: dict[str, Any]) -> pl.DataFrame:
    """Rows of the `dataflow` table from columns of calls and tensors; empty without them."""
    if "calls" not in content:
        return pl.DataFrame()
    calls, tensors = (dict(content[name]) for name in ("calls", "tensors"))
    count = len(calls["op"])
    called = pl.DataFrame(
        {
            "step": _numbers(calls["step"], pl.Int32()),
            "call": pl.Series(range(count), dtype=pl.UInt32),
            "op": _texts(calls["op"], calls.get("ops", [])),
            "lane": _numbers(calls["thread"], pl.Int32()),
            "parent": _or_null(calls["parent"]),
            "record_function": _numbers(calls["record_function"], pl.Int64()),
        }
    )
    taken = pl.DataFrame(
        {
            "call": _numbers(tensors["call"], pl.UInt32()),
            "direction": _texts(tensors["output"], [*DIRECTIONS]),
            "argument": _numbers(tensors["argument"], pl.Int32()),
            "access": _texts(tensors["access"], [*ACCESSES]),
            **{
                name: _numbers(tensors[name], pl.Int64())
                for name in ("tensor", "storage", "offset", "extent", "elements")
            },
            "item_bytes": _numbers(tensors["item_bytes"], pl.Int32()),
            "shape": _texts(tensors["shape"], tensors.get("shapes", [])),
            "dtype": _texts(tensors["dtype"], tensors.get("dtypes", [])),
            "device": _texts(tensors["device"], tensors.get("devices", [])),
        }
    )
    return called.join(taken, on="call", how="left", maintain_order="left_right")


def _texts(codes: Any, names: Any) -> pl.Series:
    """The named texts, interned."""
    known = _column(names, str, pl.String()).cast(pl.Categorical)
    return known.gather(_numbers(codes, pl.UInt32()))


def _or_null(numbers: Any) -> pl.Series:
    series = _numbers(numbers, pl.Int64())
    return series.set(series < 0, None).cast(pl.UInt32)


def _numbers(values: Any, dtype: pl.DataType) -> pl.Series:
    return _column(values, int, dtype)


def _column(values: Any, kind: type, dtype: pl.DataType) -> pl.Series:
    """The values of a file as a column; polars may take minutes over lists within lists, and never sees them."""
    if not isinstance(values, list) or not {kind, type(None)}.issuperset(map(type, values)):
        raise ValueError(f"a column is no list of {kind.__name__}")
    return pl.Series(values, dtype=dtype)
