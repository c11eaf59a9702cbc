"""Process and thread ids of a Kineto file: numbers, quoted numbers, or words, combined into one table."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from warpline.sources.kineto.events import RawEvents
from warpline.sources.kineto.selection import Selection, gathered


class KinetoThreads:
    """Gives each (process, thread) pair that holds CPU events a row, in order of appearance."""

    def __init__(self, raw: RawEvents) -> None:
        self._raw = raw
        self._labels = [label.strip('"') for label in raw.labels]
        # The same id may be written with and without quotes (2021): one code for both.
        first = {label: code for code, label in reversed(list(enumerate(self._labels)))}
        self._canonical = np.array([first[label] for label in self._labels] + [-1], np.int64)
        self._rows: dict[int, int] = {}
        self._width = len(self._labels) + 1

    def key(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """A number for the thread of each event."""
        return self._keys(rows)

    def process_of(self, key: int) -> int:
        """A number for the process of a thread's number."""
        return key // self._width

    def process_of_rows(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """A number for the process of each event."""
        return self._keys(rows) // self._width

    def thread_names(self) -> dict[int, str]:
        """Names that metadata events give to threads, by number."""
        return self._metadata("thread_name")

    def process_names(self) -> dict[int, str]:
        """Names that metadata events give to processes, by number."""
        return {self.process_of(key): name for key, name in self._metadata("process_name").items()}

    def _keys(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return self._key_of(self._raw.process.take(rows), self._raw.thread.take(rows))

    def _key_of(self, process: npt.NDArray[np.int32], thread: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
        return (self._canonical.take(process) + 1) * self._width + self._canonical.take(thread) + 1

    def codes(self, events: Selection) -> pl.Series:
        """Row of the thread table for each event."""
        process, thread = events.take(self._raw.process), events.take(self._raw.thread)
        # Events of one thread are mostly consecutive: only the first of each run is looked up.
        first = np.ones(len(events), bool)
        first[1:] = (process[1:] != process[:-1]) | (thread[1:] != thread[:-1])
        begins = np.flatnonzero(first)
        known, inverse = np.unique(self._key_of(process.take(begins), thread.take(begins)), return_inverse=True)
        codes = np.array([self._rows.setdefault(int(key), len(self._rows)) for key in known], np.uint32)
        lengths = np.diff(begins, append=len(events))
        return pl.Series(np.repeat(codes.take(inverse) if len(known) else codes, lengths))

    def processes(self, rows: npt.NDArray[np.int64]) -> pl.Series:
        """Process id of each event."""
        numbers = pl.Series(self._labels, dtype=pl.String).cast(pl.Int64, strict=False)
        return gathered(numbers, self._raw.process.take(rows))

    def table(self) -> pl.DataFrame:
        """The threads met so far, with the names that metadata events give them."""
        names, processes = self._metadata("thread_name"), self._metadata("process_name")
        label_of = [*self._labels, ""]
        records = []
        for key in self._rows:
            process, thread = key // self._width - 1, key % self._width - 1
            process_label, label = label_of[process], label_of[thread]
            records.append(
                {
                    "process": _number(process_label),
                    "tid": _number(label),
                    "name": names.get(key, label),
                    "process_name": next(
                        (name for (k, name) in processes.items() if k // self._width - 1 == process), None
                    ),
                }
            )
        schema = {"process": pl.Int64, "tid": pl.Int64, "name": pl.String, "process_name": pl.String}
        return pl.DataFrame(records, schema=schema)

    def _metadata(self, name: str) -> dict[int, str]:
        """Name given by metadata events, by key."""
        raw = self._raw
        field = raw.fields.get("name")
        if name not in raw.names or field is None:
            return {}
        code = raw.names.index(name)
        rows = np.flatnonzero((raw.phase == ord("M")) & (raw.name == code))
        text_of = dict(zip(field.rows.tolist(), field.values.tolist(), strict=True))
        return {
            int(key): raw.texts[text_of[int(row)]].strip('"')
            for row, key in zip(rows, self._keys(rows), strict=True)
            if int(row) in text_of
        }


def _number(label: str) -> int | None:
    digits = label.removeprefix("-")
    return int(label) if digits.isascii() and digits.isdigit() and len(digits) < 19 else None
