"""Convolutions and their layout on hand-made traces."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_programs import CONV_LAST, TO_FIRST, TO_LAST, Program, judged, repeated

MI210 = {"deviceProperties": [{"id": 0, "name": "AMD Instinct MI210", "computeMajor": 9, "computeMinor": 0}]}


@pytest.mark.parametrize(
    ("op", "shape", "found"),
    [
        ("aten::cudnn_convolution", [64, 256, 56, 56], True),
        ("aten::convolution_backward", [64, 256, 3136], False),
        ("aten::conv1d", [64, 256, 1, 3136], False),
    ],
)
def test_sequences_have_no_channels_last(tmp_path: Path, op: str, shape: list[int], found: bool) -> None:
    def body(program: Program) -> None:
        for _ in range(4):
            program.op(op, (TO_LAST, 200), (CONV_LAST, 300), (TO_FIRST, 200), shapes=[shape, shape])
        program.wait()

    rules = {finding.rule for finding in judged(tmp_path, body).findings}
    assert ("channels_first" in rules) == found


@pytest.mark.parametrize(
    ("layout", "found"), [("ndhwckrsc_ndhwc", False), ("nhwckrsc_nchw", False), ("nchwkcrs_nchw", True)]
)
def test_a_kernel_s_name_tells_its_layout(tmp_path: Path, layout: str, found: bool) -> None:
    name = CONV_LAST.replace("nhwckrsc_nhwc", layout)

    def body(program: Program) -> None:
        program.op("aten::cudnn_convolution", (name, 1000), shapes=[[8, 64, 32, 64, 64], [64, 64, 3, 3, 3]])
        program.wait()

    rules = {finding.rule for finding in judged(tmp_path, body).findings}
    assert ("channels_first" in rules) == found


def test_no_layout_is_advised_where_there_are_no_tensor_cores(tmp_path: Path) -> None:
    def body(program: Program) -> None:
        for _ in range(4):
            program.op(
                "aten::miopen_convolution",
                ("miopenSp3AsmConv_v30_3_1_gfx9_fp16_dot2_edc_f3x2_stride1", 1000),
                shapes=[[64, 256, 56, 56], [256, 256, 3, 3]],
            )
        program.wait()

    program = repeated(body)
    program.device = MI210
    assert "channels_first" not in {finding.rule for finding in program.judged(tmp_path).findings}
