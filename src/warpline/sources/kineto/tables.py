"""Converts the events of a Kineto file into the tables of a trace.

Kineto has changed its category names, id types and argument names many times since 2021; this module is
the one place that knows them. Nothing is linked here.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from msgspec import Struct

from warpline.library_names import TORCH_RANGE
from warpline.sources.health import HealthEntry
from warpline.sources.kineto.events import MISSING, RawEvents
from warpline.sources.kineto.selection import FileEvents, Mask, Selection, one_after_the_other
from warpline.sources.kineto.threads import KinetoThreads
from warpline.sources.rows import FAR_NS, ROCM_DESCRIPTOR, Rows
from warpline.units import several

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
KINDS = tuple(dict.fromkeys(CATEGORIES.values()))
UNKNOWN = -1
SYNC_KINDS = {
    "Stream Wait Event": "stream_wait_event",
    "Event Sync": "event",
    "Stream Sync": "stream",
    "Context Sync": "context",
}
LAST_NS = int(np.iinfo(np.int64).max)
MEMORY_NAME = r"^\[memory\]$"
_DEVICE_FIELDS = {
    "device": ("id",),
    "name": ("name",),
    "compute_major": ("computeMajor",),
    "compute_minor": ("computeMinor",),
    "sm_count": ("numSms",),
    "memory_bytes": ("totalGlobalMem",),
    "warp_size": ("warpSize",),
    "max_threads_per_sm": ("maxThreadsPerMultiprocessor",),
    "registers_per_sm": ("regsPerMultiprocessor",),
    "shared_bytes_per_sm": ("sharedMemPerMultiprocessor", "maxSharedMemoryPerMultiProcessor"),
}
LATEST_NS = 2**62
"""A moment beyond the year 2116 since 1970; sums of two such still fit."""
_SMALL = {"device", "compute_major", "compute_minor", "sm_count", "warp_size", "max_threads_per_sm"}
_FLAGS = ("record_shapes", "with_stack", "profile_memory", "with_flops", "with_modules")
_VERSIONS = (
    "cuda_runtime_version",
    "cuda_driver_version",
    "cupti_version",
    "hip_runtime_version",
    "hip_driver_version",
)


class _Parts(Struct, frozen=True):
    """The events of each table, and what is known of them."""

    events: dict[str, Selection]
    kind: pl.Series
    """Of the GPU's events: kernels first."""
    kernels: int
    layer: pl.Series
    """Of the API calls."""
    zero_ns: int
    """The earliest time."""
    health: list[HealthEntry]


def tables(raw: RawEvents) -> Rows:
    """All tables of the events, with health entries."""
    parts, threads = _parts(raw), KinetoThreads(raw)
    events = parts.events
    thread_of = {name: threads.codes(events[name]) for name in ("api", "ops", "ranges")}
    makers: dict[str, Callable[[Selection], pl.DataFrame]] = {
        "api": lambda calls: _api(calls, parts.layer, thread_of["api"], threads),
        "ops": lambda ops: _ops(ops, thread_of["ops"]),
        "ranges": lambda annotations: _ranges(annotations, thread_of["ranges"]),
        "gpu": lambda work: _gpu(work, parts.kind, parts.kernels),
        "python": lambda frames: _named_spans(frames, threads),
        "memory": lambda moments: _memory(moments, threads),
        "overhead": lambda spans: _named_spans(spans, threads),
        "syncs": _syncs,
        "gpu ranges": lambda annotations: _gpu_ranges(annotations, raw),
    }

    result = {name: makers[name](chosen) for name, chosen in events.items() if len(chosen)}
    ranges = [result.pop(name) for name in ("ranges", "gpu ranges") if name in result]
    if ranges:
        result["ranges"] = pl.concat(ranges, how="diagonal")
    result |= {"devices": devices(raw.header), "threads": threads.table()}
    return Rows("kineto", result, meta(raw, parts.zero_ns), parts.health)


def _parts(raw: RawEvents) -> _Parts:
    kinds = _kinds(raw)
    spans = raw.phase == ord("X")
    recorded = raw.time_ns != MISSING
    known = kinds != UNKNOWN
    near, zero = _believable(raw, spans & recorded & known)
    timed = recorded & near
    spans_in_time = spans & timed
    source = FileEvents(raw, zero)

    kinds[~spans_in_time] = UNKNOWN

    def events(kind: str) -> Selection:
        return source.select(kinds == KINDS.index(kind))

    # In 2021 torch's own ranges were operators.
    markers, ops = source.named(kinds == KINDS.index("op"), TORCH_RANGE)
    calls, layer = one_after_the_other({name: events(name) for name in ("runtime", "driver")})
    kernels = events("kernel")
    work, kind = one_after_the_other({"kernel": kernels, "memcpy": events("memcpy"), "memset": events("memset")})
    chosen = {
        "api": calls,
        "ops": ops,
        "ranges": events("annotation").joined(markers),
        "gpu": work,
        "python": events("python"),
        "memory": source.named((raw.phase == ord("i")) & timed, MEMORY_NAME)[0],
        "overhead": events("overhead"),
        "syncs": events("sync"),
        "gpu ranges": events("gpu_annotation"),
    }
    health = _health(raw, known, spans_in_time)
    impossible = int((spans & recorded & ~near & known).sum())
    if impossible:
        health.append(
            HealthEntry(
                "impossible-time",
                "error",
                f"Left out: {several(impossible, 'event')}, decades away from the others, or decades long.",
            )
        )
    timeless = int((spans & ~recorded & known).sum())
    if timeless:
        health.append(
            HealthEntry(
                "impossible-time",
                "error",
                f"Left out: {several(timeless, 'event')} without a time, or with one that does not fit in 64 bits.",
            )
        )
    return _Parts(chosen, kind, len(kernels), layer, zero, health)


