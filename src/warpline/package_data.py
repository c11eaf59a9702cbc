"""What the package carries as data: tables as TOML files in the `data` folder of their room, and a trace to try."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import TypeVar

from msgspec import toml

T = TypeVar("T")


def read_table(room: str, name: str, kind: type[T]) -> T:
    """The file `data/NAME.toml` of a room (`doctor`, `hardware.counters`), as this type."""
    return toml.decode(files(f"warpline.{room}").joinpath("data", f"{name}.toml").read_bytes(), type=kind)


def demo_trace() -> Path:
    """The trace that `warpline demo` diagnoses: four training steps of a small GPT on an NVIDIA H200."""
    return Path(str(files("warpline").joinpath("data", "demo.json.xz")))
