"""Every nanosecond accounted for: on paper, and against a count of single nanoseconds over random traces."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kineto_files import annotation, copy, kernel, launched, memset, write
from paths import RECORDINGS

from warpline.analyses.breakdown import communicates, device_times
from warpline.trace.open import open_trace
from warpline.trace.schema import TABLES, Gpu, conform, empty
from warpline.trace.table import Names
from warpline.trace.trace import Trace

NAMES = {
    "compute": "gemm",
    "comm": "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
    "copy": "Memcpy HtoD (Pinned -> Device)",
    "memset": "Memset (Device)",
}


def test_parts_are_exposed_time_in_order_of_priority(tmp_path: Path) -> None:
    events = [
        *launched("gemm", 0, 10, 20, 1),  # 10..30 compute
        kernel(NAMES["comm"], 20, 30, 2, stream=8),  # 20..50, of which 30..50 exposed
        copy(NAMES["copy"], 45, 15, 3, 1000, stream=9),  # 45..60, of which 50..60 exposed
        memset(70, 5, 4, stream=9),  # 70..75
        *launched("gemm", 90, 95, 5, 5),  # 95..100
    ]
    (device,) = device_times(open_trace(write(tmp_path, events)))
    assert device.window_ns == 90_000
    assert (device.compute_ns, device.comm_ns, device.copy_ns, device.memset_ns) == (25_000, 20_000, 10_000, 5_000)
    assert (device.busy_ns, device.idle_ns) == (60_000, 30_000)
    assert (device.overlapped_comm_ns, device.overlapped_copy_ns) == (10_000, 5_000)


def test_the_window_of_chosen_steps_ends_with_the_work_that_they_launched(tmp_path: Path) -> None:
    events = [
        *launched("a", 0, 50, 100, 1),
        *launched("b", 160, 190, 20, 2),
        annotation("ProfilerStep#1", 0, 100),
        annotation("ProfilerStep#2", 100, 100),
    ]
    (device,) = device_times(open_trace(write(tmp_path, events), steps="1:2"))
    assert (device.window_ns, device.busy_ns) == (60_000, 20_000)  # from the end of a, of the step before, to that of b


def test_each_device_has_the_same_window(tmp_path: Path) -> None:
    events = [kernel("a", 0, 10, 1, device=0), kernel("b", 50, 50, 2, device=3)]
    first, second = device_times(open_trace(write(tmp_path, events)))
    assert (first.device, first.busy_ns, first.window_ns) == (0, 10_000, 100_000)
    assert (second.device, second.busy_ns, second.window_ns) == (3, 50_000, 100_000)


ROWS = st.lists(
    st.tuples(st.sampled_from(list(NAMES)), st.integers(0, 80), st.integers(0, 20), st.integers(0, 1)),
    min_size=1,
    max_size=15,
)


@given(ROWS)
def test_the_parts_sum_to_the_whole_and_equal_a_count_of_nanoseconds(rows: list[tuple[str, int, int, int]]) -> None:
    kinds = {"compute": "kernel", "comm": "kernel", "copy": "memcpy", "memset": "memset"}
    gpu = pl.DataFrame(
        {
            "kind": [kinds[part] for part, *_ in rows],
            "name": [NAMES[part] for part, *_ in rows],
            "device": [device for *_, device in rows],
            "start_ns": [start for _, start, _, _ in rows],
            "end_ns": [start + length for _, start, length, _ in rows],
        }
    )
    tables = {name: kind(empty(name)) for name, kind in TABLES.items()} | {"gpu": Gpu(conform("gpu", gpu))}
    trace = Trace.of_tables(Path("random"), "kineto", tables)
    window = range(min(start for _, start, _, _ in rows), max(start + length for _, start, length, _ in rows))
    for device in device_times(trace):
        covered: set[int] = set()
        for part in NAMES:
            mine = {
                t
                for p, start, length, d in rows
                if p == part and d == device.device
                for t in range(start, start + length)
            }
            assert getattr(device, f"{part}_ns") == len(mine - covered)
            covered |= mine
        assert device.busy_ns == len(covered)
        assert device.busy_ns + device.idle_ns == device.window_ns == len(window)


@pytest.mark.parametrize(
    "name",
    [
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t",
        "void vllm::cross_device_reduce_1stage<__half, 2>(…)",
        "one_shot_all_reduce_kernel",
        "rcclGenericKernel",
        "multimem_all_reduce_kernel",
    ],
)
def test_collectives_are_communication(name: str) -> None:
    assert communicates(Names.of(pl.Series([name], dtype=pl.Categorical))).all()


@pytest.mark.parametrize(
    "name", ["void at::native::reduce_kernel<512, 1>", "splitKreduce_kernel", "gather_kernel", "scatter_add"]
)
def test_reductions_are_not(name: str) -> None:
    assert not communicates(Names.of(pl.Series([name], dtype=pl.Categorical))).any()


@pytest.mark.parametrize("file", RECORDINGS, ids=lambda file: file.name)
def test_recorded_profiles_are_partitioned_exactly(file: Path) -> None:
    trace = open_trace(file)
    for device in device_times(trace):
        assert device.compute_ns + device.comm_ns + device.copy_ns + device.memset_ns == device.busy_ns
        assert device.busy_ns + device.idle_ns == device.window_ns == trace.window.length_ns


def test_copies_between_host_and_device_are_told_from_others(tmp_path: Path) -> None:
    events = [
        *launched("gemm", 0, 10, 20, 1),  # 10..30
        copy("Memcpy HtoD (Pinned -> Device)", 20, 30, 2, 100, stream=8),  # alone from 30, beside another from 40
        copy("Memcpy DtoD (Device -> Device)", 40, 20, 3, 100, stream=9),
        copy("Memcpy DtoH (Device -> Pageable)", 60, 5, 4, 100, stream=8),
    ]
    (device,) = device_times(open_trace(write(tmp_path, events)))
    assert (device.copy_ns, device.host_copy_ns) == (35_000, 15_000)
