"""The peaks of each chip: dense FLOP/s per data type, and bandwidths, each figure with its source.

`bench` uses chips, ceilings and roofs where only the standard library and torch are: they are dataclasses.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from warpline.errors import UsageError, meant

TENSOR = "tensor"
VECTOR = "vector"
DRAM = "dram"
L2 = "l2"
PCIE = "pcie"
BY_OTHERS = "measured by others"
"""How the source of a reported figure begins."""

_TABLES = ("nvidia.toml", "amd.toml")
_TERA, _GIGA, _MEGA = 1e12, 1e9, 1 << 20
PCIE_SOURCE = "PCI-SIG base specification: 16 lanes, 128b/130b encoding, one direction"


@dataclass(frozen=True, slots=True)
class CitedFigure:
    """One number, in FLOP/s or bytes per second, and its source."""

    value: float
    source: str
    measured: bool = False

    @property
    def origin(self) -> str:
        """Where the number comes from, in a few words."""
        if self.measured:
            return "measured"
        return BY_OTHERS if self.source.startswith(BY_OTHERS) else "data sheet"


@dataclass(frozen=True, slots=True)
class Chip:
    """One chip as its data sheet describes it. Tensor and vector figures are dense, keyed by data type."""

    name: str
    vendor: str
    matches: tuple[str, ...]
    compute: tuple[int, int]
    sm_count: int
    l2_bytes: int
    tensor: dict[str, CitedFigure]
    vector: dict[str, CitedFigure]
    bandwidth: dict[str, CitedFigure]
    """Keys are `dram`, `nvlink`, `pcie`, `c2c` and `network` (in NVIDIA's own machines); links count one direction."""
    reported: dict[str, CitedFigure] = field(default_factory=dict)
    """Tensor figures that others measured, by data type, where the data sheet has none: ceilings, but no limits."""
    shares_memory: bool = False
    """Whether CPU and GPU have one memory: a copy between them reads and writes it."""
    last_level_bytes: int = 0
    """Cache in front of the memory, beyond the L2 (AMD's Infinity Cache); 0 if there is none."""

    memory_bytes: int = 0
    """The memory's size, where it tells two chips apart that are alike in all else that a driver says; else 0."""

    def is_called(self, name: str) -> bool:
        """Whether a driver's device name means this chip, with or without the vendor's name before it."""
        return any(re.fullmatch(pattern, name.strip(), re.IGNORECASE) for pattern in self.patterns)

    @property
    def patterns(self) -> tuple[str, ...]:
        """Patterns of whole device names."""
        return tuple(rf"(?:.*\s)?(?:{pattern.removesuffix('$')})" for pattern in self.matches)

    @property
    def cache_bytes(self) -> int:
        """The amount of data that can be reused without going to memory."""
        return self.l2_bytes + self.last_level_bytes


@cache
def chips() -> tuple[Chip, ...]:
    """All known chips, in the order of the tables."""
    return tuple(chip for table in _TABLES for chip in _read(table))


def chip_named(name: str) -> Chip:
    """The chip of that name (`H200-SXM`), of a driver's name (`NVIDIA H200`), or with that prefix or part (`4090`).

    A name without its form factor means the SXM module, as in NVIDIA's data sheets: `H100` is `H100-SXM`.
    """
    wanted = _plain(name)
    named = [chip for chip in chips() if _plain(chip.name) in (wanted, wanted + "sxm")]
    named = named or [chip for chip in chips() if chip.is_called(name)]
    named = named or [chip for chip in chips() if _plain(chip.name).startswith(wanted)]
    named = named or [chip for chip in chips() if wanted in _plain(chip.name)]
    if len(named) == 1:
        return named[0]
    if named:
        candidates = ", ".join(chip.name for chip in named)
        raise UsageError("unknown-device", f"{name!r} could be several chips", f"one of: {candidates}")
    raise UsageError("unknown-device", f"there is no chip {name!r}", meant(name, [chip.name for chip in chips()]))


def _plain(name: str) -> str:
    return "".join(char for char in name.lower() if char.isalnum())


def _read(table: str) -> list[Chip]:
    text = files("warpline.hardware").joinpath("data", table).read_text(encoding="utf-8")
    document = tomllib.loads(text)
    return [_chip(entry, document["sources"], table.removesuffix(".toml")) for entry in document["chip"]]


def _chip(entry: dict[str, Any], sources: dict[str, str], vendor: str) -> Chip:
    source = sources[entry["source"]]
    tensor_source = f"{source}; half of the figure quoted with sparsity" if entry.get("half_of_sparse") else source
    major, minor = map(int, entry["compute"].split("."))
    links = {link: f"{link}_gbs" for link in ("dram", "nvlink", "pcie", "c2c", "network")}
    return Chip(
        name=entry["name"],
        vendor=vendor,
        matches=tuple(entry["match"]),
        compute=(major, minor),
        sm_count=entry["sms"],
        l2_bytes=entry["l2_mb"] * _MEGA,
        last_level_bytes=entry.get("last_level_mb", 0) * _MEGA,
        tensor={
            # Double precision has no sparse mode, and fp4 is quoted without it too.
            dtype: CitedFigure(value * _TERA, source if dtype in {"fp64", "fp4"} else tensor_source)
            for dtype, value in entry["tensor"].items()
        },
        vector={dtype: CitedFigure(value * _TERA, source) for dtype, value in entry["vector"].items()},
        bandwidth={
            link: CitedFigure(entry[key] * _GIGA, PCIE_SOURCE if link == "pcie" else _link_source(entry, link, sources))
            for link, key in links.items()
            if key in entry
        },
        shares_memory=entry.get("shares_memory", False),
        memory_bytes=entry.get("memory_gib", 0) * _MEGA << 10,
        reported={
            dtype: CitedFigure(figure["tflops"] * _TERA, sources[figure["source"]])
            for figure in entry.get("reported", ())
            for dtype in figure["dtypes"]
        },
    )


def _link_source(entry: dict[str, Any], link: str, sources: dict[str, str]) -> str:
    return sources[entry.get(f"{link}_source", entry["source"])]
