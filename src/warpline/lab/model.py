"""What an experiment asks and what it finds: plain records, which are the same on every machine.

`LabResults.to_dict` is the JSON contract `warpline.lab/1`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal

from warpline.lab.workbench import Workbench

SCHEMA = "warpline.lab/1"
LabUnit = Literal["text", "count", "ns", "bytes", "bytes_per_second", "share", "gain", "number"]


@dataclass(frozen=True, slots=True)
class LabRange:
    """A number that is known within limits."""

    low: float
    expected: float
    high: float


LabValue = str | int | float | LabRange | None


@dataclass(frozen=True, slots=True)
class LabColumn:
    """A column of a table."""

    name: str
    title: str
    unit: LabUnit = "text"


@dataclass(frozen=True, slots=True)
class LabTable:
    """Measured rows. The first column names the row: with it, the rows of two machines are laid side by side."""

    name: str
    title: str
    columns: tuple[LabColumn, ...]
    rows: tuple[tuple[LabValue, ...], ...]

    def to_dict(self) -> dict[str, Any]:
        """As JSON: each row is an object."""
        names = [column.name for column in self.columns]
        rows = [
            {
                name: asdict(value) if isinstance(value, LabRange) else value
                for name, value in zip(names, row, strict=True)
            }
            for row in self.rows
        ]
        columns = [asdict(column) for column in self.columns]
        return {"name": self.name, "title": self.title, "columns": columns, "rows": rows}


@dataclass(frozen=True, slots=True)
class Observation:
    """What was seen, why, and the figures."""

    seen: str
    why: str
    tables: tuple[LabTable, ...]


@dataclass(frozen=True, slots=True)
class LabExperiment:
    """One experiment: a question, and the function that answers it by measuring."""

    name: str
    asks: str
    run: Callable[[Workbench], Observation]
    on_cpu: str = ""
    """Why it says nothing on a CPU; empty if it does."""

    @property
    def needs_gpu(self) -> bool:
        """Whether it says nothing on a CPU."""
        return bool(self.on_cpu)


@dataclass(frozen=True, slots=True)
class LabResult:
    """An experiment that was run, or why it was not."""

    name: str
    asks: str
    seen: str
    why: str
    tables: tuple[LabTable, ...]
    notes: tuple[str, ...]
    """What could not be measured, and why."""
    not_run: str
    """Why it was not run; empty if it was."""
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "name": self.name,
            "asks": self.asks,
            "seen": self.seen,
            "why": self.why,
            "tables": [table.to_dict() for table in self.tables],
            "notes": list(self.notes),
            "not_run": self.not_run or None,
            "seconds": round(self.seconds, 1),
        }


@dataclass(frozen=True, slots=True)
class LabResults:
    """Experiments run on one machine."""

    device: str
    torch: str
    cuda: str | None
    date: str
    sizes: Literal["full", "small"]
    """Sizes are small on a CPU."""
    experiments: tuple[LabResult, ...]

    def to_dict(self) -> dict[str, Any]:
        """The JSON contract."""
        return {
            "schema": SCHEMA,
            "device": self.device,
            "torch": self.torch,
            "cuda": self.cuda,
            "date": self.date,
            "sizes": self.sizes,
            "seconds": round(sum(one.seconds for one in self.experiments), 1),
            "experiments": [one.to_dict() for one in self.experiments],
        }
