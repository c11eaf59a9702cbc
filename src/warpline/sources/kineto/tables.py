"""Events of a Kineto file -> the tables of a trace.

Kineto has changed its category names, id types and argument names many times since 2021; this module is
the one place that knows them. Nothing is linked here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from warpline.sources.health import HealthEntry
from warpline.sources.kineto.events import MISSING, Int64s, RawEvents, Sparse
from warpline.sources.kineto.facts import devices, meta
from warpline.sources.kineto.threads import Threads
from warpline.sources.rows import Rows

Rowset = npt.NDArray[np.int64]

# The table that each category goes to. Capitalised names are those of 2021.
CATEGORIES = {
    "kernel": "kernel",
    "Kernel": "kernel",
    "gpu_memcpy": "memcpy",
    "Memcpy": "memcpy",
    "gpu_memset": "memset",
    "Memset": "memset",
    "cuda_runtime": "runtime",
    "hip_runtime": "runtime",
    "xpu_runtime": "runtime",
    "privateuse1_runtime": "runtime",
    "Runtime": "runtime",
    "cuda_driver": "driver",
    "privateuse1_driver": "driver",
    "Driver": "driver",
    "cpu_op": "op",
    "Operator": "op",
    "user_annotation": "annotation",
    "gpu_user_annotation": "gpu_annotation",
    "python_function": "python",
    "Python": "python",
    "cuda_sync": "sync",
    "overhead": "overhead",
    "Trace": "ignored",
    "cuda_profiler_range": "ignored",
    "collective_comm": "ignored",
}
SYNC_KINDS = {
    "Stream Wait Event": "stream_wait_event",
    "Event Sync": "event",
    "Stream Sync": "stream",
    "Context Sync": "context",
}
STEP_NAME = r"^ProfilerStep#\d+"
FAR_NS = 500_000_000_000_000_000
"""Sixteen years: no recording spans them, and times within them can be added without overflow."""
LAST_NS = int(np.iinfo(np.int64).max)
MEMORY_NAME = r"^\[memory\]$"


@dataclass(slots=True)
class _Events:
    """Columns of the events of one kind, taken out of the file's."""

    raw: RawEvents
    rows: Rowset
    zero_ns: int

    def span(self) -> dict[str, pl.Series]:
        start = self.raw.time_ns[self.rows] - self.zero_ns
        length = self.raw.duration_ns[self.rows]
        return {"start_ns": pl.Series(start), "end_ns": pl.Series(start + np.maximum(length, 0))}

    def name(self) -> pl.Series:
        return interned(self.raw.names, self.raw.name[self.rows])

    def arguments(self) -> dict[str, pl.Series]:
        offset = pl.Series(self.raw.args_offset[self.rows])
        length = pl.Series(self.raw.args_length[self.rows])
        present = offset >= 0
        return {"args_offset": offset.set(~present, None), "args_length": length.set(~present, None)}

    def integer(self, *keys: str) -> pl.Series:
        """The argument under the first of these names that each event has."""
        values = np.full(len(self.rows), MISSING, np.int64)
        for key in reversed(keys):
            self._scatter(self.raw.fields.get(key), values)
        return nullable(values)

    def small(self, *keys: str) -> pl.Series:
        """The same as 32 bits; larger values, which no honest profile has, become null."""
        return self.integer(*keys).cast(pl.Int32, strict=False)

    def triple(self, key: str) -> list[pl.Series]:
        field = self.raw.fields.get(key)
        columns = []
        for axis in range(3):
            values = np.full(len(self.rows), MISSING, np.int64)
            if field is not None and len(field.rows):
                self._scatter(Sparse(field.rows, field.values[:, axis]), values)
            columns.append(nullable(values).cast(pl.Int32, strict=False))
        return columns

    def text(self, key: str) -> pl.Series:
        codes = np.full(len(self.rows), MISSING, np.int64)
        self._scatter(self.raw.fields.get(key), codes)
        return interned(self.raw.texts, np.where(codes == MISSING, -1, codes))

    def _scatter(self, field: Sparse | None, values: Int64s) -> None:
        if field is None or not len(field.rows) or not len(self.rows):
            return
        # Both are ascending: find each of the field's rows among ours.
        slot = np.searchsorted(self.rows, field.rows)
        slot[slot == len(self.rows)] = 0
        ours = self.rows[slot] == field.rows
        values[slot[ours]] = field.values[ours]


def interned(values: list[str], codes: npt.NDArray[np.integer]) -> pl.Series:
    """A categorical column from codes into a list; negative codes are null."""
    present = pl.Series(codes).cast(pl.Int64)
    index = present.set(present < 0, None).cast(pl.UInt32)
    return pl.Series(values, dtype=pl.String).cast(pl.Categorical).gather(index)


def nullable(values: Int64s) -> pl.Series:
    """MISSING becomes null."""
    series = pl.Series(values)
    return series.set(series == MISSING, None)


