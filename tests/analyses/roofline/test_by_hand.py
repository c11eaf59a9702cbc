"""The roofline without a trace: figures that anybody can check on the back of an envelope."""

from __future__ import annotations

import json

import pytest

from warpline.analyses.roofline.by_hand import envelope
from warpline.cli.main import run
from warpline.errors import UsageError
from warpline.hardware import chips
from warpline.work.op_from_text import FORMS, work_of_text


@pytest.mark.parametrize(
    ("shape", "time_ns", "tflops"),
    [
        ("mm 8192x8192x8192", 31_139_000, 35.3),
        ("mm 4096", 3_692_000, 37.2),
        ("mm 4096x4096x4096", 188_585_281, 0.729),
    ],
)
def test_a_matmul_s_rate_follows_from_its_shape_and_time(shape: str, time_ns: int, tflops: float) -> None:
    answer = envelope(shapes=[shape], dtype="tf32", device="GB10", time_ns=time_ns)
    assert answer.flops_per_second is not None
    assert float(f"{answer.flops_per_second / 1e12:.3g}") == tflops
    assert answer.verdict == "possible"
    assert answer.bound == "compute"


@pytest.mark.parametrize(
    ("shape", "time_ns", "gigabytes", "percent"),
    [("relu 8192x16384", 5_034_312, 213, 78.1), ("add 8192x4096", 1_855_540, 217, 79.5)],
)
def test_the_bandwidth_of_ops_by_element(shape: str, time_ns: int, gigabytes: int, percent: float) -> None:
    answer = envelope(shapes=[shape], dtype="fp32", device="GB10", time_ns=time_ns)
    assert answer.bytes_per_second is not None
    assert answer.roof_pct is not None
    assert round(answer.bytes_per_second / 1e9) == gigabytes
    assert round(answer.roof_pct, 1) == percent
    assert answer.bound == "memory"


LAYER = ["mm 2048x12288x4096", "mm 2048x4096x4096", "mm 2048x11008x4096", "mm 2048x11008x4096", "mm 2048x4096x11008"]


def test_383_microseconds_for_a_layer_are_impossible_on_an_h100() -> None:
    """Sequence 2048, hidden 4096, FFN 11008: 829 GFLOP, so 383 µs would be 2,164 TFLOP/s."""
    answer = envelope(shapes=LAYER, dtype="fp16", device="H100", time_ns=383_000)
    assert answer.flops == 2 * 2048 * (4096 * 12288 + 4096 * 4096 + 3 * 4096 * 11008)
    assert answer.flops_per_second == pytest.approx(2164e12, rel=1e-3)
    assert answer.verdict == "impossible"
    assert answer.hard_ns > 700_000
    assert envelope(shapes=LAYER, dtype="fp16", device="H100", time_ns=1_049_000).verdict == "possible"


def test_the_ridge_of_an_h100_is_the_cited_peak_over_the_cited_bandwidth() -> None:
    answer = envelope(flops=1e12, bytes=1e9, device="H100", dtype="bf16")
    assert answer.ridge is not None
    assert round(answer.ridge, 1) == 295.3
    assert round(990e12 / 3350e9, 1) == 295.5, "with the rounded peak that is often quoted"
    assert answer.intensity == 1000
    assert answer.verdict == "unknown", "without a time"


def test_floors_of_several_pieces_add_up() -> None:
    one = envelope(shapes=["mm 4096"], device="H100").floor_ns
    two = envelope(shapes=["mm 4096", "mm 4096"], device="H100").floor_ns
    assert one is not None
    assert two == pytest.approx(2 * one)


def test_small_data_may_be_in_the_cache_and_large_data_may_not() -> None:
    assert envelope(bytes=60e6, device="H100", time_ns=10_000).verdict == "in_cache"
    assert envelope(bytes=60e9, device="H100", time_ns=10_000_000).verdict == "impossible"