def _kinds(raw: RawEvents) -> npt.NDArray[np.int8]:
    """Code of each event's kind."""
    codes = [KINDS.index(CATEGORIES[name]) if name in CATEGORIES else UNKNOWN for name in raw.categories]
    return np.array([*codes, UNKNOWN], np.int8).take(raw.category)


def _believable(raw: RawEvents, usable: Mask) -> tuple[Mask, int]:
    """Events within sixteen years of the typical time, and the earliest of them, so that a flipped bit does not set the
    start of the trace."""
    times = raw.time_ns[usable]
    if not len(times):
        return np.zeros(len(raw), bool), 0
    # If all times lie within that range, any time is typical; else the median is.
    first, middle = int(times.min()), len(times) // 2
    close = int(times.max()) - first <= FAR_NS
    centre = int(times[middle] if close else np.partition(times, middle)[middle])
    low, high = max(centre - FAR_NS, -LAST_NS), min(centre + FAR_NS, LAST_NS)
    near = (raw.time_ns >= low) & (raw.time_ns <= high) & (raw.duration_ns <= FAR_NS)
    if near.all():
        return near, first
    chosen = raw.time_ns[near & usable]
    return near, int(chosen.min()) if len(chosen) else centre


def _frame(columns: dict[str, pl.Series | None]) -> pl.DataFrame:
    """The columns that the file has; the others are null, and take no memory."""
    return pl.DataFrame({name: column for name, column in columns.items() if column is not None})


def _gpu(events: Selection, kind: pl.Series, kernels: int) -> pl.DataFrame:
    return _frame(
        {
            "kind": kind,
            "name": events.name(ROCM_DESCRIPTOR),
            "device": events.small("device"),
            "context": events.integer("context"),
            "stream": events.integer("stream"),
            **events.span,
            "correlation": events.integer("correlation"),
            "external_id": events.integer("External id", "external id"),
            "graph_id": events.integer("graph id"),
            "graph_node_id": events.integer("graph node id"),
            **events.triple("grid"),
            **events.triple("block"),
            "registers": events.small("registers per thread"),
            "shared_bytes": events.integer("shared memory"),
            "bytes": events.integer("bytes"),
            # The names of copies contain their direction: `Memcpy HtoD (Pinned -> Device)`.
            "copy_kind": events.from_name(_copy_kind, kernels),
            "source_memory": events.from_name(lambda names: names.str.extract(r"\((\w+) -> "), kernels),
            "target_memory": events.from_name(lambda names: names.str.extract(r"(?:-> |Memset \()(\w+)\)"), kernels),
            **events.arguments,
        }
    )


def _copy_kind(names: pl.Series) -> pl.Series:
    """The direction of each copy; XLA writes `MemcpyH2D`."""
    return names.str.extract(r"^Memcpy ?([A-Z](?:to|2)[A-Z])").str.replace("2", "to", literal=True)


def _api(events: Selection, layer: pl.Series, thread: pl.Series, threads: KinetoThreads) -> pl.DataFrame:
    return _frame(
        {
            "name": events.name(),
            "layer": layer,
            "thread": thread,
            "process": threads.processes(events.rows),
            **events.span,
            "correlation": events.integer("correlation"),
            "external_id": events.integer("External id", "external id"),
            **events.arguments,
        }
    )


def _ops(events: Selection, thread: pl.Series) -> pl.DataFrame:
    return _frame(
        {
            "name": events.name(),
            "thread": thread,
            **events.span,
            "external_id": events.integer("External id", "external id"),
            "shapes": events.text("Input Dims"),
            "dtypes": events.text("Input type"),
            "strides": events.text("Input Strides"),
            "concrete": events.text("Concrete Inputs"),
            "sequence": events.integer("Sequence number"),
            "forward_thread": events.integer("Fwd thread id"),
            "stack": events.text("Call stack"),
            **events.arguments,
        }
    )


def _ranges(events: Selection, thread: pl.Series) -> pl.DataFrame:
    return _frame(
        {
            "name": events.name(),
            "style": events.constant("annotation"),
            "thread": thread,
            **events.span,
            "external_id": events.integer("External id", "external id"),
            **events.arguments,
        }
    )


