"""Growing columns of the Python scanner: blocks of arrays, dictionaries, sparse arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import UNSET, UnsetType

from warpline.sources.kineto.events import DTYPES, Int64s, RawEvents, Sparse, merge_equal
from warpline.sources.kineto.fields import FIELDS, Field
from warpline.sources.kineto.text import decode_label, decode_raw, decode_string, label_of
from warpline.sources.kineto.tolerant import Event

KEYS = list(FIELDS)


class Accumulator:
    """Appends events and codes their strings by first appearance, so that the two scanners agree:
    per event the process before the thread, and the texts in the order of FIELDS."""

    def __init__(self) -> None:
        self.count = 0
        # UNSET stands for an absent key in all three and takes the code -1; the first string is 0.
        self._categories: dict[str | UnsetType, int] = {UNSET: -1}
        self._names: dict[str | UnsetType, int] = {UNSET: -1}
        self._label_values: dict[int | str | UnsetType, int] = {UNSET: -1}
        self._labels: dict[str, int] = {}
        self._texts: dict[bytes, int] = {}
        self._blocks: list[list[npt.NDArray[Any]]] = []
        self._rows: list[list[npt.NDArray[Any]]] = [[] for _ in KEYS]
        self._values: list[list[npt.NDArray[Any]]] = [[] for _ in KEYS]

    def code_categories(self, texts: Sequence[str | UnsetType]) -> list[int]:
        return _codes(self._categories, texts)

    def code_names(self, texts: Sequence[str | UnsetType]) -> list[int]:
        return _codes(self._names, texts)

    def code_labels(
        self, processes: Sequence[int | str | UnsetType], threads: Sequence[int | str | UnsetType]
    ) -> tuple[list[int], list[int]]:
        known = self._label_values
        if not (known.keys() >= set(processes) and known.keys() >= set(threads)):
            for pair in zip(processes, threads, strict=True):
                for value in pair:
                    if value not in known and not isinstance(value, UnsetType):
                        known[value] = self.label(label_of(value))
        return [known[value] for value in processes], [known[value] for value in threads]

    def label(self, text: str) -> int:
        return self._labels.setdefault(text, len(self._labels))

    def append(
        self,
        dense: Sequence[Any],
        sparse: dict[int, tuple[list[int], list[Any]]],
        texts: dict[int, tuple[list[int], list[bytes]]],
    ) -> None:
        """One block: nine dense columns, and per field index the rows (within the block) and their values."""
        block = [np.asarray(column, dtype) for column, dtype in zip(dense, DTYPES, strict=True)]
        self._blocks.append(block)
        known = self._texts
        new = {raw for _, raws in texts.values() for raw in raws if raw not in known}
        if new:
            places = [
                (row, index, raw)
                for index, (rows, raws) in texts.items()
                for row, raw in zip(rows, raws, strict=True)
                if raw in new
            ]
            for _, _, raw in sorted(places):
                known.setdefault(raw, len(known))
        coded = {index: (rows, [known[raw] for raw in raws]) for index, (rows, raws) in texts.items()}
        for index, (rows, values) in (sparse | coded).items():
            self._rows[index].append(np.array(rows, np.uint32) + np.uint32(self.count))
            self._values[index].append(np.array(values, np.int64))
        self.count += len(block[0])

    def append_events(self, events: list[Event]) -> None:
        """Append events that the tolerant parser read, one by one."""
        dense: list[list[int]] = [[] for _ in DTYPES]
        sparse: dict[int, tuple[list[int], list[Any]]] = {}
        texts: dict[int, tuple[list[int], list[bytes]]] = {}
        for row, event in enumerate(events):
            values = (
                event.phase,
                *self.code_categories([UNSET if event.category is None else decode_string(event.category)]),
                *self.code_names([UNSET if event.name is None else decode_string(event.name)]),
                -1 if event.process is None else self.label(decode_label(event.process)),
                -1 if event.thread is None else self.label(decode_label(event.thread)),
                event.time_ns,
                event.duration_ns,
                event.args_offset,
                event.args_length,
            )
            for column, value in zip(dense, values, strict=True):
                column.append(value)
            for index, key in enumerate(KEYS):
                kept = event.fields.get(key)
                if kept is not None:
                    target: dict[int, tuple[list[int], list[Any]]] = texts if isinstance(kept, bytes) else sparse
                    rows, kept_values = target.setdefault(index, ([], []))
                    rows.append(row)
                    kept_values.append(kept)
        self.append(dense, sparse, texts)

    def events(self, skipped: int, first_skipped: int) -> RawEvents:
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
        phase, category, name, process, thread, time_ns, duration_ns, args_offset, args_length = dense
        return RawEvents(
            phase=phase,
            category=category,
            name=name,
            process=process,
            thread=thread,
            time_ns=time_ns,
            duration_ns=duration_ns,
            args_offset=args_offset,
            args_length=args_length,
            fields=fields,
            categories=_strings(self._categories),
            names=_strings(self._names),
            labels=list(self._labels),
            texts=texts,
            skipped=skipped,
            first_skipped=first_skipped,
        )


def _codes(known: dict[str | UnsetType, int], texts: Sequence[str | UnsetType]) -> list[int]:
    try:
        return [known[text] for text in texts]  # Usually all of them have occurred before.
    except KeyError:
        return [known.setdefault(text, len(known) - 1) for text in texts]


def _strings(known: dict[str | UnsetType, int]) -> list[str]:
    return [text for text in known if not isinstance(text, UnsetType)]
