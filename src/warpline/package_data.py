"""The tables that the package carries as data: TOML files in the `data` folder of their room."""

from __future__ import annotations

from importlib.resources import files
from typing import TypeVar

from msgspec import toml

T = TypeVar("T")


def read_table(room: str, name: str, kind: type[T]) -> T:
    """The file `data/NAME.toml` of a room (`doctor`, `hardware.counters`), as this type."""
    return toml.decode(files(f"warpline.{room}").joinpath("data", f"{name}.toml").read_bytes(), type=kind)
