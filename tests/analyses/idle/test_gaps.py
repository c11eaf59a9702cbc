"""Idle time by cause: on paper for each cause, and exact over random traces."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kineto_files import AUTOGRAD, annotation, call, copy, frame, kernel, launched, op, write
from paths import DATA, RECORDINGS

from warpline.analyses.breakdown import device_times
from warpline.analyses.idle import host_time
from warpline.analyses.idle.gaps import CAUSES, Gaps, idle_gaps
from warpline.analyses.idle.host_time import HostTime
from warpline.sources.rows import Rows
from warpline.trace.open import build, open_trace

FIRST = [*launched("first", 0, 10, 10, 1)]
"""Busy from 10 to 20 µs; each case below adds what happens until the next kernel."""


def test_a_capture_is_named_within_the_cold_start_and_late_starts_within_what_is_unknown(tmp_path: Path) -> None:
    """A capture from 22 to 42 µs, and a kernel that starts 365 µs after its launch returns."""
    capture = [call("cudaStreamBeginCapture", 22, 2, 8), call("cudaStreamEndCapture", 38, 4, 9)]
    (gaps,) = idle_gaps(open_trace(write(tmp_path, [*FIRST, *capture, *launched("next", 50, 420, 5, 2)])))
    assert (gaps.captured_ns, gaps.unrecorded_ns) == (20_000, 365_000)


def causes(folder: Path, events: list[dict[str, Any]]) -> dict[str, int]:
    (gaps,) = idle_gaps(open_trace(write(folder, FIRST + events)))
    assert_filled(gaps)
    return {cause: length // 1000 for cause, length in gaps.totals().items() if length}


CASES: dict[str, tuple[list[dict[str, Any]], dict[str, int]]] = {
    "Python between ops": (launched("next", 50, 58, 5, 2), {"dispatch": 30, "launch_latency": 8}),
    "inside an op": ([op("aten::mm", 15, 50), *launched("next", 50, 58, 5, 2)], {"dispatch": 30, "launch_latency": 8}),
    "a synchronising call": (
        [call("cudaStreamSynchronize", 12, 18, 9), *launched("next", 50, 58, 5, 2)],
        {"sync": 10, "dispatch": 20, "launch_latency": 8},
    ),
    "allocation": (
        [call("cudaMalloc", 20, 25, 9), *launched("next", 50, 58, 5, 2)],
        {"memory": 25, "dispatch": 5, "launch_latency": 8},
    ),
    "loading code": (
        [call("cuModuleLoadData", 20, 20, 9), *launched("next", 50, 58, 5, 2)],
        {"cold_start": 20, "dispatch": 10, "launch_latency": 8},
    ),
    "a range around a compiler": (
        [annotation("KernelExecutor::compileFusion", 20, 20), *launched("next", 50, 58, 5, 2)],
        {"cold_start": 20, "dispatch": 10, "launch_latency": 8},
    ),
    "initialising parameters": (
        [frame("torch/nn/init.py(433): kaiming_uniform_", 20, 20, 1, None), *launched("next", 50, 58, 5, 2)],
        {"cold_start": 20, "dispatch": 10, "launch_latency": 8},
    ),
    "capturing a graph": (
        [
            call("cudaStreamBeginCapture", 22, 2, 8),
            op("aten::mm", 25, 10),
            call("cudaStreamEndCapture", 38, 4, 9),
            *launched("next", 50, 58, 5, 2),
        ],
        {"cold_start": 20, "dispatch": 10, "launch_latency": 8},
    ),
    "behind work that is not in the file": (
        launched("next", 30, 400, 5, 2),
        {"dispatch": 10, "launch_latency": 5, "unknown": 365},
    ),
    "torch.compile at work": (
        [op("entire_frame_compile", 22, 20), *launched("next", 50, 58, 5, 2)],
        {"cold_start": 20, "dispatch": 10, "launch_latency": 8},
    ),
    "a first launch that loads": (
        [call("cudaLaunchKernel", 30, 500, 2), kernel("next", 540, 5, 2)],
        {"dispatch": 10, "cold_start": 500, "launch_latency": 10},
    ),
    "a launch of a large graph": (
        [call("cudaGraphLaunch", 30, 300, 2), *(kernel("first", 332 + number, 1, 2) for number in range(100))],
        {"dispatch": 10, "launch_latency": 302},
    ),
    "a launch of a small graph that takes as long": (
        [call("cudaGraphLaunch", 30, 300, 2), *(kernel("first", 332 + number, 1, 2) for number in range(3))],
        {"dispatch": 10, "unknown": 300, "launch_latency": 2},
    ),
    "a pageable copy": (
        [call("cudaMemcpyAsync", 30, 40, 2), copy("Memcpy HtoD (Pageable -> Device)", 60, 5, 2, 100)],
        {"dispatch": 10, "transfer": 30},
    ),
    "the data loader": (
        [op("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 22, 20), *launched("next", 50, 58, 5, 2)],
        {"input": 20, "dispatch": 10, "launch_latency": 8},
    ),
    "a sleeping frame": (
        [frame("<built-in function sleep>", 22, 20, 1, None), *launched("next", 50, 58, 5, 2)],
        {"input": 20, "dispatch": 10, "launch_latency": 8},
    ),
    "launched in time, a short gap": (
        [call("cudaLaunchKernel", 5, 3, 2), kernel("next", 25, 5, 2)],
        {"launch_latency": 5},
    ),
    "launched in time, a long gap": ([call("cudaLaunchKernel", 5, 3, 2), kernel("next", 60, 5, 2)], {"dependency": 40}),
    "launched in time, far too late": ([call("cudaLaunchKernel", 5, 3, 2), kernel("next", 80, 5, 2)], {"unknown": 60}),
    "an allocation in the first op of its name, far longer than others": (
        [
            *(call("cudaMalloc", 2 + number, 0.5, 80 + number) for number in range(5)),
            op("aten::conv2d", 20, 980),
            call("cudaMalloc", 100, 800, 90),
            *launched("next", 950, 958, 5, 2),
        ],
        {"cold_start": 800, "dispatch": 130, "launch_latency": 8},
    ),
    "the same in an op that ran before": (
        [
            *(call("cudaMalloc", 2 + number, 0.5, 80 + number) for number in range(5)),
            op("aten::conv2d", 1, 8),
            op("aten::conv2d", 20, 980),
            call("cudaMalloc", 100, 800, 90),
            *launched("next", 950, 958, 5, 2),
        ],
        {"memory": 800, "dispatch": 130, "launch_latency": 8},
    ),
    "a collective, launched in time": (
        [call("cudaLaunchKernel", 5, 3, 2), kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", 80, 5, 2)],
        {"comm": 60},
    ),
    "a kernel without a launch": ([kernel("next", 30, 5, 99)], {"unknown": 10}),
    "another launching thread at work": (
        [
            op("backward", 20, 25, thread=AUTOGRAD),
            call("cudaMalloc", 22, 10, 8, thread=AUTOGRAD),
            *launched("next", 50, 58, 5, 2),
            call("cudaLaunchKernel", 60, 2, 9, thread=AUTOGRAD),
            kernel("last", 63, 5, 9),
        ],
        {"memory": 10, "dispatch": 20, "launch_latency": 8},
    ),
    "a thread at work that launches nothing": (
        [call("cudaMalloc", 22, 10, 8, thread=AUTOGRAD), *launched("next", 50, 58, 5, 2)],
        {"dispatch": 30, "launch_latency": 8},
    ),
    "a pool's thread that compiles all the time": (
        [
            frame("torch/_inductor/compile_worker/subproc_pool.py(1): _read_thread", 0, 90, 1, None, thread=AUTOGRAD),
            *launched("next", 50, 58, 5, 2),
        ],
        {"dispatch": 30, "launch_latency": 8},
    ),
    "a launch that loads code, called before the gap": (
        [call("cudaLaunchKernel", 15, 995, 2), kernel("next", 1012, 5, 2)],
        {"cold_start": 990, "launch_latency": 2},
    ),
    "a launch of known code that takes long, called before the gap": (
        [call("cudaLaunchKernel", 15, 995, 2), kernel("first", 1012, 5, 2)],
        {"unknown": 990, "launch_latency": 2},
    ),
    "nothing recorded for long, and no steps": (
        launched("next", 1050, 1058, 5, 2),
        {"unknown": 1030, "launch_latency": 8},
    ),
    "the profiler's own synchronisation": (
        [
            frame("torch/profiler/profiler.py(700): stop", 18, 30, 1, None),
            frame("torch/cuda/__init__.py(900): synchronize", 19, 28, 2, 1),
            frame("<built-in function _cuda_synchronize>", 20, 26, 3, 2),
            call("cudaDeviceSynchronize", 21, 24, 8),
            *launched("next", 50, 58, 5, 2),
        ],
        {"profiler": 28, "dispatch": 2, "launch_latency": 8},
    ),
    "making a batch, nothing recorded": (
        [
            annotation("ProfilerStep#1", 0, 2000),
            call("cudaMemcpyAsync", 1000, 5, 2),
            copy("Memcpy HtoD (Pinned -> Device)", 1010, 5, 2, 100),
        ],
        {"input": 980, "launch_latency": 10},
    ),
    "making a batch, in functions of any name": (
        [
            annotation("ProfilerStep#1", 0, 2000),
            frame("train.py(1): step", 12, 1900, 1, None),
            frame("train.py(9): negatives", 20, 900, 2, 1),
            op("aten::empty", 500, 10),
            call("cudaMemcpyAsync", 1000, 5, 2),
            copy("Memcpy HtoD (Pinned -> Device)", 1010, 5, 2, 100),
        ],
        {"input": 980, "launch_latency": 10},
    ),
    "making a batch, in pieces with ops of the CPU between them": (
        [
            annotation("ProfilerStep#1", 0, 2000),
            *[op("aten::add", 100 * n, 40) for n in range(1, 8)],
            op("aten::to", 900, 120),
            call("cudaMemcpyAsync", 1000, 5, 2),
            copy("Memcpy HtoD (Pinned -> Device)", 1010, 5, 2, 100),
        ],
        {"input": 880, "dispatch": 100, "launch_latency": 10},
    ),
    "functions of any name before a launch": (
        [
            annotation("ProfilerStep#1", 0, 2000),
            frame("train.py(1): step", 12, 1900, 1, None),
            frame("train.py(9): negatives", 20, 900, 2, 1),
            *launched("next", 1000, 1010, 5, 2),
        ],
        {"dispatch": 980, "launch_latency": 10},
    ),
    "functions between launches, then a copy": (
        [
            annotation("ProfilerStep#1", 0, 3000),
            frame("train.py(1): step", 12, 2900, 1, None),
            *launched("next", 1000, 1000, 5, 2),
            call("cudaMemcpyAsync", 1200, 5, 3),
            copy("Memcpy HtoD (Pinned -> Device)", 1205, 5, 3, 100),
        ],
        {"dispatch": 1175, "launch_latency": 5},
    ),
    "made of a result of the device, not a batch": (
        [
            annotation("ProfilerStep#1", 0, 2000),
            call("cudaMemcpyAsync", 10, 10, 2),
            copy("Memcpy DtoH (Device -> Pinned)", 20, 5, 2, 4096),
            call("cudaMemcpyAsync", 1000, 5, 3),
            copy("Memcpy HtoD (Pinned -> Device)", 1010, 5, 3, 100),
        ],
        {"dispatch": 975, "launch_latency": 10},
    ),
    "another thread that has only frames": (
        [
            annotation("ProfilerStep#1", 0, 2000),
            frame("threading.py(1): _bootstrap", 0, 2000, 1, None, thread=AUTOGRAD),
            call("cudaMemcpyAsync", 1000, 5, 2),
            copy("Memcpy HtoD (Pinned -> Device)", 1010, 5, 2, 100),
        ],
        {"input": 980, "launch_latency": 10},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_each_cause_on_paper(case: str, tmp_path: Path) -> None:
    events, expected = CASES[case]
    assert causes(tmp_path, events) == expected


def test_a_late_start_while_another_device_works_is_a_dependency(tmp_path: Path) -> None:
    events = [*launched("before", 0, 10, 10, 1), call("cudaLaunchKernel", 5, 3, 2), kernel("next", 80, 5, 2)]
    other = [call("cudaLaunchKernel", 9, 1, 3), kernel("elsewhere", 20, 55, 3, device=1)]
    gaps = next(one for one in idle_gaps(open_trace(write(tmp_path, [*events, *other]))) if one.device == 0)
    assert (gaps.totals()["dependency"], gaps.totals()["unknown"], gaps.unrecorded_ns) == (60_000, 0, 0)


def test_a_trace_without_calls_explains_nothing(tmp_path: Path) -> None:
    (gaps,) = idle_gaps(open_trace(write(tmp_path, [kernel("a", 0, 10, 1), kernel("b", 30, 10, 2)])))
    assert gaps.totals()["unknown"] == 20_000


@st.composite
def random_rows(draw: st.DrawFn) -> Rows:
    moment, length = st.integers(0, 3000), st.integers(0, 600)
    calls = draw(
        st.lists(
            st.tuples(
                moment,
                length,
                st.sampled_from(
                    ["cudaLaunchKernel", "cudaStreamSynchronize", "cudaMalloc", "cuModuleLoadData", "cudaMemcpyAsync"]
                ),
                st.integers(0, 1),
            ),
            max_size=12,
        )
    )
    work = draw(
        st.lists(
            st.tuples(moment, length, st.integers(0, 14), st.integers(0, 1), st.sampled_from(["kernel", "memcpy"])),
            min_size=1,
            max_size=12,
        )
    )
    frames = draw(
        st.lists(
            st.tuples(
                moment,
                length,
                st.sampled_from(["train.py(1): f", "<built-in function sleep>", "torch/profiler/x.py(2): g"]),
                st.integers(0, 1),
            ),
            max_size=6,
        )
    )
    scale = draw(st.sampled_from([1, 1000]))
    api = pl.DataFrame(
        {
            "name": [name for _, _, name, _ in calls],
            "thread": [thread for *_, thread in calls],
            "process": [1] * len(calls),
            "start_ns": [scale * start for start, *_ in calls],
            "end_ns": [scale * (start + long) for start, long, _, _ in calls],
            "correlation": list(range(1, len(calls) + 1)),
        },
        schema_overrides={
            "name": pl.String,
            "thread": pl.Int64,
            "process": pl.Int64,
            "start_ns": pl.Int64,
            "end_ns": pl.Int64,
            "correlation": pl.Int64,
        },
    )
    gpu = pl.DataFrame(
        {
            "kind": [kind for *_, kind in work],
            "name": ["Memcpy HtoD (Pageable -> Device)" if kind == "memcpy" else "k" for *_, kind in work],
            "device": [device for *_, device, _ in work],
            "process": [1] * len(work),
            "correlation": [number for _, _, number, _, _ in work],
            "start_ns": [scale * start for start, *_ in work],
            "end_ns": [scale * (start + long) for start, long, *_ in work],
            "source_memory": ["Pageable" if kind == "memcpy" else None for *_, kind in work],
            "stream": [7] * len(work),
        },
        schema_overrides={"source_memory": pl.String},
    )
    python = pl.DataFrame(
        {
            "name": [name for _, _, name, _ in frames],
            "thread": [thread for *_, thread in frames],
            "start_ns": [scale * start for start, *_ in frames],
            "end_ns": [scale * (start + long) for start, long, _, _ in frames],
        },
        schema_overrides={"name": pl.String, "thread": pl.Int64, "start_ns": pl.Int64, "end_ns": pl.Int64},
    )
    return Rows("kineto", {"api": api, "gpu": gpu, "python": python})


@given(random_rows())
@settings(max_examples=20)
def test_causes_sum_to_the_idle_time_exactly(rows: Rows) -> None:
    trace = build(Path("random"), rows)
    for gaps, device in zip(idle_gaps(trace), device_times(trace), strict=True):
        assert gaps.device == device.device
        assert sum(gaps.totals().values()) == device.idle_ns
        times = gaps.by_cause(np.arange(len(gaps.starts)))
        assert (times >= 0).all()
        assert (times.sum(axis=0) == gaps.ends - gaps.starts).all()


@pytest.mark.parametrize("file", sorted((DATA / "kineto").glob("*.gz")), ids=lambda file: file.name)
def test_recordings_leave_little_unexplained(file: Path) -> None:
    (gaps,) = idle_gaps(open_trace(file))
    totals = gaps.totals()
    assert totals["unknown"] <= 0.05 * sum(totals.values())


@st.composite
def many_threads(draw: st.DrawFn) -> Rows:
    """Six threads that launch, copy, wait and load, in steps; times are in tens of µs, so that some gaps are long."""
    gpu: list[dict[str, Any]] = []
    api: list[dict[str, Any]] = []
    waits: list[dict[str, Any]] = []
    for number in range(draw(st.integers(4, 14))):
        thread, at = draw(st.integers(0, 5)), 10_000 * draw(st.integers(0, 200))
        span = {"thread": thread, "start_ns": at, "end_ns": at + 10_000 * draw(st.integers(1, 40))}
        kind = draw(st.sampled_from(["launch", "copy", "fetch", "malloc", "load", "wait", "wait", "read"]))
        if kind in {"wait", "read"}:
            waits.append({**span, "name": "pthread_cond_wait" if kind == "wait" else "read"})
            continue
        names = {"malloc": "cudaMalloc", "load": "cuModuleLoadData", "copy": "cudaMemcpyAsync"}
        api.append({**span, "name": names.get(kind, "cudaLaunchKernel"), "process": 1, "correlation": number})
        if kind in {"launch", "copy", "fetch"}:
            copied = {"copy": "HtoD", "fetch": "DtoH"}.get(kind)
            begin = span["end_ns"] + 10_000 * draw(st.integers(0, 30))
            gpu.append(
                {"kind": "memcpy" if copied else "kernel", "name": "k", "copy_kind": copied, "bytes": 4096}
                | {"device": draw(st.integers(0, 1)), "stream": 7, "process": 1, "correlation": number}
                | {"start_ns": begin, "end_ns": begin + 5_000}
            )
    steps = [
        {"name": f"ProfilerStep#{step}", "thread": 0, "start_ns": 700_000 * step, "end_ns": 700_000 * step + 650_000}
        for step in range(draw(st.integers(0, 3)))
    ]
    tables = {"api": api, "gpu": gpu, "osrt": waits, "ranges": steps}
    return Rows("kineto", {name: pl.DataFrame(rows) for name, rows in tables.items() if rows})


@settings(max_examples=12)
@given(many_threads())
def test_of_many_threads_the_moments_asked_about_are_explained_as_of_few(rows: Rows) -> None:
    trace = build(Path("random"), rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host_time, "FEW_THREADS", 6)
        few = HostTime(trace)
        expected = idle_gaps(trace, few)
        whole = few.loading()
        patch.setattr(host_time, "FEW_THREADS", 0)
        many = HostTime(trace)
        for one, other in zip(idle_gaps(trace, many), expected, strict=True):
            assert (one.starts.tolist(), one.ends.tolist()) == (other.starts.tolist(), other.ends.tolist())
            every = np.arange(len(one.starts))
            assert one.by_cause(every).tolist() == other.by_cause(every).tolist()
        found = many.loading()
        for side in ("lanes", "starts", "ends"):
            assert getattr(found, side).tolist() == getattr(whole, side).tolist()


def assert_filled(gaps: Gaps) -> None:
    """Spans are in order, each gap is exactly its spans, and their sums are the totals."""
    spans = gaps.spans
    lengths = spans.ends - spans.starts
    assert (lengths > 0).all()
    assert (spans.starts[1:] >= spans.ends[:-1]).all()
    assert (spans.starts >= gaps.starts[spans.gaps]).all()
    assert (spans.ends <= gaps.ends[spans.gaps]).all()
    assert (np.bincount(spans.gaps, lengths, len(gaps.starts)) == gaps.ends - gaps.starts).all()
    summed = {cause: int(lengths[spans.causes == number].sum()) for number, cause in enumerate(CAUSES)}
    assert summed == gaps.totals()


@pytest.mark.parametrize("file", RECORDINGS, ids=lambda file: file.name)
def test_the_spans_of_every_recording_sum_to_its_totals(file: Path) -> None:
    for gaps in idle_gaps(open_trace(file, cache=False)):
        assert_filled(gaps)


def test_the_order_of_causes_is_that_of_time(tmp_path: Path) -> None:
    """Idle from 20 to 58 µs: in a synchronising call until 30, in Python until the launch at 50, then latency."""
    events = [call("cudaStreamSynchronize", 12, 18, 9), *launched("next", 50, 58, 5, 2)]
    (gaps,) = idle_gaps(open_trace(write(tmp_path, FIRST + events)))
    spans = gaps.spans
    order = [
        (CAUSES[cause], (end - start) // 1000)
        for cause, start, end in zip(spans.causes.tolist(), spans.starts.tolist(), spans.ends.tolist(), strict=True)
    ]
    assert order == [("sync", 10), ("dispatch", 20), ("launch_latency", 8)]


def test_a_gap_before_the_first_step_is_not_a_part_of_it(tmp_path: Path) -> None:
    """A kernel, 50 ms in which nothing is recorded, and a step whose first op comes 100 µs after its begin."""
    events = launched("warm", 0, 10, 10, 1)
    for step in range(3):
        begin = 50_020 + 1_000 * step
        events += [annotation(f"ProfilerStep#{step}", begin, 1_000), op("aten::mul", begin + 100, 20)]
        events += launched("k", begin + 110, begin + 120, 880, 10 + step)
    (gaps,) = idle_gaps(open_trace(write(tmp_path, events), cache=False))
    assert gaps.totals()["cold_start"] == 50_000_000
