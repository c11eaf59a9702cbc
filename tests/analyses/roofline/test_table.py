"""The roofline of a trace: numbers on paper, states, and coverage of recorded profiles."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from kineto_files import call, copy, kernel, launched, memset, op, write
from paths import DATA, SHARED

from warpline.analyses.roofline.entry import ABOVE_MEASURED, FINE, IMPOSSIBLE, IN_CACHE, SCHEMA, RooflineTable
from warpline.analyses.roofline.pieces import GpuWork
from warpline.analyses.roofline.table import roofline_table
from warpline.cli.roofline import roofline
from warpline.errors import CannotAnswer, UsageError
from warpline.reports.roofline import report, shape_label, to_dict
from warpline.reports.roofline_plot import svg
from warpline.reports.terminal import render
from warpline.trace.open import open_trace

H200 = {"deviceProperties": [{"id": 0, "name": "NVIDIA H200", "numSms": 132, "computeMajor": 9, "computeMinor": 0}]}
GEMM = "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_TNT"
SIMT = "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>(cutlass_80_simt_sgemm_128x32_8x5_nn_align1::Params)"


def shaped(name: str, start: float, shapes: list[Any], dtype: str = "c10::BFloat16", **extra: Any) -> Any:
    return op(
        name,
        start,
        50,
        external=int(start) + 1,
        **{"Input Dims": shapes, "Input type": [dtype if shape else "Scalar" for shape in shapes], **extra},
    )


def table_of(folder: Path, events: list[Any], **options: Any) -> RooflineTable:
    return roofline_table(open_trace(write(folder, events, **H200)), **options)


def mm(start: float, length: float, size: int = 8192, name: str = GEMM, dtype: str = "c10::BFloat16") -> list[Any]:
    return [
        shaped("aten::mm", start, [[size, size], [size, size]], dtype),
        *launched(name, start + 1, start + 10, length, int(start) + 1),
    ]


def test_a_product_against_the_measured_peak(tmp_path: Path) -> None:
    table = table_of(tmp_path, mm(0, 2000))
    (entry,) = table.entries
    assert entry.flops == 2 * 8192**3
    assert entry.bytes == 3 * 2 * 8192**2
    assert entry.flops_per_second == pytest.approx(2 * 8192**3 / 2e-3)
    assert table.roof is not None
    peak = table.roof.compute("bf16", "tensor")
    assert peak is not None
    assert entry.roof_pct == pytest.approx(100 * 2 * 8192**3 / peak.value / 2e-3)
    assert (entry.bound, entry.math, entry.state) == ("compute", "bf16 tensor", FINE)
    assert entry.headroom_ns == pytest.approx(2e6 - 2 * 8192**3 / peak.value * 1e9)
    assert table.modelled_pct == 100


def test_operations_that_overlap_are_said_to_share_the_chip(tmp_path: Path) -> None:
    at_once = [*launched(GEMM, 1, 10, 100, 1, stream=7), *launched(GEMM, 2, 60, 100, 2, stream=8)]
    table = table_of(tmp_path, [*mm(200, 100), *at_once])
    assert (table.total_ns, table.busy_ns) == (300_000, 250_000)
    text = render(report(table, "title", "x.json"), 200).plain
    assert "Streams overlap: 300 µs of operations within 250 µs of busy GPU" in text
    one_by_one = table_of(tmp_path, [*mm(0, 100), *mm(200, 100)])
    assert "overlap" not in render(report(one_by_one, "title", "x.json"), 200).plain


def test_a_collective_has_no_roofline(tmp_path: Path) -> None:
    """It also waits for other ranks: its rate is shown, and no minimum."""
    events = [
        shaped("nccl:all_reduce", 0, [[1 << 20]], "float"),
        *launched("ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", 1, 10, 5_000, 1),
        *mm(10_000, 2_000),
    ]
    table = table_of(tmp_path, events)
    collective = next(entry for entry in table.entries if entry.name == "nccl:all_reduce")
    assert collective.bytes_per_second > 0
    assert (collective.floor_ns, collective.roof_pct, collective.headroom_ns) == (None, None, None)
    assert table.bounded_ns == 2_000_000


def test_twice_the_dense_peak_is_impossible_and_looks_like_sparsity(tmp_path: Path) -> None:
    (entry,) = table_of(tmp_path, mm(0, 600)).entries
    assert entry.state == IMPOSSIBLE
    assert "sparsity" in entry.note


def test_ten_times_the_peak_is_a_wrong_shape(tmp_path: Path) -> None:
    (entry,) = table_of(tmp_path, mm(0, 100)).entries
    assert entry.state == IMPOSSIBLE
    assert "shapes or types" in entry.note


def test_between_measurement_and_data_sheet_is_possible(tmp_path: Path) -> None:
    (entry,) = table_of(tmp_path, mm(0, 1200)).entries
    assert entry.state == ABOVE_MEASURED
    assert entry.headroom_ns == 0


@pytest.mark.parametrize(
    ("name", "math"),
    [
        (SIMT, "fp32 vector"),
        (
            "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32_warpgroupsize2x1x1_execute_segment_k_off_kernel__5x_cublas",
            "tf32 tensor",
        ),
    ],
)
def test_the_kernel_says_whether_fp32_runs_on_tensor_cores(tmp_path: Path, name: str, math: str) -> None:
    (entry,) = table_of(tmp_path, mm(0, 30000, name=name, dtype="float")).entries
    assert entry.math == math


def test_small_tensors_faster_than_memory_are_in_the_cache(tmp_path: Path) -> None:
    size = 8 * 1024 * 1024
    events = [
        shaped("aten::add", 0, [[size], [size], []]),
        *launched("void at::native::vectorized_elementwise_kernel<8>", 1, 10, 7, 1),
    ]
    (entry,) = table_of(tmp_path, events).entries
    assert entry.bytes == 3 * 2 * size
    assert entry.state == IN_CACHE
    assert "cache" in entry.note


def test_large_tensors_faster_than_memory_are_impossible(tmp_path: Path) -> None:
    size = 1 << 30
    events = [
        shaped("aten::neg", 0, [[size]]),
        *launched("void at::native::vectorized_elementwise_kernel<8>", 1, 10, 500, 1),
    ]
    (entry,) = table_of(tmp_path, events).entries
    assert entry.state == IMPOSSIBLE


def test_work_below_the_cost_of_a_kernel_is_bound_by_latency(tmp_path: Path) -> None:
    events = [
        shaped("aten::neg", 0, [[16]]),
        *launched("void at::native::vectorized_elementwise_kernel<8>", 1, 10, 2, 1),
    ]
    (entry,) = table_of(tmp_path, events).entries
    assert entry.bound == "latency"


def test_a_memset_is_part_of_the_op_s_time_and_not_of_its_work(tmp_path: Path) -> None:
    events = [*mm(0, 1990), call("cudaMemsetAsync", 2, 1, 99), memset(5, 10, 99)]
    (entry,) = table_of(tmp_path, events).entries
    assert entry.time_ns == 2_000_000
    assert entry.flops == 2 * 8192**3
    kernels = table_of(tmp_path, events, by="kernel").entries
    assert [(round(item.flops), item.count) for item in kernels] == [(2 * 8192**3, 1), (0, 1)]
    assert kernels[1].model == "helper"


def test_kernels_of_one_call_share_its_work_by_their_time(tmp_path: Path) -> None:
    events = [*mm(0, 1500), call("cudaLaunchKernel", 8, 1, 99), kernel("splitKreduce_kernel", 1600, 500, 99)]
    entries = table_of(tmp_path, events, by="kernel").entries
    assert [entry.flops for entry in entries] == pytest.approx([0.75 * 2 * 8192**3, 0.25 * 2 * 8192**3])
    (entry,) = table_of(tmp_path, events).entries
    assert entry.flops == sum(item.flops for item in entries)


def test_copies_are_held_against_the_link(tmp_path: Path) -> None:
    events = [
        shaped("aten::copy_", 0, [[1 << 20], [1 << 20], []], "float"),
        call("cudaMemcpyAsync", 1, 5, 1),
        copy("Memcpy HtoD (Pageable -> Device)", 10, 400, 1, 4 << 20),
    ]
    table = table_of(tmp_path, events)
    (entry,) = table.entries
    assert (entry.bound, entry.bytes, entry.flops) == ("link", 4 << 20, 0)
    assert table.roof is not None
    link = table.roof.bandwidth("h2d")
    assert link is not None
    assert entry.roof_pct == pytest.approx(100 * (4 << 20) / link.value / 400e-6)


def test_an_op_without_a_model_is_listed_with_its_share(tmp_path: Path) -> None:
    events = [*mm(0, 1500), shaped("mylib::secret", 3000, [[4]]), *launched("secret_kernel", 3001, 3010, 500, 9)]
    table = table_of(tmp_path, events)
    assert table.modelled_pct == pytest.approx(75)
    (missing,) = table.unmodelled
    assert (missing.name, missing.why, missing.time_ns) == ("mylib::secret", "no model for mylib::secret", 500_000)


def test_time_without_a_model_goes_to_the_op_around_it_that_has_one(tmp_path: Path) -> None:
    events = [
        op(
            "aten::linear", 0, 100, external=1, **{"Input Dims": [[64, 32], [16, 32]], "Input type": ["float", "float"]}
        ),
        op("mylib::secret", 1, 50, external=2, **{"Input Dims": [[4]], "Input type": ["float"]}),
        *launched("secret_kernel", 2, 110, 5, 2),
    ]
    (entry,) = table_of(tmp_path, events).entries
    assert (entry.name, entry.flops) == ("aten::linear", 2 * 64 * 32 * 16)


def test_work_is_never_counted_twice(tmp_path: Path) -> None:
    events = [
        op(
            "aten::linear", 0, 100, external=1, **{"Input Dims": [[64, 32], [16, 32]], "Input type": ["float", "float"]}
        ),
        op("aten::mm", 1, 20, external=2, **{"Input Dims": [[64, 32], [32, 16]], "Input type": ["float", "float"]}),
        *launched(SIMT, 2, 110, 5, 2),
        op("mylib::secret", 30, 20, external=3, **{"Input Dims": [[4]], "Input type": ["float"]}),
        *launched("secret_kernel", 31, 120, 5, 3),
    ]
    table = table_of(tmp_path, events)
    assert [entry.name for entry in table.entries] == ["aten::mm"]
    assert [item.name for item in table.unmodelled] == ["mylib::secret"]


def test_an_unknown_device_gives_rates_and_no_ceilings(tmp_path: Path) -> None:
    trace = open_trace(write(tmp_path, mm(0, 2000)))
    table = roofline_table(trace)
    (entry,) = table.entries
    assert table.roof is None
    assert (entry.roof_pct, entry.headroom_ns, entry.bound) == (None, None, "")
    assert entry.flops_per_second > 0
    assert roofline_table(trace, device="H100-SXM").entries[0].roof_pct == pytest.approx(
        100 * 2 * 8192**3 / 989.4e12 / 2e-3
    )


def test_without_shapes_it_says_what_to_record(tmp_path: Path) -> None:
    table = table_of(tmp_path, [op("aten::mm", 0, 50, external=1), *launched(GEMM, 1, 10, 100, 1)])
    assert table.modelled_ns == 0
    assert "record_shapes=True" in table.unmodelled[0].why


def test_kernels_of_one_op_that_differ_in_time_alone_are_looked_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []
    row = GpuWork._row
    monkeypatch.setattr(GpuWork, "_row", lambda work, position: (looked.append(position), row(work, position))[1])
    kernels = [event for i in range(20) for event in launched(GEMM, i, 100 + 9 * i, 1 + i % 3, i + 1)]
    work = GpuWork(open_trace(write(tmp_path, [op("aten::mm", 0, 50), *kernels])))
    assert sum(len(piece.rows) for piece in work.pieces) == 20
    assert len(looked) == 1


def test_a_trace_without_gpu_work_cannot_answer(tmp_path: Path) -> None:
    with pytest.raises(CannotAnswer):
        table_of(tmp_path, [op("aten::mm", 0, 50, external=1)])


RECORDED = ["block_fp32", "layer_eager"]


@pytest.mark.parametrize("name", RECORDED)
@pytest.mark.parametrize("by", ["op", "kernel"])
def test_recorded_profiles_are_modelled_and_possible(name: str, by: str) -> None:
    table = roofline_table(open_trace(DATA / "kineto" / f"{name}.json.gz"), by=by)
    assert table.modelled_pct >= 95
    assert not [entry for entry in table.entries if entry.state == IMPOSSIBLE]
    assert sum(entry.time_ns for entry in table.entries) == pytest.approx(table.modelled_ns)


@pytest.mark.parametrize("file", sorted(DATA.glob("*/*.gz")), ids=lambda file: file.name)
def test_every_nanosecond_belongs_to_one_piece(file: Path) -> None:
    work = GpuWork(open_trace(file))
    assert sorted(row for piece in work.pieces for row in piece.rows) == list(range(len(work.gpu)))
    assert sum(piece.time_ns for piece in work.pieces) == work.time_ns.sum()
    assert all((piece.work is None) == bool(piece.why) for piece in work.pieces)


@pytest.mark.shared
@pytest.mark.parametrize(
    "path",
    [
        "h200/kineto/llama_train.json.gz",
        "h200/kineto/llama_decode.json.gz",
        "h200/kineto/layer_eager.json.gz",
        "h200/kineto/block_fp32.json.gz",
        "public/kineto/tracelens_h100_owlv2.json.gz",
    ],
)
def test_coverage(path: str) -> None:
    table = roofline_table(open_trace(SHARED / path))
    assert table.modelled_pct >= 95
    assert not [entry for entry in table.entries if entry.state == IMPOSSIBLE]


@pytest.fixture
def recorded() -> RooflineTable:
    return roofline_table(open_trace(DATA / "kineto" / "layer_eager.json.gz"))


def test_the_json_is_the_documented_one(recorded: RooflineTable) -> None:
    document = json.loads(json.dumps(to_dict(recorded, "x.json"), allow_nan=False))
    assert document["schema"] == SCHEMA
    assert document["modelled_pct"] >= 95
    assert {"name", "shapes", "time_ns", "flops", "intensity", "roof_pct", "bound", "headroom_ns", "state"} <= set(
        document["entries"][0]
    )
    assert document["ceilings"]["dram"]["source"]


def test_the_report_fits_its_width(recorded: RooflineTable) -> None:
    for width in (80, 120, 200):
        text = render(report(recorded, "title", "x.json", 10), width).plain
        assert max(map(len, text.splitlines())) <= width
        assert "aten::mm" in text
        assert "% of GPU time" in text


def test_the_plot_is_well_formed_and_names_its_ceilings(recorded: RooflineTable, tmp_path: Path) -> None:
    text = svg(recorded, "a < b & c")
    root = ElementTree.fromstring(text)
    assert root.tag.endswith("svg")
    assert "fp16 tensor" in text
    assert len(root.findall(".//{http://www.w3.org/2000/svg}circle")) > 5
    nothing = roofline_table(open_trace(write(tmp_path, mm(0, 2000))))
    assert "no peaks are known" in svg(nothing, "x")


@pytest.mark.parametrize(
    ("shapes", "label"),
    [
        ("[[2048, 4096], [4096, 12288]]", "2048×4096 · 4096×12288"),
        ("[[[0], [8, 16]], []]", "[0, 8×16]"),
        ("", ""),
        ("nonsense", "nonsense"),
        ("[[], []]", ""),
        ("3", "3"),
    ],
)
def test_shapes_read_as_people_write_them(shapes: str, label: str) -> None:
    assert shape_label(shapes) == label


def test_the_command_draws_once_and_refuses_to_overwrite(tmp_path: Path) -> None:
    file, plot = str(DATA / "kineto" / "layer_eager.json.gz"), tmp_path / "r.svg"
    runner = CliRunner()
    result = runner.invoke(roofline, [file, "--json", "--plot", str(plot), "--by", "kernel"], catch_exceptions=False)
    assert result.exit_code == 0
    assert json.loads(result.stdout)["by"] == "kernel"
    assert plot.read_text().startswith("<svg")
    with pytest.raises(UsageError, match="exists"):
        runner.invoke(roofline, [file, "--plot", str(plot)], catch_exceptions=False)
    with pytest.raises(UsageError, match="svg"):
        runner.invoke(roofline, [file, "--plot", str(tmp_path / "r.png")], catch_exceptions=False)


def test_the_command_prints_a_table(tmp_path: Path) -> None:
    result = CliRunner().invoke(roofline, [str(DATA / "kineto" / "block_fp32.json.gz"), "--top", "3"])
    assert result.exit_code == 0
    assert "tf32 tensor" in result.stdout
    assert "compute" in result.stdout


@pytest.mark.shared
def test_an_nsys_profile_is_answered_with_estimates(tmp_path: Path) -> None:
    table = roofline_table(open_trace(SHARED / "h200/nsys/bad_training.sqlite.gz"))
    assert 0 < table.modelled_pct < 100
    assert table.estimated_ns > 0
    assert {item.why for item in table.unmodelled} == {"nsys records no shapes"}


def test_kernels_of_a_graph_replay_without_its_capture_say_so(tmp_path: Path) -> None:
    replay = [call("cudaGraphLaunch", 0, 5, 1), kernel(GEMM, 10, 20, 1)]
    table = table_of(tmp_path, [*replay, *mm(100, 2000)])
    assert "replayed by a CUDA graph" in table.unmodelled[0].why


def test_kernels_of_a_graph_replay_have_the_work_of_what_was_captured() -> None:
    assert roofline_table(open_trace(DATA / "kineto" / "compiled.json.gz")).modelled_pct >= 90


def test_a_device_that_the_list_numbers_otherwise_is_still_found(tmp_path: Path) -> None:
    events = [
        shaped("aten::mm", 0, [[8192, 8192], [8192, 8192]]),
        call("cudaLaunchKernel", 1, 5, 1),
        kernel(GEMM, 10, 2000, 1, device=3),
    ]
    assert table_of(tmp_path, events).device == "H200-SXM"


def test_a_product_with_a_sparse_matrix_has_no_work_of_a_dense_one(tmp_path: Path) -> None:
    """Its recorded shape is that of the whole matrix: 2·170,000²·256 operations in 100 µs are impossible."""
    sparse = "void cusparse::csrmm_alg2_kernel<cusparse::CsrMMPolicy<long, float, float, float>, float>(float)"
    events = [shaped("aten::mm", 0, [[170_000, 170_000], [170_000, 256]]), *launched(sparse, 1, 10, 100, 1)]
    table = table_of(tmp_path, events)
    assert not table.entries
    assert [item.why for item in table.unmodelled] == ["how much of the sparse matrix is stored was not recorded"]