def tables(raw: RawEvents) -> Rows:
    """All tables that the events hold, with what was odd about them."""
    kinds = _kinds(raw)
    spans = raw.phase == ord("X")
    recorded = raw.time_ns != MISSING
    near, zero = _believable(raw, spans & recorded & (kinds != ""))
    timed = recorded & near
    threads = Threads(raw)

    def events(*wanted: str) -> _Events:
        return _Events(raw, np.flatnonzero(np.isin(kinds, wanted) & spans & timed), zero)

    steps_among_ops = _named_like(raw, events("op").rows, STEP_NAME)
    ops = _Events(raw, np.setdiff1d(events("op").rows, steps_among_ops), zero)
    annotations = _Events(raw, np.union1d(events("annotation").rows, steps_among_ops), zero)
    memory = _Events(raw, _named_like(raw, np.flatnonzero((raw.phase == ord("i")) & timed), MEMORY_NAME), zero)
    result = {
        "gpu": pl.concat([_gpu(events(kind), kind) for kind in ("kernel", "memcpy", "memset")]),
        "api": pl.concat([_api(events(layer), layer, threads) for layer in ("runtime", "driver")]),
        "ops": _ops(ops, threads),
        "ranges": pl.concat([_ranges(annotations, threads), _gpu_ranges(events("gpu_annotation"))], how="diagonal"),
        "python": _python(events("python"), threads),
        "syncs": _syncs(events("sync")),
        "memory": _memory(memory, threads),
        "overhead": _overhead(events("overhead"), threads),
        "devices": devices(raw.header),
    }
    result["threads"] = threads.table()
    health = _health(raw, kinds, spans & timed)
    impossible = int((spans & recorded & ~near & (kinds != "")).sum())
    if impossible:
        health.append(
            HealthEntry(
                "impossible-time",
                "error",
                f"{impossible:,} events claim to be decades away from the others, or as long, and are left out.",
            )
        )
    return Rows("kineto", result, meta(raw, zero), health)


def _kinds(raw: RawEvents) -> npt.NDArray[np.str_]:
    table = np.array([CATEGORIES.get(category, "") for category in raw.categories] + [""], dtype="U16")
    return table[raw.category]


def _believable(raw: RawEvents, usable: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[np.bool_], int]:
    """Which events lie within decades of the typical one, and the earliest of them: a flipped bit must not set zero."""
    times = raw.time_ns[usable]
    if not len(times):
        return np.zeros(len(raw), bool), 0
    centre = int(np.partition(times, len(times) // 2)[len(times) // 2])
    low, high = max(centre - FAR_NS, -LAST_NS), min(centre + FAR_NS, LAST_NS)
    near = (raw.time_ns >= low) & (raw.time_ns <= high) & (raw.duration_ns <= FAR_NS)
    chosen = raw.time_ns[near & usable]
    return near, int(chosen.min()) if len(chosen) else centre


def _named_like(raw: RawEvents, rows: Rowset, pattern: str) -> Rowset:
    wanted = pl.Series(raw.names, dtype=pl.String).str.contains(pattern).to_numpy()
    codes = raw.name[rows]
    if not len(wanted):
        return rows[:0]
    matching: Rowset = rows[(codes >= 0) & wanted[codes]]
    return matching


def _gpu(events: _Events, kind: str) -> pl.DataFrame:
    grid, block = events.triple("grid"), events.triple("block")
    name = events.name()
    copy = (
        pl.DataFrame({"name": name}).select(
            copy_kind=pl.col("name").cast(pl.String).str.extract(r"^Mem(?:cpy|set) ?(\wto\w)").cast(pl.Categorical),
            source=pl.col("name").cast(pl.String).str.extract(r"\((\w+) -> ").cast(pl.Categorical),
            target=pl.col("name").cast(pl.String).str.extract(r"(?:-> |Memset \()(\w+)\)").cast(pl.Categorical),
        )
        if kind != "kernel"
        else pl.DataFrame(
            {
                column: pl.Series([None] * len(name), dtype=pl.Categorical)
                for column in ("copy_kind", "source", "target")
            }
        )
    )
    return pl.DataFrame(
        {
            "kind": pl.Series([kind]).cast(pl.Categorical).gather(np.zeros(len(name), np.uint32)),
            "name": name,
            "device": events.small("device"),
            "context": events.integer("context"),
            "stream": events.integer("stream"),
            **events.span(),
            "correlation": events.integer("correlation"),
            "external_id": events.integer("External id", "external id"),
            "graph_id": events.integer("graph id"),
            "graph_node_id": events.integer("graph node id"),
            **{f"grid_{axis}": column for axis, column in zip("xyz", grid, strict=True)},
            **{f"block_{axis}": column for axis, column in zip("xyz", block, strict=True)},
            "registers": events.small("registers per thread"),
            "shared_bytes": events.integer("shared memory"),
            "bytes": events.integer("bytes"),
            "copy_kind": copy["copy_kind"],
            "source_memory": copy["source"],
            "target_memory": copy["target"],
            **events.arguments(),
        }
    )


def _api(events: _Events, layer: str, threads: Threads) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "name": events.name(),
            "layer": pl.Series([layer]).cast(pl.Categorical).gather(np.zeros(len(events.rows), np.uint32)),
            **threads.columns(events.rows),
            **events.span(),
            "correlation": events.integer("correlation"),
            "external_id": events.integer("External id", "external id"),
            **events.arguments(),
        }
    )


