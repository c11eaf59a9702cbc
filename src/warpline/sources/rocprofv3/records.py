"""What rocprofv3 records, whichever file it writes, and the tables that follow from it.

A dispatch and a copy carry the correlation id of the call that started them. With HSA calls in the recording that call
is one of HSA, one layer below HIP, and its ancestor is the HIP call; the rows of HSA themselves repeat the time of HIP
and are left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import polars as pl
from msgspec import Meta, Struct, field

from warpline.errors import UnreadableFile
from warpline.sources.health import HealthEntry
from warpline.sources.nsys.columns import category, narrow
from warpline.sources.rows import ROCM_DESCRIPTOR, Rows, with_thread

SOURCE = "rocprofv3"
_PLACE = {"process": pl.Int64(), "start": pl.Int64(), "end": pl.Int64(), "correlation": pl.Int64()}
DISPATCHES: dict[str, pl.DataType] = {
    **_PLACE,
    **dict.fromkeys(("agent", "queue", "stream"), pl.Int64()),
    "name": pl.String(),
    # HSA counts work-items, not blocks.
    **dict.fromkeys(("items_x", "items_y", "items_z", "block_x", "block_y", "block_z"), pl.Int64()),
    **dict.fromkeys(("lds_bytes", "registers"), pl.Int64()),
}
COPIES: dict[str, pl.DataType] = {
    **_PLACE,
    **dict.fromkeys(("source_agent", "target_agent", "stream", "bytes"), pl.Int64()),
}
REGIONS: dict[str, pl.DataType] = {
    **_PLACE,
    "tid": pl.Int64(),
    "parent": pl.Int64(),
    "category": pl.String(),
    "name": pl.String(),
    "message": pl.String(),
}
HIP, HSA, MARKER = "(?i)hip", "(?i)hsa", "(?i)marker"
"""In the category of a region: `HIP_RUNTIME_API_EXT` of rocprofv3, `rocm_hip_api` of rocprof-sys."""
KERNEL_DRIVER = "^KFD_"
CALL = r"^(__)?hip[A-Z]"
ROCTX = r"^roctx[A-Z]"
STYLES = {"roctxMarkA": "mark", "roctxRangeStartA": "startend", "roctxProcessRangeA": "startend"}
COMMAND_WORD = re.compile(r"[^\s/]+(?=\s|$)")


GPU_TYPE = 2
"""ROCPROFILER_AGENT_TYPE_GPU."""
Number = Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
Count = Annotated[int, Meta(ge=0, lt=1 << 31)]


class Handle(Struct, frozen=True):
    """An id."""

    handle: Number = 0


class MemoryBank(Struct, frozen=True):
    """A memory of an agent."""

    size_in_bytes: Number = 0


class RocmAgent(Struct, frozen=True):
    """A CPU or a GPU, as rocprofiler describes it."""

    id: Handle = Handle()
    type: Number = 0
    logical_node_type_id: Number = -1
    """Position among the GPUs of the machine (or among its CPUs)."""
    name: str = ""
    product_name: str = ""
    cu_count: Count = 0
    wave_front_size: Count = 0
    max_waves_per_cu: Count = 0
    lds_size_in_kb: Count = 0
    max_engine_clk_fcompute: Count = 0
    """MHz."""
    mem_banks: list[MemoryBank] = []

    @property
    def gpu_index(self) -> int | None:
        """Position among the GPUs; None for a CPU."""
        return self.logical_node_type_id if self.type == GPU_TYPE and self.logical_node_type_id >= 0 else None

    def device(self) -> dict[str, int | str | None]:
        """Its row of the `devices` table."""
        facts: dict[str, int | str] = {
            "name": self.product_name or self.name,
            "sm_count": self.cu_count,
            "memory_bytes": min(sum(bank.size_in_bytes for bank in self.mem_banks), (1 << 63) - 1),
            "clock_hz": self.max_engine_clk_fcompute * 1_000_000,
            "warp_size": self.wave_front_size,
            "max_threads_per_sm": self.wave_front_size * self.max_waves_per_cu,
            "shared_bytes_per_sm": self.lds_size_in_kb * 1024,
        }
        return {key: value or None for key, value in facts.items()}


class ProcessRecording(Struct):
    """The records of one process."""

    dispatches: pl.DataFrame
    copies: pl.DataFrame
    regions: pl.DataFrame
    agents: dict[int, RocmAgent]
    """What is known of each CPU and GPU, by the id that dispatches and copies have."""
    node: str = ""
    """The machine; recordings of several machines can be merged into one file."""
    commands: dict[int, str] = field(default_factory=dict)
    """Command line of each process."""
    has_counters: bool = False


def rows_of(recordings: list[ProcessRecording], path: Path) -> Rows:
    """The tables of a file; its first time is zero."""
    devices = _devices(recordings)
    gpu = pl.concat([_gpu(recording, devices) for recording in recordings], how="diagonal")
    regions = pl.concat([recording.regions for recording in recordings])
    calls, ranges = _calls(regions), _ranges(regions)
    if not any(len(table) for table in (gpu, calls, ranges)):
        raise UnreadableFile(
            "empty-trace",
            f"{path} is of rocprofv3, but has no kernel, copy, HIP call or marker",
            "record it again: rocprofv3 --runtime-trace -- PROGRAM",
        )
    commands = {pid: command for recording in recordings for pid, command in recording.commands.items()}
    threads = _threads(pl.concat([calls.select("process", "tid"), ranges.select("process", "tid")]), commands)
    tables = {
        "gpu": gpu.sort("start_ns", maintain_order=True),
        "api": with_thread(calls, threads),
        "ranges": with_thread(ranges, threads).drop("process"),
        "threads": threads.drop("row"),
        "devices": _device_table(recordings, devices),
    }
    timed = ("gpu", "api", "ranges")
    firsts = [tables[name]["start_ns"].min() for name in timed]
    zero = min((first for first in firsts if isinstance(first, int)), default=0)
    for name in timed:
        tables[name] = tables[name].with_columns(pl.col("start_ns", "end_ns") - zero)
    return Rows(SOURCE, tables, {"producer": SOURCE, "epoch_ns": str(zero)}, _health(recordings))


def _devices(recordings: list[ProcessRecording]) -> dict[tuple[str, int], int]:
    """The ordinal of each GPU, by machine and id: as HIP counts them on one machine, counted on over several."""
    found = {
        (recording.node, index)
        for recording in recordings
        for agent in recording.agents.values()
        if (index := agent.gpu_index) is not None
    }
    several = len({node for node, _ in found}) > 1
    return {key: number if several else key[1] for number, key in enumerate(sorted(found))}


def _ordinals(recording: ProcessRecording, devices: Mapping[tuple[str, int], int]) -> dict[int, int]:
    return {
        number: devices[recording.node, index]
        for number, agent in recording.agents.items()
        if (index := agent.gpu_index) is not None
    }


def _gpu(recording: ProcessRecording, devices: Mapping[tuple[str, int], int]) -> pl.DataFrame:
    ordinals = _ordinals(recording, devices)
    calls = _call_of(recording.regions)
    kernels, copies = recording.dispatches, recording.copies
    # Recordings before ROCm 7 have no streams; then the hardware queue orders kernels.
    stream = "queue" if kernels["stream"].n_unique() < 2 <= kernels["queue"].n_unique() else "stream"
    source, target = _ordinal("source_agent", ordinals), _ordinal("target_agent", ordinals)
    direction = pl.format("{}to{}", _side(source), _side(target))
    copy_kind = pl.when(source.is_not_null() & target.is_not_null() & (source != target)).then(pl.lit("PtoP"))
    return pl.concat(
        [
            kernels.select(
                _kind_of_kernel().alias("kind"),
                pl.col("name").str.replace(ROCM_DESCRIPTOR, "").cast(pl.Categorical),
                _ordinal("agent", ordinals).cast(pl.Int32).alias("device"),
                pl.col(stream).alias("stream"),
                *_times(calls),
                *(_blocks(axis).alias(f"grid_{axis}") for axis in "xyz"),
                *(narrow(f"block_{axis}") for axis in "xyz"),
                narrow("registers"),
                pl.col("lds_bytes").alias("shared_bytes"),
            ),
            copies.with_columns(copy_kind.otherwise(direction).alias("copy_kind"))
            .filter(pl.col("copy_kind") != "HtoH")
            .select(
                category("memcpy").alias("kind"),
                pl.format("Memcpy {}", pl.col("copy_kind")).cast(pl.Categorical).alias("name"),
                # A copy between two GPUs counts where it arrives, as in rocpd's own view of busy time.
                pl.coalesce(target, source).cast(pl.Int32).alias("device"),
                "stream",
                *_times(calls),
                "bytes",
                pl.col("copy_kind").cast(pl.Categorical),
            ),
        ],
        how="diagonal",
    )


def _kind_of_kernel() -> pl.Expr:
    """HIP fills memory, and copies within a device, with kernels of its own."""
    name = pl.col("name")
    return (
        pl.when(name.str.starts_with("__amd_rocclr_fill"))
        .then(pl.lit("memset"))
        .when(name.str.starts_with("__amd_rocclr_copy"))
        .then(pl.lit("memcpy"))
        .otherwise(pl.lit("kernel"))
        .cast(pl.Categorical)
    )


def _ordinal(column: str, ordinals: Mapping[int, int]) -> pl.Expr:
    return pl.col(column).replace_strict(dict(ordinals), default=None, return_dtype=pl.Int64)


def _side(ordinal: pl.Expr) -> pl.Expr:
    return pl.when(ordinal.is_null()).then(pl.lit("H")).otherwise(pl.lit("D"))


def _blocks(axis: str) -> pl.Expr:
    items, block = pl.col(f"items_{axis}"), pl.col(f"block_{axis}")
    return ((items + block - 1) // pl.when(block > 0).then(block)).cast(pl.Int32, strict=False)


def _call_of(regions: pl.DataFrame) -> dict[int, int]:
    """The correlation id of the HIP call, by that of the HSA call within it."""
    below = regions.filter(pl.col("category").str.contains(HSA) & (pl.col("parent") > 0))
    return dict(zip(below["correlation"], below["parent"], strict=True))


def _times(calls: Mapping[int, int]) -> list[pl.Expr]:
    return [
        pl.col("start").alias("start_ns"),
        pl.col("end").alias("end_ns"),
        pl.col("process"),
        pl.col("correlation").replace(dict(calls)),
    ]


def _calls(regions: pl.DataFrame) -> pl.DataFrame:
    """The calls of HIP."""
    calls = regions.filter(pl.col("category").str.contains(HIP) & pl.col("name").str.contains(CALL))
    return calls.select(
        # hipGetDevicePropertiesR0600 is a version of hipGetDeviceProperties.
        pl.col("name").str.replace(r"R0\d{3}$", "").cast(pl.Categorical),
        category("runtime").alias("layer"),
        pl.col("start").alias("start_ns"),
        pl.col("end").alias("end_ns"),
        "process",
        "tid",
        "correlation",
    ).sort("start_ns", maintain_order=True)


def _ranges(regions: pl.DataFrame) -> pl.DataFrame:
    """Ranges of ROCTX, and what else ran on the CPU: calls of RCCL, regions of rocprof-sys."""
    kind, name = pl.col("category"), pl.col("name")
    is_marker = kind.str.contains(MARKER)
    others = regions.filter(
        ~kind.str.contains(f"{HIP}|{HSA}|{KERNEL_DRIVER}")
        & ~(is_marker & name.str.contains(ROCTX) & pl.col("message").is_null())
    )
    return others.select(
        pl.coalesce("message", "name").cast(pl.Categorical).alias("name"),
        pl.when(~is_marker).then(kind).cast(pl.Categorical).alias("domain"),
        name.replace_strict(STYLES, default="pushpop", return_dtype=pl.String).cast(pl.Categorical).alias("style"),
        pl.col("start").alias("start_ns"),
        pl.col("end").alias("end_ns"),
        "process",
        "tid",
    )


def _threads(pairs: pl.DataFrame, commands: Mapping[int, str]) -> pl.DataFrame:
    programs = {pid: found[0] for pid, command in commands.items() if (found := COMMAND_WORD.search(command))}
    program = pl.col("process").replace_strict(programs, default=None, return_dtype=pl.String)
    return pairs.unique(maintain_order=True).with_row_index("row").with_columns(program.alias("process_name"))


def _device_table(recordings: list[ProcessRecording], devices: Mapping[tuple[str, int], int]) -> pl.DataFrame:
    known = {
        device: recording.agents[number].device()
        for recording in recordings
        for number, device in _ordinals(recording, devices).items()
    }
    rows = [{"device": device, **facts} for device, facts in sorted(known.items())]
    return pl.DataFrame(rows, infer_schema_length=None)


def _health(recordings: list[ProcessRecording]) -> list[HealthEntry]:
    if not any(recording.has_counters for recording in recordings):
        return []
    message = "Hardware counters were recorded too: kernels ran one after the other, and longer than without counters."
    return [HealthEntry("counters-recorded", "warning", message)]
