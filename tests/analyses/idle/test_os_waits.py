"""Waits of the program that the operating system shows: for data, for another thread, for nothing that is recorded."""

from __future__ import annotations

from pathlib import Path

import pytest
from nsys_files import GLOBAL_TID, GLOBAL_WORKER, Export

from warpline.analyses.idle.gaps import Gaps, idle_gaps
from warpline.trace.open import open_trace

BEGIN, END = 1_000_000, 11_000_000
"""The device is idle between these moments, in nanoseconds; the launch of the next kernel begins 10 µs before the end."""


def program(waits: list[tuple[str, int, int]], *, worker: list[tuple[str, int, int]] = ()) -> Export:  # type: ignore[assignment]
    """Two kernels with 10 ms between them; the launching thread's calls of the operating system in between, and those of
    another thread."""
    export = Export()
    export.call(BEGIN - 60_000, BEGIN - 50_000, "cudaLaunchKernel", 1).kernel(BEGIN - 40_000, BEGIN, "gemm", 1)
    export.call(END - 10_000, END - 5_000, "cudaLaunchKernel", 2).kernel(END, END + 50_000, "gemm", 2)
    for thread, calls in ((GLOBAL_TID, waits), (GLOBAL_WORKER, worker)):
        for name, start, end in calls:
            export.add("OSRT_API", start=start, end=end, globalTid=thread, nameId=export.string(name), returnValue=0)
    return export


def gaps_of(folder: Path, export: Export) -> Gaps:
    (gaps,) = idle_gaps(open_trace(export.write(folder / "report.sqlite"), cache=False))
    return gaps


def causes(gaps: Gaps) -> dict[str, int]:
    return {cause: length for cause, length in gaps.totals().items() if length}


@pytest.mark.parametrize("name", ["getc", "read", "fgets", "poll", "recvmsg", "clock_nanosleep", "pread64"])
def test_a_read_is_a_wait_for_data(tmp_path: Path, name: str) -> None:
    gaps = gaps_of(tmp_path, program([(name, BEGIN, END - 10_000)]))
    assert causes(gaps) == {"input": 9_990_000, "launch_latency": 10_000}
    assert gaps.os_waits == {"input": {name: 9_990_000}}


@pytest.mark.parametrize("name", ["sem_wait", "pthread_cond_wait", "waitpid", "pthread_join", "futex"])
def test_a_wait_for_something_that_is_not_recorded_is_unknown_and_named(tmp_path: Path, name: str) -> None:
    gaps = gaps_of(tmp_path, program([(name, BEGIN, END - 10_000)]))
    assert causes(gaps) == {"unknown": 9_990_000, "launch_latency": 10_000}
    assert gaps.os_waits == {"unknown": {name: 9_990_000}}


def test_a_wait_is_explained_by_the_thread_that_ends_it(tmp_path: Path) -> None:
    """A loader reads for 6 ms, and wakes the loop 10 µs later."""
    reading = [("read", BEGIN + 3_980_000, END - 20_000)]
    gaps = gaps_of(tmp_path, program([("pthread_cond_wait", BEGIN, END - 10_000)], worker=reading))
    assert causes(gaps) == {"input": 6_000_000, "unknown": 3_990_000, "launch_latency": 10_000}


def test_a_thread_that_sleeps_on_explains_nothing(tmp_path: Path) -> None:
    sleeping = [("poll", BEGIN - 500_000, END + 500_000), ("read", BEGIN + 1_000_000, BEGIN + 2_000_000)]
    gaps = gaps_of(tmp_path, program([("pthread_cond_wait", BEGIN, END - 10_000)], worker=sleeping))
    assert causes(gaps) == {"unknown": 9_990_000, "launch_latency": 10_000}


def test_a_thread_that_waits_for_another_launching_one_waits_for_its_dispatch(tmp_path: Path) -> None:
    export = program([("pthread_cond_wait", BEGIN, END - 10_000)])
    export.call(END + 60_000, END + 65_000, "cudaLaunchKernel", 3, globalTid=GLOBAL_WORKER)
    export.kernel(END + 70_000, END + 80_000, "relu", 3)
    gaps = gaps_of(tmp_path, export)
    assert causes(gaps)["dispatch"] == 9_990_000 + 10_000
    assert gaps.totals()["unknown"] == 0


def test_a_lock_within_a_launch_is_no_latency(tmp_path: Path) -> None:
    export = Export()
    export.call(BEGIN - 60_000, BEGIN - 50_000, "cudaLaunchKernel", 1).kernel(BEGIN - 40_000, BEGIN, "gemm", 1)
    export.call(BEGIN - 10_000, END - 5_000, "cudaLaunchKernel", 2).kernel(END, END + 50_000, "gemm", 2)
    lock = {"start": BEGIN, "end": END - 50_000, "globalTid": GLOBAL_TID, "nameId": export.string("pthread_mutex_lock")}
    export.add("OSRT_API", returnValue=0, **lock)
    assert causes(gaps_of(tmp_path, export)) == {"unknown": 9_950_000, "launch_latency": 50_000}


def test_files_looked_up_once_are_an_import_and_memory_that_is_unmapped_is_not(tmp_path: Path) -> None:
    files = [("open64", BEGIN + 100_000 * number, BEGIN + 100_000 * number + 50_000) for number in range(10)]
    assert causes(gaps_of(tmp_path, program(files)))["cold_start"] == 950_000
    (tmp_path / "report.sqlite").unlink()
    unmapped = [("munmap", start, end) for _, start, end in files]
    assert "cold_start" not in causes(gaps_of(tmp_path, program(unmapped)))


def test_no_call_takes_longer_than_the_cause_that_it_explains(tmp_path: Path) -> None:
    """The loop waits all the time; for 6 ms of it a loader reads, so that 3.99 ms are left for the wait."""
    reading = [("read", BEGIN + 3_980_000, END - 20_000)]
    gaps = gaps_of(tmp_path, program([("pthread_cond_wait", BEGIN, END - 10_000)], worker=reading))
    assert gaps.os_waits == {"unknown": {"pthread_cond_wait": 3_990_000}}
