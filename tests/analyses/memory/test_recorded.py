"""Memory of a recorded program that leaks, against what torch and nsys counted on an H200."""

from __future__ import annotations

from pathlib import Path

from nsys_files import GLOBAL_PID, small
from paths import DATA

from warpline.analyses.memory import memory_of_trace
from warpline.front.functions import memory_use
from warpline.trace.open import open_trace

BEFORE, AFTER, PEAK, RESERVED = 138_012_672, 139_588_608, 186_255_360, 197_132_288
"""torch.cuda.memory_allocated() before and after the six steps, and its two maxima."""
KEPT = 1024 * 64 * 4
"""Bytes of the logits that the program keeps in each step."""


def test_a_snapshot_has_torchs_own_counts_and_finds_the_leak() -> None:
    (found,) = memory_use(DATA / "memory" / "leak.snapshot.pickle.xz").devices
    assert found.pieces is not None
    # A snapshot has the bytes that were asked for; the allocator counts multiples of 512.
    assert found.end_bytes + found.pieces.rounding_bytes == AFTER
    assert 0 <= PEAK - found.peak.allocated_bytes < 512 * 100
    assert 0 <= BEFORE - found.start_bytes < 512 * 100
    assert found.peak_reserved_bytes == RESERVED
    assert (found.growth.trend, found.growth.per_step_bytes) == ("growing", KEPT + 4)  # and a loss
    grower = found.growers[0]
    assert (grower.line, grower.per_step_bytes) == ("leak.py(41): step", KEPT)


def test_what_was_allocated_before_has_no_line_of_its_own() -> None:
    (found,) = memory_use(DATA / "memory" / "leak.snapshot.pickle.xz").devices
    assert found.earlier_bytes is not None
    named = sum(one.peak_bytes for one in found.holders["line"])
    assert found.earlier_bytes + named == found.peak.allocated_bytes
    assert found.earlier_bytes > 100_000_000


def test_cuda_allocations_that_nsys_recorded() -> None:
    gpu, host = memory_of_trace(open_trace(DATA / "nsys" / "memory_usage.sqlite.xz")).devices
    assert (gpu.peak.allocated_bytes, gpu.events) == (333_929_408, 27)
    assert (host.device, host.peak.allocated_bytes) == ("cpu", 1 << 20)


def test_what_a_capture_range_finds_allocated_is_listed_at_time_zero(tmp_path: Path) -> None:
    export = small()
    for start, address in ((0, 512), (0, 4096), (7, 9000)):
        export.add(
            "CUDA_GPU_MEMORY_USAGE_EVENTS",
            **{"globalPid": GLOBAL_PID, "deviceId": 0, "start": start, "address": address, "bytes": 100, "memKind": 2},
            memoryOperationType=0,
        )
    (found,) = memory_of_trace(open_trace(export.write(tmp_path / "report.sqlite"))).devices
    assert (found.start_known, found.start_bytes, found.end_bytes) == (True, 200, 300)
