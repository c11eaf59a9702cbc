"""The tables of a trace as typed properties, so that `dir`, an editor and mypy know them."""

from __future__ import annotations

import polars as pl


class TableProperties:
    """A property for each table of `warpline.trace.schema.TABLES`, except `steps`."""

    __slots__ = ()

    def table(self, name: str) -> pl.DataFrame:
        """A table by name."""
        raise NotImplementedError

    @property
    def gpu(self) -> pl.DataFrame:
        """Kernels, copies, memsets and graphs that a device ran, by start time."""
        return self.table("gpu")

    @property
    def api(self) -> pl.DataFrame:
        """CUDA runtime and driver calls (HIP likewise), by start time."""
        return self.table("api")

    @property
    def ops(self) -> pl.DataFrame:
        """Framework ops on the CPU, by thread and start time."""
        return self.table("ops")

    @property
    def ranges(self) -> pl.DataFrame:
        """NVTX ranges, record_function annotations and profiler steps, by thread and start time."""
        return self.table("ranges")

    @property
    def python(self) -> pl.DataFrame:
        """Python frames (recorded with with_stack=True), by thread and start time."""
        return self.table("python")

    @property
    def syncs(self) -> pl.DataFrame:
        """Synchronization records of the GPU."""
        return self.table("syncs")

    @property
    def events(self) -> pl.DataFrame:
        """CUDA events recorded into a stream."""
        return self.table("events")

    @property
    def osrt(self) -> pl.DataFrame:
        """OS runtime calls (nsys)."""
        return self.table("osrt")

    @property
    def memory(self) -> pl.DataFrame:
        """Allocations and frees."""
        return self.table("memory")

    @property
    def overhead(self) -> pl.DataFrame:
        """Profiler overhead, and lazy loading."""
        return self.table("overhead")

    @property
    def faults(self) -> pl.DataFrame:
        """Page faults of unified memory (nsys)."""
        return self.table("faults")

    @property
    def dataflow(self) -> pl.DataFrame:
        """Tensors that ops took and made in a few more steps, without times (`warpline run`)."""
        return self.table("dataflow")

    @property
    def counters(self) -> pl.DataFrame:
        """Sampled counters (GPU metrics of nsys)."""
        return self.table("counters")

    @property
    def threads(self) -> pl.DataFrame:
        """Threads of all processes."""
        return self.table("threads")

    @property
    def devices(self) -> pl.DataFrame:
        """Devices as the capture describes them."""
        return self.table("devices")

    @property
    def long_names(self) -> pl.DataFrame:
        """Names too long for a column: the shortened ones, as the other tables have them, and the whole of each."""
        return self.table("long_names")

    @property
    def meta(self) -> pl.DataFrame:
        """Facts about the file and the capture."""
        return self.table("meta")

    @property
    def health(self) -> pl.DataFrame:
        """What is wrong or doubtful about the profile."""
        return self.table("health")
