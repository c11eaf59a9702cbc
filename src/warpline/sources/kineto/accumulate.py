"""The columns of the Python scanner while they grow: blocks of arrays, dictionaries, sparse arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from warpline.sources.kineto.columns import Columns
from warpline.sources.kineto.events import FIELDS, Field, Int64s, Sparse
from warpline.sources.kineto.text import decode_label, decode_raw, decode_string, label_of, merge_equal
from warpline.sources.kineto.tolerant import Event

KEYS = list(FIELDS)
DTYPES: list[Any] = [
    np.uint8, np.int32, np.int32, np.int32, np.int32, np.int64, np.int64, np.int64, np.int64, np.uint32,
]  # fmt: skip
"""Of the ten dense columns, in the order of `Columns`."""


class Accumulator:
    """Appends events and codes their strings by first appearance, which is what makes two scanners agree:
    per event the process before the thread, and the texts in the order of FIELDS."""

    def __init__(self) -> None:
        self.count = 0
        self._categories: dict[str, int] = {}
        self._names: dict[str, int] = {}
        self._labels: dict[str, int] = {}
        self._label_codes: dict[int | str, int] = {}
        self._texts: dict[bytes, int] = {}
        self._blocks: list[list[npt.NDArray[Any]]] = []
        self._rows: list[list[npt.NDArray[Any]]] = [[] for _ in KEYS]
        self._values: list[list[npt.NDArray[Any]]] = [[] for _ in KEYS]

    def category(self, text: str) -> int:
        return self._categories.setdefault(text, len(self._categories))

    def name(self, text: str) -> int:
        return self._names.setdefault(text, len(self._names))

    def label(self, value: int | str) -> int:
        code = self._label_codes.get(value)
        if code is None:
            code = self._label_codes[value] = self.label_text(label_of(value))
        return code

    def label_text(self, text: str) -> int:
        return self._labels.setdefault(text, len(self._labels))

    def text(self, raw: bytes) -> int:
        return self._texts.setdefault(raw, len(self._texts))

    def append(self, dense: Sequence[Any], sparse: dict[int, tuple[list[int], list[Any]]]) -> None:
        """One block: ten dense columns, and per field index the rows (within the block) and their values."""
        block = [np.asarray(column, dtype) for column, dtype in zip(dense, DTYPES, strict=True)]
        self._blocks.append(block)
        for index, (rows, values) in sparse.items():
            self._rows[index].append(np.array(rows, np.uint32) + np.uint32(self.count))
            self._values[index].append(np.array(values, np.int64))
        self.count += len(block[0])

    def append_events(self, events: list[Event]) -> None:
        """Events that the tolerant parser read, one by one."""
        dense: list[list[int]] = [[] for _ in DTYPES]
        sparse: dict[int, tuple[list[int], list[Any]]] = {}
        for row, event in enumerate(events):
            values = (
                event.phase,
                -1 if event.category is None else self.category(decode_string(event.category)),
                -1 if event.name is None else self.name(decode_string(event.name)),
                -1 if event.process is None else self.label_text(decode_label(event.process)),
                -1 if event.thread is None else self.label_text(decode_label(event.thread)),
                event.time_ns,
                event.duration_ns,
                event.flow,
                event.args_offset,
                event.args_length,
            )
            for column, value in zip(dense, values, strict=True):
                column.append(value)
            for index, key in enumerate(KEYS):
                kept = event.fields.get(key)
                if kept is not None:
                    rows, kept_values = sparse.setdefault(index, ([], []))
                    rows.append(row)
                    kept_values.append(self.text(kept) if isinstance(kept, bytes) else kept)
        self.append(dense, sparse)

    def columns(self, skipped: int, first_skipped: int, waste: int) -> Columns:
        dense: list[npt.NDArray[Any]] = [
            np.concatenate([block[index] for block in self._blocks] or [np.empty(0, dtype)])
            for index, dtype in enumerate(DTYPES)
        ]
        texts, codes = merge_equal(map(decode_raw, self._texts))
        fields: dict[str, Sparse] = {}
        for index, (key, kind) in enumerate(FIELDS.items()):
            rows = np.concatenate(self._rows[index] or [np.empty(0, np.uint32)])
            shape = (0, 3) if kind is Field.TRIPLE else (0,)
            values: Int64s = np.concatenate(self._values[index] or [np.empty(shape, np.int64)])
            if kind is Field.TEXT:
                values = codes[values].astype(np.int64)
            fields[key] = Sparse(rows, values)
        phase, category, name, process, thread, time_ns, duration_ns, flow, args_offset, args_length = dense
        return Columns(
            phase=phase,
            category=category,
            name=name,
            process=process,
            thread=thread,
            time_ns=time_ns,
            duration_ns=duration_ns,
            flow=flow,
            args_offset=args_offset,
            args_length=args_length,
            fields=fields,
            categories=list(self._categories),
            names=list(self._names),
            labels=list(self._labels),
            texts=texts,
            skipped=skipped,
            first_skipped=first_skipped,
            waste=waste,
        )
