"""How busy each unit of the GPU was, as a part of its peak over the kernel's duration, and which one limits.

The units are those of ``data/units.toml``.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from warpline.dive.kernel_metrics import KernelMetrics
from warpline.package_data import read_table

Side = Literal["compute", "memory"]


class GpuUnit(Struct, frozen=True):
    """A unit, and the metrics that show how busy its parts were."""

    name: str
    words: str
    side: Side
    keys: tuple[str, ...] = ()
    """Metrics by the tree's names."""
    bases: tuple[str, ...] = ()
    """More parts, by the metric's base name."""


class _UnitTable(Struct, frozen=True):
    unit: tuple[GpuUnit, ...]


UNITS = read_table("dive", "units", _UnitTable).unit
UNIT_WORDS = {unit.name: unit.words for unit in UNITS} | {"sm": "SM", "memory": "memory system"}
_WHOLE = {"compute": "sm", "memory": "memory"}
USEFUL_PIPES = ("tensor", "fma", "fp64")
"""Pipes whose work is the arithmetic that a kernel exists for."""


class Utilisation(Struct, frozen=True):
    """The units' utilisations, 0 to 1."""

    shares: dict[str, float]
    compute: float | None
    """Of the SMs, as Nsight Compute's speed of light has it."""
    memory: float | None

    @property
    def known(self) -> bool:
        """Whether the report has any speed of light."""
        return self.compute is not None or self.memory is not None

    @property
    def top(self) -> float:
        """The highest utilisation: what every unit's work needs of the time at least."""
        known = [value for value in (self.compute, self.memory, *self.shares.values()) if value is not None]
        return min(1.0, max(known, default=0.0))

    def limiter(self, side: Side) -> str:
        """The busiest unit of a side."""
        names = [unit.name for unit in UNITS if unit.side == side and unit.name in self.shares]
        names += [name for name in ("sm", "memory") if name in self.shares and name == _WHOLE[side]]
        names.reverse()  # of equals the later one: DRAM rather than L2, which only passes the bytes on
        return max(names, key=lambda name: self.shares[name], default=_WHOLE[side])

    def after(self, left: dict[str, float]) -> float:
        """The highest utilisation if only these parts of the units' work were left."""
        return min(1.0, max((share * left.get(name, 1.0) for name, share in self.shares.items()), default=0.0))


def utilisation_of(metrics: KernelMetrics) -> Utilisation:
    """The utilisations in a report. A unit counts as busy as its busiest part, and no busier than its whole side.

    The L2 throughput of Nsight Compute also counts what its slices do among themselves, which its speed of light of
    the memory system leaves out. So it serves only where the parts are missing, and the whole side bounds it.
    """
    shares: dict[str, float] = {}
    compute, memory = metrics.share("sm"), metrics.share("memory")
    for unit in UNITS:
        known = [part for base in unit.bases if (part := metrics.part(base)) is not None]
        if not known or unit.side == "compute" or unit.name == "dram":
            known += [share for key in unit.keys if (share := metrics.share(key)) is not None]
        whole = compute if unit.side == "compute" else memory
        if known:
            shares[unit.name] = min(max(known), 1.0 if whole is None else whole, 1.0)
    _cover(shares, "sm", "compute", compute)
    _cover(shares, "memory", "memory", memory)
    return Utilisation(shares, compute, memory)


def _cover(shares: dict[str, float], name: str, side: Side, whole: float | None) -> None:
    """Where the speed of light is above every part that the report names, the difference has a part of its own."""
    parts = [shares[unit.name] for unit in UNITS if unit.side == side and unit.name in shares]
    if whole is not None and whole > max(parts, default=-1.0) + 0.005:
        shares[name] = min(whole, 1.0)
