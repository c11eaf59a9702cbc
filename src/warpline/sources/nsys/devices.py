"""The devices of a capture, and the device number of each row."""

from __future__ import annotations

import polars as pl
from msgspec import Struct

from warpline.sources.nsys.columns import ReadingNotes, process
from warpline.sources.nsys.tables import Tables


class Ordinals(Struct, frozen=True):
    """Device numbers. CUDA numbers devices per process; if two processes disagree, the physical number is used."""

    physical: pl.DataFrame
    """Columns ``process``, ``cuda`` and ``gpu``; empty if the CUDA number can be used."""

    def device(self, column: str, owner: str) -> pl.Expr:
        """The device of each row, as ``device``."""
        cuda = pl.col(column)
        if self.physical.is_empty():
            return cuda.cast(pl.Int32, strict=False).alias("device")
        pairs = self.physical["process"] * MAX_DEVICES + self.physical["cuda"]
        key = pl.when(cuda.is_between(0, MAX_DEVICES - 1)).then(process(owner) * MAX_DEVICES + cuda)
        found = key.replace_strict(pairs, self.physical["gpu"], default=cuda, return_dtype=pl.Int64)
        return found.cast(pl.Int32, strict=False).alias("device")


MAX_DEVICES = 1 << 16
"""More than any machine has; combines process and device into one number."""


def read_ordinals(database: Tables, notes: ReadingNotes) -> Ordinals:
    """How CUDA's device numbers map to the GPUs (recorded since schema 3.17)."""
    frame = database.fetch("TARGET_INFO_CUDA_DEVICE", ["pid", "cudaId", "gpuId"]).drop_nulls()
    frame = frame.filter(pl.col("cudaId").is_between(0, MAX_DEVICES - 1), pl.col("pid").is_between(0, 1 << 24))
    frame = frame.unique(["pid", "cudaId"], keep="first", maintain_order=True)
    pairs = frame.select("cudaId", "gpuId").unique()
    one_to_one = pairs["cudaId"].n_unique() == pairs.height == pairs["gpuId"].n_unique()
    notes.renumbered_devices = not one_to_one
    physical = frame if notes.renumbered_devices else frame.clear()
    return Ordinals(physical.rename({"pid": "process", "cudaId": "cuda", "gpuId": "gpu"}))


_FACTS = {
    "computeMajor": "compute_major",
    "computeMinor": "compute_minor",
    "smCount": "sm_count",
    "totalMemory": "memory_bytes",
    "memoryBandwidth": "memory_bandwidth",
    "l2CacheSize": "l2_bytes",
    "clockRate": "clock_hz",
    "threadsPerWarp": "warp_size",
    "maxRegistersPerSm": "registers_per_sm",
    "maxShmemPerSm": "shared_bytes_per_sm",
}
_NARROW = {"compute_major", "compute_minor", "sm_count", "warp_size"}


def gpu_numbers(database: Tables, ordinals: Ordinals) -> pl.DataFrame:
    """The number that the rows use for each GPU: columns ``id`` (nsys's own) and ``device``."""
    frame = database.fetch("TARGET_INFO_GPU", ["id", "cuDevice"]).drop_nulls("id").unique("id", keep="first")
    known = database.fetch("TARGET_INFO_CUDA_DEVICE", ["cudaId", "gpuId"]).drop_nulls().unique("gpuId", keep="first")
    # A GPU that the program saw keeps its number; one hidden by CUDA_VISIBLE_DEVICES must not take it.
    frame = frame.join(known, left_on="id", right_on="gpuId", how="left", maintain_order="left").sort(
        "cudaId", "id", nulls_last=True
    )
    # GPU ids follow the bus and cuDevice follows CUDA's own order: they differ on many machines.
    number = pl.coalesce("cudaId", "cuDevice", "id") if ordinals.physical.is_empty() else pl.col("id")
    frame = frame.select("id", number.cast(pl.Int32, strict=False).alias("device"))
    return frame.unique("device", keep="first", maintain_order=True)


_OLD_FACTS = {
    "computeCapabilityMajor": "computeMajor",
    "computeCapabilityMinor": "computeMinor",
    "numMultiprocessors": "smCount",
    "globalMemorySize": "totalMemory",
    "globalMemoryBandwidth": "memoryBandwidth",
    "l2CacheSize": "l2CacheSize",
    "coreClockRate": "clockRate",
    "numThreadsPerWarp": "threadsPerWarp",
    "maxRegistersPerMultiprocessor": "maxRegistersPerSm",
    "maxSharedMemoryPerMultiprocessor": "maxShmemPerSm",
    "maxWarpsPerMultiprocessor": "maxWarpsPerSm",
}
"""Columns of TARGET_INFO_CUDA_GPU, which had the facts until TARGET_INFO_GPU got them …"""
_OLD_IN_THOUSANDS = ("memoryBandwidth", "clockRate")
"""… and those in thousands of bytes or Hz."""


def _facts(database: Tables, ordinals: Ordinals) -> pl.DataFrame:
    """Name and facts of each GPU with its number; in exports of 2021, one row for each process."""
    frame = database.fetch("TARGET_INFO_GPU", ["id", "maxWarpsPerSm", *_FACTS], ["name"])
    if frame["id"].count():
        return frame.join(gpu_numbers(database, ordinals), on="id", how="left", maintain_order="left")
    old = database.fetch("TARGET_INFO_CUDA_GPU", ["deviceId", *_OLD_FACTS], ["name"])
    old = old.rename({**_OLD_FACTS, "deviceId": "device"}).with_columns(pl.col(_OLD_IN_THOUSANDS) * 1000)
    return old.with_columns(pl.col("device").cast(pl.Int32, strict=False))


def read_devices(database: Tables, ordinals: Ordinals) -> pl.DataFrame:
    """The ``devices`` table: every GPU of the machine, with the number that the rows use."""
    frame = _facts(database, ordinals)
    warps, lanes = pl.col("maxWarpsPerSm"), pl.col("threadsPerWarp")
    return (
        frame.select(
            "device",
            "name",
            # Zero means "not queried" in old exports and containers.
            *(
                pl.col(old).replace(0, None).cast(pl.Int32 if new in _NARROW else pl.Int64, strict=False).alias(new)
                for old, new in _FACTS.items()
                if new != "compute_minor"
            ),
            pl.col("computeMinor").cast(pl.Int32, strict=False).alias("compute_minor"),
            (warps * lanes).replace(0, None).cast(pl.Int32, strict=False).alias("max_threads_per_sm"),
        )
        .filter(pl.col("device").is_not_null())
        .unique("device", keep="first")
        .sort("device")
    )