def test_without_a_ceiling_there_are_rates_and_no_floor() -> None:
    answer = envelope(shapes=["mm 4096"], dtype="fp8", device="GB10", time_ns=1_000_000)
    assert answer.floor_ns is None
    assert answer.verdict == "unknown"
    assert envelope(shapes=["mm 4096"], time_ns=1_000_000).to_dict()["hard_floor_ns"] is None


@pytest.mark.parametrize("chip", chips(), ids=lambda chip: chip.name)
def test_a_copy_at_the_data_sheet_s_bandwidth_is_possible_on_every_chip(chip: object) -> None:
    name = chip.name  # type: ignore[attr-defined]
    figure = chip.bandwidth["dram"]  # type: ignore[attr-defined]
    answer = envelope(bytes=1e12, device=name, time_ns=1e21 / figure.value)
    assert answer.verdict in {"possible", "above_measured", "in_cache"}


@pytest.mark.parametrize("name", FORMS)
def test_every_form_has_work(name: str) -> None:
    count = FORMS[name].count or 2
    work = work_of_text(f"{name} {'x'.join(['64'] * count)}", "bf16")
    assert work.bytes > 0
    assert name == "copy" or work.total_flops > 0


def test_the_work_of_a_matmul_is_counted_by_hand() -> None:
    work = work_of_text("mm 2x3x5", "bf16")
    assert work.matrix_flops == 2 * 2 * 3 * 5
    assert work.bytes == 2 * (2 * 5 + 5 * 3 + 2 * 3)


@pytest.mark.parametrize("text", ["", "mm", "mm 1x2", "mm 0", "mm 1x2x3x4", "mm axbxc", "nope 3", "relu 99999999999G"])
def test_a_bad_shape_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError):
        work_of_text(text, "bf16")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--time", "3ms"],
        ["--shape", "mm 64", "--time", "3ms", "--time", "4ms"],
        ["--flops", "x"],
        ["--flops", "1e999"],
        ["--flops", "1", "--time", "3"],
        ["--flops", "1", "--time", "0ms"],
        ["--flops", "1", "--device", "nothing"],
        ["--shape", "mm 4096", "--dtype", "nothing"],
        ["trace.json", "--flops", "1"],
    ],
)
def test_bad_options_are_one_line_and_exit_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["roofline", *arguments]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_the_command_says_what_is_impossible_and_exits_with_4(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["roofline", "--flops", "828.9G", "--time", "383us", "--device", "H100", "--dtype", "fp16"]
    assert run(command) == 4
    assert "impossible" in capsys.readouterr().out
    assert run([*command, "--json"]) == 4
    assert json.loads(capsys.readouterr().out)["verdict"] == "impossible"


def test_a_shape_alone_gives_its_floor(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["roofline", "--shape", "mm 8192", "--device", "H100"]) == 0
    assert "at least 1.11 ms (compute-bound)" in capsys.readouterr().out


def test_a_time_for_each_shape_shows_how_they_scale(capsys: pytest.CaptureFixture[str]) -> None:
    """Twice the size is 8 times the FLOPs and 4 times the bytes."""
    words = ["roofline", "--dtype", "tf32", "--device", "GB10", "--shape", "mm 4096", "--time", "3.71ms"]
    words += ["--shape", "mm 8192", "--time", "31.139ms"]
    assert run(words) == 0
    printed = capsys.readouterr().out
    assert "mm 8192 takes 8.39× as long as mm 4096, for 8× the FLOPs" in printed
    assert "35.3 TFLOP/s" in printed
    assert run([*words, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["schema"], len(answer["shapes"])) == ("warpline.scaling/1", 2)


def test_sizes_without_an_op_say_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["roofline", "--shape", "4096x4096x4096"]) == 2
    assert 'write an op before them: "mm 4096x4096x4096"' in capsys.readouterr().err


def test_work_alone_says_what_to_add(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["roofline", "--flops", "1e12"]) == 0
    assert "add --device NAME for the least time, --time for the rate" in " ".join(capsys.readouterr().out.split())
