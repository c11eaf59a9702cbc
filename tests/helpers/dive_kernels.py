"""Kernels of Nsight Compute made by hand: a base without a flaw, and what a test changes in it."""

from __future__ import annotations

from warpline.dive.metrics import METRICS, STALLS
from warpline.sources.ncu.model import KernelReport, Reading

UNITS = {"duration": "ns", "dram_read": "byte", "dram_write": "byte"}

# A copy of 256 MB: 2^21 requests of 4 sectors each way, all bytes used, DRAM at half of its peak.
COPY = {
    "duration": 100_000.0,
    "cycles": 200_000.0,
    "active_avg": 198_000.0,
    "active_max": 200_000.0,
    "sm": 20.0,
    "memory": 50.0,
    "dram": 50.0,
    "l2": 40.0,
    "l1": 20.0,
    "tensor": 0.0,
    "fma": 10.0,
    "fp64": 0.0,
    "alu": 10.0,
    "xu": 0.0,
    "lsu": 10.0,
    "issue": 20.0,
    "grid": 8192.0,
    "block": 256.0,
    "sms": 132.0,
    "waves": 7.757,
    "registers": 16.0,
    "occupancy_possible": 100.0,
    "occupancy": 90.0,
    "limit_registers": 16.0,
    "limit_shared": 32.0,
    "limit_warps": 8.0,
    "limit_blocks": 32.0,
    "threads_per_instruction": 32.0,
    "instructions": 20_000_000.0,
    "thread_instructions": 640_000_000.0,
    "load_requests": 2_097_152.0,
    "load_sectors": 8_388_608.0,
    "load_bytes_per_sector": 32.0,
    "store_requests": 2_097_152.0,
    "store_sectors": 8_388_608.0,
    "store_bytes_per_sector": 32.0,
    "global_load_instructions": 2_097_152.0,
    "global_store_instructions": 2_097_152.0,
    "shared_load_instructions": 0.0,
    "shared_store_instructions": 0.0,
    "local_load_instructions": 0.0,
    "local_store_instructions": 0.0,
    "l2_read_sectors": 8_388_608.0,
    "l2_write_sectors": 8_388_608.0,
    "l2_read_hits": 0.0,
    "dram_read": 268_435_456.0,
    "dram_write": 268_435_456.0,
    "shared_wavefronts": 0.0,
    "shared_conflicts": 0.0,
    "data_wavefronts": 20.0,
    "shared_wavefronts_pct": 0.0,
    "atomic_requests": 0.0,
    "reduction_requests": 0.0,
    "ffma": 0.0,
    "fadd": 0.0,
    "fmul": 300.0,
    "hfma": 0.0,
    "dfma": 0.0,
}


def kernel(
    name: str = "copy",
    *,
    without: tuple[str, ...] = (),
    stalls: dict[str, float] | None = None,
    raw: dict[str, float] | None = None,
    launch: int = 0,
    chip: str = "sm_90",
    device: str = "NVIDIA H200",
    **changes: float,
) -> KernelReport:
    """The copy with some values changed, others left out, and more metrics by their full names."""
    values = {key: value for key, value in (COPY | changes).items() if key not in without}
    metrics = {METRICS[key].names[0]: Reading(float(value), UNITS.get(key, "")) for key, value in values.items()}
    metrics |= {STALLS.format(word): Reading(float(value), "inst") for word, value in (stalls or {}).items()}
    metrics |= {metric: Reading(float(value), "") for metric, value in (raw or {}).items()}
    return KernelReport(
        name=name,
        function=name.partition("(")[0],
        launch=launch,
        device=device,
        chip=chip,
        grid=(int(values.get("grid", 8192)), 1, 1),
        block=(int(values.get("block", 256)), 1, 1),
        duration_ns=values.get("duration"),
        metrics=metrics,
    )
