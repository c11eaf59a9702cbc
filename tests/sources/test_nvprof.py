"""nvprof databases: kernels, copies, calls by callback id, ranges, devices, and two clocks made one."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import polars as pl
import pytest
from nvprof_files import LAUNCH, PID, TID, NvprofFile
from paths import SHARED

from warpline.cli.main import run
from warpline.doctor.files import examine_file
from warpline.errors import UnreadableFile
from warpline.sources.detect import detect
from warpline.sources.kinds import NVPROF
from warpline.sources.nvprof import read_nvprof
from warpline.trace.open import open_trace
from warpline.trace.trace import Trace

EPOCH = 1_700_000_000_000_000_000
US = 1_000


def looped(ahead_ns: int = 0, drift: float = 0.0, iterations: int = 20, every_ns: int = 1_000 * US) -> NvprofFile:
    """Launch at 0 µs, kernel from 10 to 40 µs, wait from 5 to 50 µs; the device's clock is ahead, and drifts."""
    file = NvprofFile()
    for number in range(iterations):
        begin = EPOCH + number * every_ns
        ahead = ahead_ns + round(drift * number * every_ns)
        file.call(LAUNCH, begin, begin + 4 * US, 2 * number + 1)
        file.kernel(begin + 10 * US + ahead, begin + 40 * US + ahead, 2 * number + 1, "saxpy(int)")
        file.wait(begin + 5 * US, begin + 50 * US, 2 * number + 2)
    return file


def opened(tmp_path: Path, file: NvprofFile) -> Trace:
    return open_trace(file.write(tmp_path / "a.nvvp"), cache=False)


def lead_ns(trace: Trace) -> list[int]:
    """From each launch call to its kernel, in nanoseconds."""
    kernels = trace.gpu.stored.filter(pl.col("kind").cast(pl.String) == "kernel")
    return (kernels["start_ns"] - trace.api.stored["start_ns"].gather(kernels["api_id"])).to_list()


def test_kernels_are_read_with_their_launches(tmp_path: Path) -> None:
    trace = opened(tmp_path, looped())
    assert trace.source == "nvprof"
    assert len(trace.gpu) == 20
    assert trace.gpu.stored["api_id"].null_count() == 0
    assert lead_ns(trace) == [10 * US] * 20
    assert set(trace.api.stored["name"].cast(pl.String)) == {"cudaLaunchKernel", "cudaStreamSynchronize"}
    assert trace.gpu.stored["start_ns"].min() == 10 * US  # the first call is at zero
    assert trace.facts["epoch_ns"] == str(EPOCH)
    row = trace.gpu.stored.row(0, named=True)
    assert (row["name"], row["registers"], row["shared_bytes"], row["graph_id"]) == ("saxpy(int)", 31, 24, None)
    assert "clock-shift" not in {entry.code for entry in trace.health_entries}


def test_a_device_clock_that_is_hours_ahead_is_moved(tmp_path: Path) -> None:
    """The kernel begins at least 0 µs after its launch and ends at least 0 µs before the wait returns: ten µs of room
    on either side, and the middle is the truth."""
    hours = 86_000_000_000_000
    trace = opened(tmp_path, looped(ahead_ns=hours))
    assert lead_ns(trace) == [10 * US] * 20
    message = next(entry.message for entry in trace.health_entries if entry.code == "clock-shift")
    assert "86,000.000 s ahead of host times" in message
    assert "within 10 µs" in message


def test_clocks_that_drift_apart_are_moved_along_a_line(tmp_path: Path) -> None:
    """A hundred µs a second over 20 s: no constant fits bounds of ±10 µs, a line does."""
    file = looped(ahead_ns=5_000_000_000, drift=1e-4, iterations=200, every_ns=100_000 * US)
    trace = opened(tmp_path, file)
    assert all(abs(lead - 10 * US) < 2 * US for lead in lead_ns(trace))
    message = next(entry.message for entry in trace.health_entries if entry.code == "clock-shift")
    assert "drift by 100.0 µs a second" in message