def _gpu_ranges(events: Selection, raw: RawEvents) -> pl.DataFrame:
    span = events.span
    return _frame(
        {
            "name": events.name(),
            "style": events.constant("gpu"),
            **span,
            "gpu_start_ns": span["start_ns"],
            "gpu_end_ns": span["end_ns"],
            "external_id": events.integer("External id", "external id"),
            "device": events.label(raw.process).cast(pl.Int32, strict=False),
            "stream": events.label(raw.thread),
        }
    )


def _syncs(events: Selection) -> pl.DataFrame:
    return _frame(
        {
            "kind": events.from_name(
                lambda names: names.replace_strict(SYNC_KINDS, default=None, return_dtype=pl.String)
            ),
            "device": events.small("device"),
            "context": events.integer("context"),
            "stream": events.integer("stream"),
            **events.span,
            "correlation": events.integer("correlation"),
            "event_id": events.integer("wait_on_cuda_event_id"),
        }
    )


def _memory(events: Selection, threads: KinetoThreads) -> pl.DataFrame:
    return _frame(
        {
            "thread": threads.codes(events),
            "time_ns": events.time(),
            "bytes": events.integer("Bytes"),
            "device": events.small("Device Id"),
            "device_type": events.small("Device Type"),
            "address": events.integer("Addr"),
            "allocated_bytes": events.integer("Total Allocated"),
            "reserved_bytes": events.integer("Total Reserved"),
        }
    )


def _named_spans(events: Selection, threads: KinetoThreads) -> pl.DataFrame:
    return pl.DataFrame({"name": events.name(), "thread": threads.codes(events), **events.span})


def _health(raw: RawEvents, known: Mask, spans: Mask) -> list[HealthEntry]:
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
    if malformed := raw.skipped + raw.malformed_before:
        where = f", the first at byte {raw.first_skipped:,}" if raw.skipped else " before this file was scrubbed"
        entries.append(
            HealthEntry(
                "malformed-events",
                "warning",
                f"{malformed:,} of {raw.skipped + len(raw):,} events are invalid JSON and were skipped{where} "
                "(torch up to 2.13 does not escape quotes in record_function names).",
            )
        )
    negative = int((spans & (raw.duration_ns < 0) & (raw.duration_ns != MISSING)).sum())
    if negative:
        entries.append(
            HealthEntry(
                "negative-duration",
                "warning",
                f"{several(negative, 'event')} of negative duration: taken as empty.",
            )
        )
    unknown = np.unique(raw.category[spans & ~known])
    if len(unknown):
        names = ", ".join(sorted(raw.categories[code] if code >= 0 else "none" for code in unknown)[:5])
        count = int((spans & ~known).sum())
        entries.append(
            HealthEntry(
                "unknown-category",
                "info",
                f"Left out: {several(count, 'event')} of unknown categories ({names}).",
            )
        )
    return entries


def devices(header: dict[str, Any]) -> pl.DataFrame:
    """The devices that the profiler saw, including idle ones."""
    listed = header.get("deviceProperties")
    records = []
    for entry in listed if isinstance(listed, list) else []:
        if isinstance(entry, dict):
            record = {column: _first(entry, keys, column) for column, keys in _DEVICE_FIELDS.items()}
            records.append(record)
    schema: dict[str, Any] = {
        column: pl.String if column == "name" else pl.Int32 if column in _SMALL else pl.Int64
        for column in _DEVICE_FIELDS
    }
    return pl.DataFrame(records, schema=schema, strict=False)


def _first(entry: dict[str, Any], keys: tuple[str, ...], column: str) -> Any:
    for key in keys:
        value = entry.get(key)
        if column == "name":
            return value if isinstance(value, str) and value else None
        limit = 2**31 if column in _SMALL else 2**63
        if isinstance(value, int) and not isinstance(value, bool) and -limit <= value < limit:
            return value
    return None


def meta(raw: RawEvents, zero_ns: int) -> dict[str, str]:
    """Known facts by name."""
    header = raw.header
    facts = {"scanner": raw.scanner, "events": str(len(raw)), "text_bytes": str(raw.bytes_read)}
    base = header.get("baseTimeNanoseconds")
    facts["epoch_ns"] = str(zero_ns + (base if isinstance(base, int) and abs(base) < LATEST_NS else 0))
    for key in (*_FLAGS, *_VERSIONS):
        if isinstance(header.get(key), int | str):
            facts[key] = str(header[key])
    world = header.get("distributedInfo")
    if isinstance(world, dict):
        for key in ("rank", "world_size", "backend"):
            if isinstance(world.get(key), int | str):
                facts[key] = str(world[key])
        groups = _process_groups(world.get("pg_config"))
        if groups:
            facts["process_groups"] = json.dumps(groups)
    return facts


def _process_groups(config: Any) -> dict[str, list[int]]:
    """The ranks of each process group by its name, which each process counts for itself."""
    entries = [entry for entry in config if isinstance(entry, dict)] if isinstance(config, list) else []
    found: dict[str, list[int]] = {}
    for entry in entries:
        name, ranks = entry.get("pg_name"), entry.get("ranks")
        if (
            isinstance(name, int | str)
            and isinstance(ranks, list)
            and all(type(rank) is int and 0 <= rank < 1 << 20 for rank in ranks)
        ):
            found[str(name)] = ranks
    return found
