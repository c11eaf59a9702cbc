"""What an nsys export may hold: every table and column that passes, and what its texts are. All else is dropped."""

from __future__ import annotations

from msgspec import Struct, field

KERNEL, CALL, RANGE, THREAD, PROCESS, MESSAGE, METRIC, DEVICE, CHIP, STREAM_FILE, STREAM, TIME = (
    *("kernel", "call", "range", "thread", "process", "message", "metric", "device", "chip", "stream_file", "stream"),
    "time",
)
"""What a text is: decides how it is cleaned."""


class ColumnRules(Struct, frozen=True):
    """The known columns of a table."""

    integers: tuple[str, ...] = ()
    texts: dict[str, str] = field(default_factory=dict)
    """Columns of text, and what it is."""
    strings: dict[str, str] = field(default_factory=dict)
    """Columns that refer to ``StringIds``, and what the text is."""
    numbers: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[str, ...]:
        """All of them."""
        return (*self.integers, *self.numbers, *self.texts, *self.strings)


_PLACE = ("start", "end", "deviceId", "contextId", "greenContextId", "streamId", "correlationId", "globalPid")
_CALL = ("start", "end", "eventClass", "globalTid", "correlationId", "returnValue", "nestingLevel", "overheadType")

TABLES: dict[str, ColumnRules] = {
    "CUPTI_ACTIVITY_KIND_KERNEL": ColumnRules(
        (
            *_PLACE,
            *(
                "launchType",
                "cacheConfig",
                "registersPerThread",
                "gridX",
                "gridY",
                "gridZ",
                "blockX",
                "blockY",
                "blockZ",
            ),
            *("staticSharedMemory", "dynamicSharedMemory", "localMemoryPerThread", "localMemoryTotal", "gridId"),
            *(
                "sharedMemoryExecuted",
                "graphNodeId",
                "graphId",
                "sharedMemoryLimitConfig",
                "clusterX",
                "clusterY",
                "clusterZ",
            ),
            *(
                "clusterSchedulingPolicy",
                "maxPotentialClusterSize",
                "maxActiveClusters",
                "sharedMemoryRequestedPercentage",
            ),
        ),
        strings={"demangledName": KERNEL, "shortName": KERNEL},
    ),
    "CUPTI_ACTIVITY_KIND_MEMCPY": ColumnRules(
        (
            *_PLACE,
            *("bytes", "copyKind", "srcKind", "dstKind", "srcDeviceId", "srcContextId", "dstDeviceId", "dstContextId"),
            *("migrationCause", "graphNodeId", "virtualAddress", "copyCount"),
        )
    ),
    "CUPTI_ACTIVITY_KIND_MEMSET": ColumnRules((*_PLACE, "value", "bytes", "graphNodeId", "memKind")),
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": ColumnRules((*_PLACE, "graphId", "graphExecId")),
    "CUPTI_ACTIVITY_KIND_MEM_DECOMPRESS": ColumnRules((*_PLACE, "sourceBytes")),
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": ColumnRules(
        (*_PLACE, "syncType", "deprecatedSyncType", "eventId", "eventSyncId")
    ),
    "CUPTI_ACTIVITY_KIND_CUDA_EVENT": ColumnRules((*_PLACE, "timestamp", "eventId", "eventSyncId")),
    "CUPTI_ACTIVITY_KIND_RUNTIME": ColumnRules(_CALL, strings={"nameId": CALL}),
    "CUPTI_ACTIVITY_KIND_OVERHEAD": ColumnRules(_CALL, strings={"nameId": CALL}),
    "PROFILER_OVERHEAD": ColumnRules(_CALL, strings={"nameId": CALL}),
    "OSRT_API": ColumnRules(_CALL, strings={"nameId": CALL}),
    "NVTX_EVENTS": ColumnRules(
        ("start", "end", "eventType", "rangeId", "category", "globalTid", "endGlobalTid", "domainId"),
        texts={"text": RANGE},
        strings={"textId": RANGE},
    ),
    "CUDA_UM_CPU_PAGE_FAULT_EVENTS": ColumnRules(("start", "globalPid", "address")),
    "CUDA_UM_GPU_PAGE_FAULT_EVENTS": ColumnRules(
        ("start", "end", "globalPid", "deviceId", "address", "numberOfPageFaults", "faultAccessType")
    ),
    "CUDA_GPU_MEMORY_USAGE_EVENTS": ColumnRules(
        (
            *("start", "globalPid", "deviceId", "contextId", "address", "bytes", "memKind", "memoryOperationType"),
            "correlationId",
        )
    ),
    "GPU_METRICS": ColumnRules(("rawTimestamp", "timestamp", "typeId", "metricId"), numbers=("value",)),
    "TARGET_INFO_GPU_METRICS": ColumnRules(
        ("typeId", "sourceId", "metricId"), texts={"typeName": MESSAGE, "metricName": METRIC}
    ),
    "ThreadNames": ColumnRules(("priority", "globalTid"), strings={"nameId": THREAD}),
    "PROCESSES": ColumnRules(("globalPid", "pid"), texts={"name": PROCESS}),
    "ProcessStreams": ColumnRules(("globalPid",), strings={"filenameId": STREAM_FILE, "contentId": STREAM}),
    "DIAGNOSTIC_EVENT": ColumnRules(
        ("timestamp", "timestampType", "source", "severity", "globalPid"), texts={"text": MESSAGE}
    ),
    "ANALYSIS_DETAILS": ColumnRules(("globalVid", "duration", "startTime", "stopTime")),
    "TARGET_INFO_SESSION_START_TIME": ColumnRules(("utcEpochNs",), texts={"utcTime": TIME}),
    "TARGET_INFO_CUDA_DEVICE": ColumnRules(("gpuId", "cudaId", "pid", "numMultiprocessors")),
    "TARGET_INFO_GPU": ColumnRules(
        (
            *(
                "id",
                "vmId",
                "isDiscrete",
                "l2CacheSize",
                "totalMemory",
                "memoryBandwidth",
                "clockRate",
                "smCount",
                "cuDevice",
            ),
            *("computeMajor", "computeMinor", "threadsPerWarp", "maxWarpsPerSm", "maxBlocksPerSm", "maxShmemPerBlock"),
            *(
                "maxShmemPerSm",
                "maxShmemPerBlockOptin",
                "maxRegistersPerSm",
                "maxRegistersPerBlock",
                "maxThreadsPerBlock",
            ),
            *("maxBlockDimX", "maxBlockDimY", "maxBlockDimZ", "maxGridDimX", "maxGridDimY", "maxGridDimZ"),
            *("constantMemory", "asyncEngines"),
        ),
        texts={"name": DEVICE, "chipName": CHIP},
    ),
}
"""The tables that warpline reads, with the columns that it reads and those beside them that are numbers."""
WIDE = frozenset(
    (
        *("start", "end", "timestamp", "rawTimestamp", "utcEpochNs", "startTime", "stopTime", "duration", "globalTid"),
        *(
            "globalPid",
            "endGlobalTid",
            "globalVid",
            "bytes",
            "sourceBytes",
            "address",
            "virtualAddress",
            "memoryBandwidth",
        ),
        *(
            "totalMemory",
            "clockRate",
            "graphNodeId",
            "rangeId",
            "eventSyncId",
            "gridId",
            "localMemoryTotal",
            "domainId",
        ),
        *("eventId", "returnValue", "graphId", "graphExecId", "value", "typeId"),
    )
)
"""Columns whose numbers may need more than 32 bits."""
PAIRS = ("META_DATA_EXPORT", "EXPORT_META_DATA", "META_DATA_CAPTURE", "TARGET_INFO_SYSTEM_ENV")
"""Tables of one fact a row: a name and a value."""
STRINGS = "StringIds"
