"""The tree as a whole: what is missing is said, the roofline, the hot line, the JSON, the frame and the sections."""

from pathlib import Path

import pytest
from dive_kernels import COPY, kernel
from msgspec.structs import replace

from warpline.dive.answer import dive_into
from warpline.dive.tree import explain, hot_lines
from warpline.reports import markdown, terminal
from warpline.reports.dive import report as sections_of
from warpline.reports.dive import shown
from warpline.sources.ncu.model import InstructionCounters, KernelReport, NcuReport, SourceCounters

WARP_STATES = ("threads_per_instruction",)


def report_of(*kernels: KernelReport) -> NcuReport:
    return NcuReport(Path("report.csv"), "csv-raw", "2025.3", kernels)


def node(found, question):  # type: ignore[no-untyped-def]
    return next(one for one in found.nodes if question in one.question)


def test_a_missing_metric_names_its_section_and_is_never_zero() -> None:
    found = explain(kernel(without=("l2_read_hits", *WARP_STATES)))
    hits = node(found, "reads hit L2")
    assert (hits.value, hits.answer) == (None, "not recorded; section MemoryWorkloadAnalysis_Tables has it")
    assert "not recorded; section WarpStateStats has it" in node(found, "What do warps wait for?").answer
    assert set(found.missing) == {"MemoryWorkloadAnalysis_Tables", "WarpStateStats"}


def test_a_report_of_the_basic_set_still_has_a_bound() -> None:
    basic = ("duration", "sm", "memory", "dram", "l2", "l1", "grid", "block", "sms", "waves", "occupancy_possible")
    found = explain(kernel(without=tuple(key for key in COPY if key not in basic), memory=85.0, dram=85.0))
    assert (found.bound, found.limiter, found.reason) == ("memory", "DRAM", "memory_bandwidth")


def test_without_counters_it_says_what_is_lacking() -> None:
    blind = replace(kernel(), metrics={})
    answer = dive_into(report_of(blind))
    (found,) = answer.found
    assert (found.reason, found.bound, found.gain.high) == ("unknown", "unknown", 1.0)
    assert "SpeedOfLight" in found.missing and "ncu --set full" in found.how
    assert [entry.code for entry in answer.health] == ["no-counters"]
    assert "is unknown" in terminal.render(sections_of(answer), 100).plain


def test_the_roofline_of_each_level() -> None:
    levels = {level.name: level for level in explain(kernel()).roofline}
    # 300 FMUL a cycle over 200,000 cycles are 6e7 FLOPs; DRAM moves 2^29 bytes.
    assert levels["DRAM"].bytes_moved == 2**29
    assert levels["DRAM"].flops_per_byte == pytest.approx(6e7 / 2**29)
    assert levels["L1"].bytes_moved == 2**29


def test_the_tensor_path_is_held_against_its_own_peak() -> None:
    paths = {
        "sm__ops_path_tensor_op_hmma_src_bf16_dst_fp32_sparsity_off.sum.pct_of_peak_sustained_elapsed": 60.0,
        "sm__ops_path_tensor_op_hgmma_src_fp16_sparsity_off.sum.pct_of_peak_sustained_elapsed": 0.0,
    }
    answer = node(explain(kernel(raw=paths)), "dense peak")
    assert (answer.value, answer.answer) == (60.0, "hmma, bf16; mma.sync reaches two thirds of the WGMMA peak")


def test_a_matmul_whose_tensor_cores_wait_is_asked_why() -> None:
    # 66 blocks on 132 SMs are half a tile for each; the FMA pipe (30 %) is busier than the tensor cores (20 %).
    idle = kernel(
        "nvjet_sm90_hsh_64x32_64x16_2x4_h_bz_splitK_NNT",
        grid=66,
        sms=132,
        sm=30.0,
        tensor=20.0,
        fma=30.0,
        alu=5.0,
        xu=1.0,
    )
    branch = next(one for one in explain(idle).tree if one.name == "tensor_cores")
    answers = {one.question: (one.value, one.answer) for one in branch.nodes}
    assert answers["Tiles for each SM?"] == (0.5, "fewer than SMs: the problem is small for this tile")
    assert answers["How busy are the pipes of an epilogue?"] == (
        30.0,
        "more than the tensor cores: conversions, or a long epilogue",
    )
    busy = explain(kernel("nvjet_sm90_hsh_64x32_64x16_2x4_h_bz_splitK_NNT", sm=90.0, tensor=90.0))
    assert not any(one.name == "tensor_cores" for one in busy.tree)


def test_the_hot_line_is_where_warps_wait() -> None:
    stalled = "smsp__pcsamp_warps_issue_stalled_"
    lines = (
        InstructionCounters(
            0, "LDG R0", "/src/copy.cu", 2, {f"{stalled}long_scoreboard": 60.0, f"{stalled}selected": 10.0}
        ),
        InstructionCounters(16, "STG R0", "/src/copy.cu", 3, {f"{stalled}selected": 30.0}),
        InstructionCounters(32, "EXIT", "", 0, {}),
    )
    source = SourceCounters(lines, {"/src/copy.cu": "void copy() {\n  y = x[i];\n  z = y;\n}"})
    first, second = hot_lines(replace(kernel(), source=source))
    assert (first.line, first.text, first.share) == (2, "y = x[i];", 0.7)
    assert first.stall == "waiting for global, local or texture memory"
    assert second.line == 3
    assert hot_lines(kernel()) == ()


def test_json_frame_and_pages_agree() -> None:
    answer = dive_into(report_of(kernel(memory=88.0, dram=88.0), kernel("other", launch=1)))
    document = answer.to_dict()
    assert document["schema"] == "warpline.dive/1"
    first = document["kernels"][0]
    assert {
        "name",
        "launch",
        "device",
        "duration_ns",
        "bound",
        "limiter",
        "reason",
        "sentence",
        "tree",
        "gain",
        "how",
    } <= set(first)
    assert set(first["tree"][0]) == {"question", "metric", "value", "unit", "answer"}
    frame = answer.kernels
    assert (
        frame["reason"].to_list() == [one["reason"] for one in document["kernels"]] == ["memory_bandwidth", "latency"]
    )
    assert frame["grid"][0] == "8192×1×1"
    text = terminal.render(sections_of(answer, verbose=True), 120).plain
    assert "memory_bandwidth" in text and "88.00 %" in text
    assert "88.00 %" in markdown.render(sections_of(answer, verbose=True))
    assert "memory_bandwidth 1" in repr(answer) and "latency" in answer._repr_html_()


def test_values_are_printed_as_ncu_prints_them() -> None:
    found = explain(kernel())
    assert shown(node(found, "How long")) == "100.00 µs"
    assert shown(node(found, "Bytes read from DRAM")) == "268.44 MB"
    assert shown(node(found, "How many blocks")) == "8,192 block"
