"""The two layouts of ncu's CSV: which cell of a row is what, and the kernels that the rows make."""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from warpline.errors import UnreadableFile
from warpline.sources.ncu.launch_metrics import chip, device_name, dimensions
from warpline.sources.ncu.model import Dimensions, KernelReport, Reading, Source
from warpline.sources.ncu.names import function_of, metric_of
from warpline.sources.ncu.numbers import MISSING, NOT_AVAILABLE, base_unit, number

DETAILS_COLUMNS: Final = frozenset({"Metric Name", "Metric Value"})
MAX_VALUES = 50_000_000
"""Metric values that are kept, 8 bytes each in a raw page: 20,000 kernels with every section."""
_ABOUT_THE_LAUNCH: Final = frozenset(
    {
        *("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Kernel Time", "Context", "Stream"),
        *("Block Size", "Grid Size", "Device", "CC"),
    }
)
_NVTX_COLUMN = re.compile(r"Push/Pop|Start/End|:Domain|Domain:", re.IGNORECASE)
_DURATION = ("gpu__time_duration.sum", "gpu__time_duration.avg", "gpu__time_duration.max")
_NOT_MEASURED = float("nan")


class RawPage:
    """A row per kernel; the row behind the header has the units."""

    source: Source = "csv-raw"

    def __init__(self, header: Sequence[str]) -> None:
        self.missing: set[str] = set()
        self._width = len(header)
        self._about = {name: place for place, name in enumerate(header) if name in _ABOUT_THE_LAUNCH}
        self.metric_places = [
            place
            for place, name in enumerate(header)
            if name and name not in _ABOUT_THE_LAUNCH and not _NVTX_COLUMN.search(name)
        ]
        self._names = [header[place] for place in self.metric_places]
        self._columns = MetricColumns({name: at for at, name in enumerate(self._names)}, ("",) * len(self._names))
        self._factors = [1.0] * len(self._names)
        self._kernels: list[KernelReport] = []

    def add(self, row: Sequence[str], mark: str) -> bool:
        """Take a row, of units or of a kernel; False where it is not whole."""
        if len(row) < self._width:
            return False
        launch = row[self._about["ID"]]
        if not launch:
            self._take_units(row)
            return True
        if _whole(launch) is None:
            return False
        if len(self._kernels) * max(len(self._names), 1) > MAX_VALUES:
            raise _too_many(len(self._kernels))
        numbers, words = array("d"), {}
        for name, place, factor in zip(self._names, self.metric_places, self._factors, strict=True):
            cell = row[place]
            value = None if cell in MISSING else number(cell, mark)
            if cell in NOT_AVAILABLE:
                self.missing.add(name)
            elif value is None and cell not in MISSING:
                words[name] = cell
            numbers.append(_NOT_MEASURED if value is None else value * factor)
        about = {name: row[place] for name, place in self._about.items()}
        self._kernels.append(_kernel(about, RowMetrics(self._columns, numbers, words)))
        return True

    def _take_units(self, row: Sequence[str]) -> None:
        bases = [base_unit(row[place]) for place in self.metric_places]
        self._columns = MetricColumns(self._columns.places, tuple(unit for unit, _ in bases))
        self._factors = [factor for _, factor in bases]

    def kernels(self) -> tuple[KernelReport, ...]:
        """All kernels, in the order of the rows."""
        return tuple(self._kernels)


class _KernelDraft(Struct):
    """A kernel of the details page, while its rows come in."""

    about: Mapping[str, str]
    metrics: dict[str, Reading] = field(default_factory=dict)


