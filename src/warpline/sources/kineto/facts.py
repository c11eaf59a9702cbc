"""Facts about the capture from the head and tail of a Kineto file: devices, versions, flags."""

from __future__ import annotations

from typing import Any

import polars as pl

from warpline.sources.kineto.events import RawEvents

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
    return facts
