"""Writes the data contract as TypeScript: `python page/typescript.py` makes page/src/contract.ts anew."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from warpline.reports.page import contract

TARGET = Path(__file__).parent / "src" / "contract.ts"
HEAD = "// Written by page/typescript.py from src/warpline/reports/page/contract.py; do not edit.\n"
SIMPLE = {str: "string", int: "number", float: "number", bool: "boolean", type(None): "null"}


def typescript() -> str:
    """Every type of the contract, in its order."""
    blocks = [HEAD]
    for name, value in vars(contract).items():
        if typing.get_origin(value) is typing.Literal:
            blocks.append(f"export type {name} = {_type(value)};\n")
        elif _is_record(value):
            blocks.append("\n".join(_interface(value)))
    return "\n".join(blocks)


def _is_record(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, Struct) and value is not Struct


def _interface(record: type[Struct]) -> Iterator[str]:
    hints = typing.get_type_hints(record)
    yield f"/** {inspect.getdoc(record)} */"
    yield f"export interface {record.__name__} {{"
    for name in record.__struct_fields__:
        yield f"  readonly {name}: {_type(hints[name])};"
    yield "}\n"


def _type(hint: Any) -> str:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint in SIMPLE:
        return SIMPLE[hint]
    if origin is typing.Literal:
        return " | ".join(f'"{word}"' for word in inner)
    if origin in {typing.Union, types.UnionType}:
        return " | ".join(map(_type, inner))
    if origin is tuple and inner[-1] is not Ellipsis:
        return f"readonly [{', '.join(map(_type, inner))}]"
    if origin in {list, tuple}:
        element = _type(inner[0])
        return f"readonly ({element})[]" if " " in element else f"readonly {element}[]"
    if _is_record(hint):
        return str(hint.__name__)
    raise TypeError(f"no TypeScript for {hint}")


if __name__ == "__main__":
    TARGET.write_text(typescript())