def test_a_long_queue_is_no_clock_shift(tmp_path: Path) -> None:
    """Kernels far behind their launches, and nothing waits: the queue's time, not the clock's."""
    file = NvprofFile()
    for number in range(5):
        file.call(LAUNCH, EPOCH + number * US, EPOCH + number * US + 500, number + 1)
        file.kernel(EPOCH + (number + 1) * 1_000_000, EPOCH + (number + 2) * 1_000_000, number + 1)
    trace = opened(tmp_path, file)
    assert [entry.code for entry in trace.health_entries if entry.code == "clock-shift"] == []
    assert lead_ns(trace)[0] == 1_000_000


def test_copies_sets_calls_ranges_and_devices(tmp_path: Path) -> None:
    place = {"deviceId": 0, "contextId": 1, "streamId": 7}
    owner = struct.pack("<IIxxxx", PID, TID)
    file = looped(iterations=3)
    file.add(
        "MEMCPY", start=EPOCH, end=EPOCH + 9, correlationId=90, bytes=64, copyKind=1, srcKind=1, dstKind=3, **place
    )
    file.add("MEMSET", start=EPOCH, end=EPOCH + 5, correlationId=91, bytes=32, memoryKind=3, **place)
    file.call(307, EPOCH, EPOCH + 1, 92, "DRIVER").call(99_999, EPOCH, EPOCH + 1, 93)
    for flags, moment, name in ((2, 100, "step"), (4, 900, "-- null --")):
        file.add(
            "MARKER", flags=flags, timestamp=EPOCH + moment, id=5, objectKind=2, objectId=owner, name=file.string(name)
        )
    file.add("DEVICE", id=0, name=file.string("Tesla P100"), computeCapabilityMajor=6, computeCapabilityMinor=0)
    trace = opened(tmp_path, file)
    copy = trace.gpu.stored.filter(pl.col("kind").cast(pl.String) == "memcpy").row(0, named=True)
    assert (copy["copy_kind"], copy["source_memory"], copy["target_memory"], copy["bytes"]) == (
        "HtoD",
        "Pageable",
        "Device",
        64,
    )
    assert trace.gpu.stored["kind"].cast(pl.String).to_list().count("memset") == 1
    assert {"cuLaunchKernel", "[runtime call 99999]"} <= set(trace.api.stored["name"].cast(pl.String))
    step = trace.ranges.stored.row(0, named=True)
    assert (step["name"], step["end_ns"] - step["start_ns"]) == ("step", 800)
    assert trace.threads.stored["tid"].to_list() == [TID]
    assert trace.devices.stored.select("name", "compute_major").row(0) == ("Tesla P100", 6)


def test_it_is_recognised_by_its_tables_and_may_be_gzipped(tmp_path: Path) -> None:
    path = looped().write(tmp_path / "profile.bin")
    assert detect(path) is NVPROF
    packed = tmp_path / "profile.nvvp.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert detect(packed) is NVPROF
    assert len(read_nvprof(packed).tables["gpu"]) == 20


def test_doctor_and_diagnose_agree_that_there_are_kernels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = looped().write(tmp_path / "a.nvvp")
    assert not [check for check in examine_file(path).checks if check.state == "problem"]
    assert run(["diagnose", str(path)]) == 0
    assert "busy" in capsys.readouterr().out


def test_a_database_without_rows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match="empty-trace"):
        read_nvprof(NvprofFile().write(tmp_path / "a.nvvp"))


@pytest.mark.shared
def test_a_recorded_database_is_read_whole() -> None:
    trace = open_trace(SHARED / "public" / "wild" / "qcu_x99.nvvp.gz", cache=False)
    kinds = trace.gpu.stored["kind"].cast(pl.String).value_counts()
    assert dict(kinds.iter_rows()) == {"kernel": 5405, "memcpy": 4311, "memset": 15}
    assert min(lead_ns(trace)) > -100 * US