def _ops(events: _Events, threads: Threads) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "name": events.name(),
            "thread": threads.codes(events.rows),
            **events.span(),
            "external_id": events.integer("External id", "external id"),
            "shapes": events.text("Input Dims"),
            "dtypes": events.text("Input type"),
            "strides": events.text("Input Strides"),
            "concrete": events.text("Concrete Inputs"),
            "sequence": events.integer("Sequence number"),
            "forward_thread": events.integer("Fwd thread id"),
            "stack": events.text("Call stack"),
            **events.arguments(),
        }
    )


def _ranges(events: _Events, threads: Threads) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "name": events.name(),
            "style": pl.Series(["annotation"]).cast(pl.Categorical).gather(np.zeros(len(events.rows), np.uint32)),
            "thread": threads.codes(events.rows),
            **events.span(),
            "external_id": events.integer("External id", "external id"),
            **events.arguments(),
        }
    )


def _gpu_ranges(events: _Events) -> pl.DataFrame:
    raw = events.raw
    span = events.span()
    return pl.DataFrame(
        {
            "name": events.name(),
            "style": pl.Series(["gpu"]).cast(pl.Categorical).gather(np.zeros(len(events.rows), np.uint32)),
            **span,
            "gpu_start_ns": span["start_ns"],
            "gpu_end_ns": span["end_ns"],
            "external_id": events.integer("External id", "external id"),
            "device": label_numbers(raw, raw.process[events.rows]).cast(pl.Int32, strict=False),
            "stream": label_numbers(raw, raw.thread[events.rows]),
        }
    )


def label_numbers(raw: RawEvents, codes: npt.NDArray[np.int32]) -> pl.Series:
    """Process or thread labels as numbers, where they are numbers."""
    labels = pl.Series([label.strip('"').removeprefix("stream ") for label in raw.labels], dtype=pl.String)
    index = pl.Series(codes.astype(np.int64))
    return labels.cast(pl.Int64, strict=False).gather(index.set(index < 0, None).cast(pl.UInt32))


def _python(events: _Events, threads: Threads) -> pl.DataFrame:
    return pl.DataFrame({"name": events.name(), "thread": threads.codes(events.rows), **events.span()})


def _syncs(events: _Events) -> pl.DataFrame:
    kind = events.name().cast(pl.String).replace_strict(SYNC_KINDS, default=None, return_dtype=pl.String)
    return pl.DataFrame(
        {
            "kind": kind.cast(pl.Categorical),
            "device": events.small("device"),
            "context": events.integer("context"),
            "stream": events.integer("stream"),
            **events.span(),
            "correlation": events.integer("correlation"),
            "event_id": events.integer("wait_on_cuda_event_id"),
        }
    )


def _memory(events: _Events, threads: Threads) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "thread": threads.codes(events.rows),
            "time_ns": pl.Series(events.raw.time_ns[events.rows] - events.zero_ns),
            "bytes": events.integer("Bytes"),
            "device": events.small("Device Id"),
            "device_type": events.small("Device Type"),
            "address": events.integer("Addr"),
            "allocated_bytes": events.integer("Total Allocated"),
            "reserved_bytes": events.integer("Total Reserved"),
        }
    )


def _overhead(events: _Events, threads: Threads) -> pl.DataFrame:
    return pl.DataFrame({"name": events.name(), "thread": threads.codes(events.rows), **events.span()})


def _health(raw: RawEvents, kinds: npt.NDArray[np.str_], spans: npt.NDArray[np.bool_]) -> list[HealthEntry]:
    entries = [HealthEntry("damaged-file", "error", note) for note in raw.notes]
    if raw.truncated:
        entries.append(
            HealthEntry(
                "truncated-file",
                "error",
                f"The file ends in the middle of its events, after {raw.bytes_read:,} bytes; "
                f"the {len(raw):,} events before the damage are used.",
            )
        )
    if raw.skipped:
        entries.append(
            HealthEntry(
                "malformed-events",
                "warning",
                f"{raw.skipped:,} of {raw.skipped + len(raw):,} events are not legal JSON and were skipped, the first "
                f"at byte {raw.first_skipped:,} (torch up to 2.13 writes unescaped quotes of record_function names).",
            )
        )
    negative = int((spans & (raw.duration_ns < 0) & (raw.duration_ns != MISSING)).sum())
    if negative:
        entries.append(
            HealthEntry(
                "negative-duration",
                "warning",
                f"{negative:,} events have a negative duration and are counted as empty.",
            )
        )
    unknown = np.unique(raw.category[spans & (kinds == "") & (raw.category >= 0)])
    if len(unknown):
        names = ", ".join(sorted(raw.categories[code] for code in unknown)[:5])
        count = int((spans & (kinds == "") & (raw.category >= 0)).sum())
        entries.append(
            HealthEntry(
                "unknown-category",
                "info",
                f"{count:,} events of categories that warpline does not know ({names}) are left out.",
            )
        )
    return entries
