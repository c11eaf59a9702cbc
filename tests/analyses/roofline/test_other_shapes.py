"""What if a dimension had another size: worked out on paper, and the seeds' transformer block."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from kineto_files import launched, op, write
from paths import SHARED

from warpline.analyses.roofline.other_shapes import OtherShapes, other_shapes
from warpline.cli.main import run
from warpline.errors import CannotAnswer, UsageError
from warpline.trace.open import open_trace

H200 = {"deviceProperties": [{"id": 0, "name": "NVIDIA H200", "numSms": 132, "computeMajor": 9, "computeMinor": 0}]}
GEMM = "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_TNT"
BATCH, LENGTH, WIDTH = 4, 512, 1000


def call(name: str, start: float, shapes: list[Any], length: float, kernel: str = GEMM) -> list[Any]:
    types = ["c10::BFloat16" if shape else "Scalar" for shape in shapes]
    recorded = {"Input Dims": shapes, "Input type": types}
    return [
        op(name, start, 50, external=int(start) + 1, **recorded),
        *launched(kernel, start + 1, start + 10, length, int(start) + 1),
    ]


def attention_block() -> list[Any]:
    rows = BATCH * LENGTH
    return [
        *call("aten::mm", 0, [[rows, WIDTH], [WIDTH, WIDTH]], 100),
        *call("aten::bmm", 1000, [[BATCH, LENGTH, WIDTH], [BATCH, WIDTH, LENGTH]], 100),
        *call("aten::_softmax", 2000, [[BATCH, LENGTH, LENGTH], [], []], 100, "softmax_warp_forward"),
        *call("aten::mm", 3000, [[WIDTH, WIDTH], [WIDTH, WIDTH]], 100),
    ]


def prediction(folder: Path, events: list[Any], change: str) -> OtherShapes:
    return other_shapes(open_trace(write(folder, events, **H200)), change)


def test_rows_grow_linearly_scores_quadratically_and_weights_not_at_all(tmp_path: Path) -> None:
    found = prediction(tmp_path, attention_block(), "seq=1024")
    assert (found.old, found.inferred) == (LENGTH, "from square softmax inputs")
    growth = {(row.name, json.loads(row.shapes)[0][0]): row.new_flops / row.flops for row in found.rows}
    assert growth == {
        ("aten::mm", 2048): 2,
        ("aten::bmm", BATCH): 4,
        ("aten::_softmax", BATCH): 4,
        ("aten::mm", WIDTH): 1,
    }


def test_a_compute_bound_op_that_keeps_its_share_takes_as_much_longer(tmp_path: Path) -> None:
    found = prediction(tmp_path, attention_block(), "512:2048")
    first = next(row for row in found.rows if json.loads(row.shapes)[0][0] == BATCH * LENGTH)
    assert json.loads(first.new_shapes)[0] == [BATCH * 2048, WIDTH]
    # Once bound by compute: 2 x 2048 x 1000 x 1000 FLOPs become four times as many.
    assert first.high_ns == pytest.approx(4 * first.time_ns, rel=0.02)
    assert first.low_ns <= first.expected_ns <= first.high_ns
    kept = next(row for row in found.rows if json.loads(row.shapes)[0][0] == WIDTH)
    assert kept.expected_ns == kept.time_ns


def test_a_kernel_with_next_to_nothing_to_do_takes_the_latency_of_one(tmp_path: Path) -> None:
    shape = [BATCH, LENGTH, WIDTH]  # 12.3 MB, 2.9 µs from memory: it was faster, from the cache
    found = prediction(tmp_path, call("aten::add", 0, [shape, shape, []], 2.5, "add"), f"{LENGTH}:1")
    (row,) = found.rows
    assert row.expected_ns == 2_000


def test_the_same_size_changes_nothing(tmp_path: Path) -> None:
    found = prediction(tmp_path, attention_block(), f"{LENGTH}:{LENGTH}")
    assert found.expected_ns == found.time_ns == found.low_ns == found.high_ns


def test_a_weight_of_the_same_size_cannot_be_told_apart(tmp_path: Path) -> None:
    norm = call("aten::native_layer_norm", 4000, [[BATCH, LENGTH, LENGTH], [], [LENGTH], [LENGTH], []], 100, "norm")
    with pytest.raises(CannotAnswer, match="told apart"):
        prediction(tmp_path, [*attention_block(), *norm], "512:1024")


def test_without_a_sequence_the_dimension_must_be_named(tmp_path: Path) -> None:
    with pytest.raises(CannotAnswer, match="OLD:NEW"):
        prediction(tmp_path, call("aten::mm", 0, [[64, 64], [64, 64]], 100), "seq=128")
    with pytest.raises(CannotAnswer, match="no tensor"):
        prediction(tmp_path, attention_block(), "77:128")


@pytest.mark.parametrize(
    "wrong", ["", "seq", "seq=", "seq=x", "batch=4", "512", "512:", ":4", "seq=-4", "1:2:3", "0:5"]
)
def test_a_change_that_is_none_is_refused(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(UsageError):
        prediction(tmp_path, attention_block(), wrong)


def test_the_command_prints_the_change(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path, attention_block(), **H200)
    assert run(["roofline", str(file), "--scale", "seq=1024"]) == 0
    assert "512 (from square softmax inputs) to 1,024" in capsys.readouterr().out
    assert run(["roofline", str(file), "--scale", "seq=1024", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["schema"] == "warpline.scaled/1"


@pytest.mark.shared
def test_attention_does_not_dominate_the_block_of_512_at_4096() -> None:
    """Batch 16, hidden 4096, FFN 16384: the two products of attention are 14.3 % of the FLOPs at 4,096 positions."""
    found = other_shapes(open_trace(SHARED / "h200" / "kineto" / "block_fp32.json.gz"), "seq=4096")
    assert found.old == 512
    products = [row for row in found.rows if row.name in {"aten::mm", "aten::bmm"}]

    def share(new: bool) -> float:
        flops = [(row.name, row.new_flops if new else row.flops) for row in products]
        return sum(count for name, count in flops if name == "aten::bmm") / sum(count for _, count in flops)

    assert share(new=False) == pytest.approx(0.020, abs=0.001)
    assert share(new=True) == pytest.approx(0.143, abs=0.001)
