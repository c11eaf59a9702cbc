"""The step in parts: sums that are exact, parts on paper, and the figures of recorded layers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kineto_files import annotation, call, frame, kernel, launched, memset, op, write
from paths import DEMO, SHARED

from warpline.analyses.breakdown import device_times
from warpline.analyses.parts.roles import role_of_name, role_of_op
from warpline.analyses.parts.table import GAPS, WAYS, PartsTable, counted_times, parts_table
from warpline.cli.main import run
from warpline.errors import CannotAnswer, UnreadableFile, UsageError
from warpline.trace.open import open_trace
from warpline.trace.trace import Window

GEMM = "nvjet_sm90_hsh_256x128_64x4_1x2_h_bz_coopA_TNT"


def table_of(folder: Path, events: list[Any], **options: Any) -> PartsTable:
    return parts_table(open_trace(write(folder, events)), **options)


def rows(table: PartsTable, *columns: str) -> dict[str, Any]:
    found = table.frame.select("part", *columns).rows()
    return {name: values[0] if len(values) == 1 else tuple(values) for name, *values in found}


def assert_sums(table: PartsTable) -> None:
    assert int(table.frame["gpu_ns"].sum()) == table.window_ns
    assert int(table.classes["gpu_ns"].sum()) == table.window_ns
    assert (table.frame["gpu_ns"] >= 0).all()


def test_ranges_gaps_and_idle_inside(tmp_path: Path) -> None:
    events = [
        annotation("forward", 0, 100),
        annotation("mlp", 40, 50),
        call("cudaLaunchKernel", 5, 5, 1),
        call("cudaLaunchKernel", 15, 5, 2),
        call("cudaLaunchKernel", 45, 5, 3),
        kernel(GEMM, 100, 10, 1),
        kernel(GEMM, 115, 10, 2),
        kernel(GEMM, 140, 20, 3),
    ]
    table = table_of(tmp_path, events, by="range")
    assert rows(table, "gpu_ns", "idle_inside_ns", "calls") == {
        "forward": (20_000, 5_000, 1),
        "mlp": (20_000, 0, 1),
        GAPS: (20_000, None, None),
    }
    assert table.window_ns == 60_000
    assert_sums(table)


def test_overlapping_operations_count_once_and_compute_first(tmp_path: Path) -> None:
    events = [
        call("cudaMemcpyAsync", 0, 2, 1),
        call("cudaLaunchKernel", 3, 2, 2),
        kernel("Memcpy HtoD (Pinned -> Device)", 10, 30, 1, category="gpu_memcpy", stream=9, bytes=10),
        kernel(GEMM, 20, 10, 2),
    ]
    table = table_of(tmp_path, events, by="class")
    assert rows(table, "gpu_ns") == {"memcpy": 20_000, "gemm": 10_000, GAPS: 0}
    assert table.operations_ns == 40_000


def test_little_work_in_long_kernels_is_latency_and_a_copy_has_bandwidth(tmp_path: Path) -> None:
    """An add of 8 numbers that takes 10 µs, and a copy of 1 MB in 10 ms; on a chip without peaks nothing can be said."""
    events = [
        op("aten::add", 0, 10, **{"Input Dims": [[8], [8]], "Input type": ["float", "float"]}),
        call("cudaLaunchKernel", 3, 2, 1),
        call("cudaMemcpyAsync", 20, 2, 2),
        kernel("vectorized_elementwise_kernel", 30, 10, 1),
        kernel("Memcpy HtoD (Pinned -> Device)", 50, 10_000, 2, category="gpu_memcpy", bytes=1_000_000),
    ]
    trace = open_trace(write(tmp_path, events))
    table = parts_table(trace, by="class", device="NVIDIA H200")
    found = rows(table, "verdict")
    assert found["elementwise"] == "latency: little work in each"
    assert found["memcpy"].endswith("× its bandwidth limit")
    assert rows(parts_table(trace, by="class"), "verdict")["elementwise"] == "unknown peaks"


def test_an_operation_of_the_step_before_has_no_part_in_the_chosen_steps(tmp_path: Path) -> None:
    events: list[Any] = [annotation(f"ProfilerStep#{step}", 100 * step, 100) for step in range(3)]
    events += [*launched(GEMM, 10, 20, 100, 1), *launched(GEMM, 150, 160, 20, 2), *launched(GEMM, 250, 260, 20, 3)]
    table = parts_table(open_trace(write(tmp_path, events), steps="1:2"), by="class")
    assert rows(table, "gpu_ns") == {"gemm": 20_000, GAPS: 60_000}
    assert_sums(table)


def test_layers_of_one_kind_are_one_part(tmp_path: Path) -> None:
    """Two MLPs with two Linears each, and a head that is called once: three parts."""
    events = list[Any]()
    modules = [("MLP_0", "Linear_0"), ("MLP_0", "Linear_1"), ("MLP_1", "Linear_2"), ("MLP_1", "Linear_3")]
    for number, (outer, inner) in enumerate([*modules, ("Head_0", "Linear_4")], 1):
        begin = 100.0 * number
        events += [
            frame(f"nn.Module: {outer}", begin, 90, 10 * number, None),
            frame(f"nn.Module: {inner}", begin + 5, 80, 10 * number + 1, 10 * number),
            op("aten::mm", begin + 10, 20, external=number),
            *launched(GEMM, begin + 15, begin + 40, number, number),
        ]
    found = rows(table_of(tmp_path, events, by="module"), "gpu_ns")
    assert {name: time for name, time in found.items() if name != GAPS} == {
        "MLP > Linear 1": 1_000 + 3_000,
        "MLP > Linear 2": 2_000 + 4_000,
        "Head_0 > Linear_4": 5_000,
    }


def test_a_backward_pass_is_a_part_of_its_own(tmp_path: Path) -> None:
    events = [
        frame("train.py(1): main", 0, 900, 1, None),
        frame("nn.Module: Block_0", 5, 100, 2, 1),
        frame("nn.Module: GPT2MLP_0", 10, 50, 3, 2),
        op("aten::mm", 20, 20, external=1, **{"Sequence number": 5, "Fwd thread id": 0}),
        *launched(GEMM, 25, 300, 10, 1),
        op("MmBackward0", 200, 40, external=2, thread=200, **{"Sequence number": 5, "Fwd thread id": 1}),
        call("cudaLaunchKernel", 210, 5, 2, thread=200, external=2),
        kernel(GEMM, 320, 30, 2),
    ]
    assert rows(table_of(tmp_path, events), "gpu_ns") == {
        "Block_0 > GPT2MLP_0 backward": 30_000,
        "Block_0 > GPT2MLP_0": 10_000,
        GAPS: 10_000,
    }
    roles = rows(table_of(tmp_path, events, by="role"), "gpu_ns")
    assert roles == {"MLP backward": 30_000, "MLP": 10_000, GAPS: 10_000}


def test_the_matmul_with_the_embeddings_sizes_is_the_head(tmp_path: Path) -> None:
    def shaped(name: str, start: float, number: int, shapes: list[Any]) -> list[Any]:
        types = ["float" for _ in shapes]
        launch = launched(GEMM, start + 1, start + 20, 10, number)
        return [op(name, start, 10, external=number, **{"Input Dims": shapes, "Input type": types}), *launch]

    events = [
        *shaped("aten::embedding", 0, 1, [[5000, 64], [2, 8]]),
        *shaped("aten::mm", 100, 2, [[16, 64], [64, 64]]),
        *shaped("aten::mm", 200, 3, [[16, 64], [64, 5000]]),
    ]
    assert set(rows(table_of(tmp_path, events, by="role"), "gpu_ns")) == {"embedding", "other", "head", GAPS}


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("LlamaAttention_3", "attention"),
        ("qkv_proj", "attention projections"),
        ("LlamaRotaryEmbedding_0", "attention"),
        ("LlamaMLP_0", "MLP"),
        ("gate_proj", "MLP"),
        ("LlamaRMSNorm_1", "norm"),
        ("ln_1", "norm"),
        ("Embedding_0", "embedding"),
        ("lm_head", "head"),
        ("CrossEntropyLoss_0", "loss"),
        ("Optimizer.step#AdamW.step", "optimizer"),
        ("Linear_4", ""),
        ("LlamaForCausalLM_0", ""),
    ],
)
def test_roles_by_name(name: str, role: str) -> None:
    assert role_of_name(name) == role


def test_roles_by_op() -> None:
    assert role_of_op("aten::scaled_dot_product_attention") == "attention"
    assert role_of_op("aten::_foreach_add_") == "optimizer"
    assert role_of_op("aten::mm") == ""


@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 25), st.integers(0, 3)), min_size=1, max_size=25),
    st.integers(0, 40),
    st.integers(1, 60),
)
def test_every_moment_counts_once(spans: list[tuple[int, int, int]], begin: int, length: int) -> None:
    starts = np.array([start for start, _, _ in spans], np.int64)
    ends = starts + np.array([size for _, size, _ in spans], np.int64)
    rank = np.array([rank for _, _, rank in spans], np.int64)
    counted = counted_times(starts, ends, rank, Window(begin, begin + length))
    expected = np.zeros(len(spans), np.int64)
    for moment in range(begin, begin + length):
        running = [at for at in range(len(spans)) if starts[at] <= moment < ends[at]]
        if running:
            expected[min(running, key=lambda at: (rank[at], starts[at], at))] += 1
    assert int(counted.sum()) == int(expected.sum())
    for one in range(4):
        assert int(counted[rank == one].sum()) == int(expected[rank == one].sum())
    assert (counted >= 0).all()


@given(
    st.lists(
        st.tuples(
            st.integers(0, 400), st.integers(0, 90), st.integers(0, 2), st.sampled_from("kcm"), st.integers(0, 300)
        ),
        min_size=1,
        max_size=20,
    ),
    st.sampled_from(WAYS),
)
@settings(max_examples=15)
def test_parts_of_random_traces_sum_to_the_window(
    tmp_path_factory: pytest.TempPathFactory, work: list[tuple[int, int, int, str, int]], way: str
) -> None:
    events: list[Any] = [annotation("forward", 0, 150), annotation("attn", 20, 60), op("aten::mm", 30, 40, external=1)]
    for number, (start, length, stream, kind, launch) in enumerate(work, 1):
        events.append(call("cudaLaunchKernel", launch, 3, number))
        if kind == "k":
            events.append(kernel(GEMM, start, length, number, stream=stream))
        elif kind == "c":
            events.append(kernel("Memcpy HtoD", start, length, number, stream=stream, category="gpu_memcpy", bytes=8))
        else:
            events.append(memset(start, length, number, stream=stream))
    trace = open_trace(write(tmp_path_factory.mktemp("trace"), events), cache=False)
    table = parts_table(trace, by=way)
    assert_sums(table)
    (device,) = device_times(trace)
    (gaps,) = table.frame.filter(pl.col("part") == GAPS)["gpu_ns"]
    assert gaps == device.idle_ns


@pytest.mark.parametrize("way", WAYS)
def test_the_bundled_trace_sums_to_the_window_and_to_each_steps(way: str) -> None:
    assert_sums(parts_table(open_trace(DEMO), by=way))
    assert_sums(parts_table(open_trace(DEMO, steps="1:3"), by=way))


def test_no_gpu_work_and_unknown_words_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CannotAnswer):
        table_of(tmp_path, [op("aten::mm", 0, 10)])
    with pytest.raises(UsageError):
        table_of(tmp_path, launched(GEMM, 0, 10, 10, 1), by="colour")


def test_the_command_prints_json_and_writes_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(write(tmp_path, launched(GEMM, 5, 30, 10, 1)))
    assert run(["parts", path, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["schema"], answer["parts"][0]["part"]) == ("warpline.parts/1", "other")
    target = tmp_path / "parts.md"
    assert run(["parts", path, "-o", str(target)]) == 0
    assert "gemm" in target.read_text()


@pytest.mark.shared
def test_a_recorded_layer_by_its_ranges() -> None:
    table = parts_table(open_trace(SHARED / "h200" / "nsys" / "layer_eager.sqlite.gz"))
    assert table.by == "range"
    mean_us = {
        name: kernel_ns / calls / 1000
        for name, (kernel_ns, calls) in rows(table, "kernel_ns", "calls").items()
        if calls
    }
    expected = {"qkv_proj": 269, "gate_proj": 249, "up_proj": 253, "down_proj": 233, "o_proj": 91, "norm_1": 18, "norm_2": 17,
                "residual_1": 12, "residual_2": 12, "silu_mul": 58}  # fmt: skip
    assert {name: abs(mean_us[name] - value) <= 1 for name, value in expected.items()} == dict.fromkeys(expected, True)
    (gemm,) = table.classes.filter(pl.col("part") == "gemm")["kernel_share"]
    assert round(100 * gemm, 1) == 88.5


@pytest.mark.shared
def test_the_matmuls_of_a_recorded_block() -> None:
    table = parts_table(open_trace(SHARED / "h200" / "kineto" / "block_fp32.json.gz"))
    (gemm,) = table.classes.filter(pl.col("part") == "gemm")["kernel_share"]
    assert round(100 * gemm, 1) == 94.2
    matmuls = table.shapes.filter(pl.col("op") == "aten::mm")
    assert matmuls["kernel"].n_unique() >= 2
    assert {"aten::clamp_min", "aten::add", "aten::div", "aten::_softmax"} <= set(table.shapes["op"])


@pytest.mark.shared
def test_roles_without_modules_are_those_with_modules() -> None:
    programs = SHARED / "h200" / "programs"
    with_modules, without = (
        rows(parts_table(open_trace(programs / name), by="role"), "gpu_ns")
        for name in ("vit.stacks.json.gz", "vit.json.gz")
    )
    for part in ("attention", "attention backward", "MLP", "MLP backward", "norm", "optimizer"):
        # Of the two recordings, one has modules; with them, residual additions are told apart from the blocks.
        assert without[part] == pytest.approx(with_modules[part], rel=0.2), part


PROFILES = sorted(
    path.relative_to(SHARED).as_posix()
    for path in SHARED.glob("*/*/*")
    if path.name.endswith(("json.gz", "sqlite.gz")) and path.stat().st_size < 3_000_000
)


@pytest.mark.shared
@pytest.mark.parametrize("name", PROFILES)
def test_recorded_profiles_sum_to_the_window(name: str) -> None:
    try:
        trace = open_trace(SHARED / name)
    except UnreadableFile as error:
        pytest.skip(f"not a profile: {error.code}")
    if not len(trace.gpu):
        pytest.skip("nothing ran on a device")
    for way in ("role", "range"):
        assert_sums(parts_table(trace, by=way))


def test_work_without_a_name_says_what_would_give_it_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outside = [call("cudaLaunchKernel", 105, 5, 1), kernel(GEMM, 120, 80, 1)]
    within = [call("cudaLaunchKernel", 5, 5, 2), kernel(GEMM, 20, 60, 2)]
    both = write(tmp_path, [annotation("ProfilerStep#0", 0, 300), annotation("mlp", 0, 100), *within, *outside])
    assert run(["parts", str(both), "--by", "range", "--no-cache"]) == 0
    assert "(none): most of the work is in no named range" in " ".join(capsys.readouterr().out.split())
    most_named = [*within, call("cudaLaunchKernel", 15, 5, 1), kernel(GEMM, 120, 80, 1)]
    named = write(tmp_path, [annotation("ProfilerStep#0", 0, 300), annotation("mlp", 0, 100), *most_named])
    assert run(["parts", str(named), "--by", "range", "--no-cache"]) == 0
    assert "(none):" not in capsys.readouterr().out