class DetailsPage:
    """A row per kernel and metric; the rows of rules are passed over."""

    source: Source = "csv-details"

    def __init__(self, header: Sequence[str]) -> None:
        self.missing: set[str] = set()
        self._places = {name: place for place, name in enumerate(header)}
        self._needed = self._places["Metric Value"] + 1
        self._about = {name: place for name, place in self._places.items() if name in _ABOUT_THE_LAUNCH}
        self.metric_places = [self._places["Metric Value"]]
        self._drafts: dict[tuple[str, str], _KernelDraft] = {}
        self._values = 0

    def add(self, row: Sequence[str], mark: str) -> bool:
        """Take a row, of a metric or of a rule; False where it is not whole."""
        if len(row) < self._needed or _whole(row[self._places["ID"]]) is None:
            return False
        about = {name: row[place] for name, place in self._about.items()}
        draft = self._drafts.setdefault((about.get("Process ID", ""), about["ID"]), _KernelDraft(about))
        self._values += 1
        if self._values > MAX_VALUES // 10:  # a value here is an object
            raise _too_many(len(self._drafts))
        label = self._cell(row, "Metric Name")
        if label:
            self._take_metric(draft, label, self._cell(row, "Metric Unit"), self._cell(row, "Metric Value"), mark)
        return True

    def _take_metric(self, draft: _KernelDraft, label: str, printed_unit: str, cell: str, mark: str) -> None:
        unit, factor = base_unit(printed_unit)
        name = metric_of(label, unit)
        value = None if cell in MISSING else number(cell, mark)
        if value is not None:
            draft.metrics.setdefault(name, Reading(value * factor, unit))
        elif cell in NOT_AVAILABLE:
            self.missing.add(name)
        elif cell not in MISSING:
            draft.metrics.setdefault(name, Reading(cell, unit))

    def _cell(self, row: Sequence[str], name: str) -> str:
        place = self._places.get(name)
        return row[place] if place is not None and place < len(row) else ""

    def kernels(self) -> tuple[KernelReport, ...]:
        """All kernels, in the order of their first rows."""
        return tuple(_kernel(draft.about, draft.metrics) for draft in self._drafts.values())


def metric_cells(page: RawPage | DetailsPage, row: Sequence[str]) -> Iterable[str]:
    """The cells of a row that hold measured values."""
    return (row[place] for place in page.metric_places if place < len(row))


def _kernel(about: Mapping[str, str], metrics: Mapping[str, Reading]) -> KernelReport:
    name = about.get("Kernel Name", "")
    duration = next((metrics[metric].value for metric in _DURATION if metric in metrics), None)
    return KernelReport(
        name=name,
        function=function_of(name),
        launch=int(about["ID"]),
        device=device_name(metrics),
        chip=_chip(about.get("CC", "")) or chip(metrics),
        grid=_dimensions(about.get("Grid Size", "")) or dimensions(metrics, "launch__grid_dim_"),
        block=_dimensions(about.get("Block Size", "")) or dimensions(metrics, "launch__block_dim_"),
        duration_ns=duration if isinstance(duration, float) else None,
        metrics=metrics,
    )


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None


def _chip(capability: str) -> str:
    found = re.fullmatch(r"(\d+)[.,](\d)", capability.strip())
    return f"sm_{found[1]}{found[2]}" if found is not None else ""


def _dimensions(text: str) -> Dimensions | None:
    parts = re.findall(r"\d+", text)
    sizes = [size for size in map(_whole, parts) if size is not None]
    return (sizes[0], sizes[1], sizes[2]) if len(parts) == len(sizes) == 3 else None


def _too_many(kernels: int) -> UnreadableFile:
    return UnreadableFile(
        "too-large",
        f"the CSV holds more values than fit in memory: over {kernels:,} kernels were read",
        "export fewer: ncu --import REPORT.ncu-rep --csv --page raw --kernel-name NAME --launch-count 100",
    )


class MetricColumns(Struct, frozen=True):
    """The metric columns of a raw page."""

    places: Mapping[str, int]
    units: tuple[str, ...]


class RowMetrics(Mapping[str, Reading]):
    """The metrics of one row, as a mapping; a raw page has thousands of columns, and most are never looked at."""

    __slots__ = ("_columns", "_numbers", "_words")

    def __init__(self, columns: MetricColumns, numbers: array[float], words: dict[str, str]) -> None:
        self._columns = columns
        self._numbers = numbers
        self._words = words

    def __getitem__(self, name: str) -> Reading:
        place = self._columns.places[name]
        value: float | str = self._numbers[place]
        if math.isnan(self._numbers[place]):
            value = self._words[name]
        return Reading(value, self._columns.units[place])

    def __iter__(self) -> Iterator[str]:
        for name, place in self._columns.places.items():
            if name in self._words or not math.isnan(self._numbers[place]):
                yield name

    def __len__(self) -> int:
        return sum(1 for _ in self)
