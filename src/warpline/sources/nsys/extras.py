"""Synchronisations, CUDA events, page faults, memory events and sampled counters."""

from __future__ import annotations

import polars as pl

from warpline.sources.nsys.columns import ReadingNotes, category, checked_spans, process, words
from warpline.sources.nsys.devices import Ordinals, gpu_numbers
from warpline.sources.nsys.tables import Tables

SYNCS = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
EVENTS = "CUPTI_ACTIVITY_KIND_CUDA_EVENT"
CPU_FAULTS = "CUDA_UM_CPU_PAGE_FAULT_EVENTS"
GPU_FAULTS = "CUDA_UM_GPU_PAGE_FAULT_EVENTS"
MEMORY = "CUDA_GPU_MEMORY_USAGE_EVENTS"
METRICS = "GPU_METRICS"

# ENUM_CUPTI_SYNC_TYPE
SYNC_KINDS = {1: "event", 2: "stream_wait_event", 3: "stream", 4: "context"}
# ENUM_CUDA_DEV_MEM_EVENT_OPER
FREED = 1
CPU_DEVICE_TYPE, CUDA_DEVICE_TYPE = 0, 1
"""torch's DeviceType, as the ``memory`` table counts."""
# ENUM_CUDA_MEM_KIND: pageable and pinned.
HOST_KINDS = [0, 1]


def read_syncs(database: Tables, ordinals: Ordinals, notes: ReadingNotes) -> pl.DataFrame:
    """The ``syncs`` table, by start time."""
    wanted = ["start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid"]
    frame = database.fetch(SYNCS, [*wanted, "syncType", "deprecatedSyncType", "eventId"])
    frame = checked_spans(frame, SYNCS, notes).with_columns(pl.coalesce("syncType", "deprecatedSyncType").alias("type"))
    return frame.select(
        words("type", SYNC_KINDS, "unknown").alias("kind"),
        ordinals.device("deviceId", "globalPid"),
        pl.col("contextId").alias("context"),
        pl.col("streamId").alias("stream"),
        pl.col("start").alias("start_ns"),
        pl.col("end").alias("end_ns"),
        process("globalPid").alias("process"),
        pl.col("correlationId").alias("correlation"),
        pl.col("eventId").alias("event_id"),
    ).sort("start_ns", maintain_order=True)


def read_events(database: Tables, ordinals: Ordinals) -> pl.DataFrame:
    """The ``events`` table: CUDA events recorded into a stream."""
    frame = database.fetch(EVENTS, ["deviceId", "contextId", "streamId", "correlationId", "globalPid", "eventId"])
    return frame.select(
        ordinals.device("deviceId", "globalPid"),
        pl.col("contextId").alias("context"),
        pl.col("streamId").alias("stream"),
        process("globalPid").alias("process"),
        pl.col("correlationId").alias("correlation"),
        pl.col("eventId").alias("event_id"),
    )


def read_faults(database: Tables, ordinals: Ordinals, notes: ReadingNotes) -> pl.DataFrame:
    """The ``faults`` table: a CPU fault is a moment, a GPU fault group has a duration."""
    host = database.fetch(CPU_FAULTS, ["start", "globalPid", "address"]).with_columns(pl.col("start").alias("end"))
    host = checked_spans(host, CPU_FAULTS, notes)
    wanted = ["start", "end", "globalPid", "deviceId", "address", "numberOfPageFaults"]
    device = checked_spans(database.fetch(GPU_FAULTS, wanted), GPU_FAULTS, notes)
    shared = [
        process("globalPid").alias("process"),
        pl.col("start").alias("start_ns"),
        pl.col("end").alias("end_ns"),
        pl.col("address"),
    ]
    parts = [
        host.select(category("cpu").alias("kind"), *shared, pl.lit(1, pl.Int64).alias("count")),
        device.select(
            category("gpu").alias("kind"),
            ordinals.device("deviceId", "globalPid"),
            *shared,
            pl.col("numberOfPageFaults").alias("count"),
        ),
    ]
    return pl.concat(parts, how="diagonal").sort("start_ns", maintain_order=True)


def read_memory(database: Tables, ordinals: Ordinals) -> pl.DataFrame:
    """The ``memory`` table: CUDA allocations and frees (``--cuda-memory-usage=true``)."""
    frame = database.fetch(
        MEMORY, ["start", "globalPid", "deviceId", "address", "bytes", "memKind", "memoryOperationType"]
    ).filter(pl.col("start").is_not_null())
    freed = pl.col("memoryOperationType") == FREED
    on_host = pl.col("memKind").is_in(HOST_KINDS).fill_null(False)
    return frame.select(
        pl.col("start").alias("time_ns"),
        pl.when(freed).then(-pl.col("bytes")).otherwise(pl.col("bytes")).alias("bytes"),
        pl.when(~on_host).then(ordinals.device("deviceId", "globalPid")).alias("device"),
        pl.when(on_host).then(CPU_DEVICE_TYPE).otherwise(CUDA_DEVICE_TYPE).cast(pl.Int32).alias("device_type"),
        pl.col("address"),
    ).sort("time_ns", maintain_order=True)


def read_counters(database: Tables, ordinals: Ordinals) -> pl.DataFrame:
    """The ``counters`` table: GPU metrics sampled by the hardware, if collected."""
    frame = database.fetch(METRICS, ["timestamp", "typeId", "metricId"], numbers=["value"])
    frame = frame.filter(pl.col("timestamp").is_not_null() & pl.col("value").is_not_null())
    known = database.fetch("TARGET_INFO_GPU_METRICS", ["typeId", "metricId"], ["metricName"])
    known = known.drop_nulls(["typeId", "metricId"]).unique(["typeId", "metricId"], keep="first")
    known = known.with_columns(pl.col("metricName").cast(pl.Categorical))
    frame = frame.join(known, on=["typeId", "metricId"], how="left", maintain_order="left")
    # The type id's low byte is the GPU.
    frame = frame.with_columns(pl.col("typeId").mod(256).alias("id"))
    frame = frame.join(gpu_numbers(database, ordinals), on="id", how="left", maintain_order="left")
    return frame.select(
        pl.col("timestamp").alias("time_ns"),
        pl.col("metricName").alias("name"),
        pl.coalesce("device", pl.col("id").cast(pl.Int32)).alias("device"),
        pl.col("value"),
    ).sort("time_ns", maintain_order=True)
