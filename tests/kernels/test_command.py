"""``warpline kernel``: the terminal, JSON and stdin."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from warpline.cli.kernel import kernel
from warpline.cli.main import run
from warpline.errors import UsageError
from warpline.kernels import identify
from warpline.reports import terminal
from warpline.reports.kernel import kernel_report

runner = CliRunner()
SEED = "cutlass_80_tensorop_s1688gemm_128x128_32x3_nn_align4"


def test_the_terminal_explains_token_by_token() -> None:
    result = runner.invoke(kernel, [SEED, "--device", "9.0"])
    assert result.exit_code == 0
    for word in ("tensorop", "TF32", "32x3", "align4", "two thirds"):
        assert word in result.output


def test_json_is_one_array_in_the_order_asked() -> None:
    result = runner.invoke(kernel, [SEED, "device_kernel", "--json"])
    records = json.loads(result.output)
    assert [record["class"] for record in records] == ["gemm", "unknown"]
    assert records[1]["reasons"]["class"]


def test_a_dash_reads_names_from_stdin() -> None:
    result = runner.invoke(kernel, ["-", "--json"], input=f"{SEED}\n\nMemset (Device)\n")
    assert [record["class"] for record in json.loads(result.output)] == ["gemm", "memory"]


def test_empty_stdin_is_a_usage_error() -> None:
    result = runner.invoke(kernel, ["-"], input="\n")
    assert isinstance(result.exception, UsageError)


def test_an_architecture_that_is_none_is_refused() -> None:
    result = runner.invoke(kernel, [SEED, "--device", "hopper"])
    assert isinstance(result.exception, UsageError)


@pytest.mark.parametrize("name", [SEED, "", "[bold]x[/bold]", "a" * 5000, "triton_poi_fused_add_0", "_ZN1a1bIiEEvv"])
def test_any_identity_can_be_shown(name: str) -> None:
    assert terminal.render(kernel_report([identify(name)]), 80).plain


@pytest.mark.parametrize("device", ["GB10", "sm121", "12.1", "NVIDIA GB10"])
def test_a_chip_is_as_good_as_its_architecture(device: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["kernel", "cutlass_80_tensorop_s1688gemm_128x128_32x3_nn_align4", "--device", device]) == 0
    assert "an Ampere kernel on an sm121 chip (a compatibility kernel)" in capsys.readouterr().out


@pytest.mark.parametrize("device", ["nothing", "MI300X", "A100"])
def test_what_has_no_architecture_is_refused(device: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["kernel", "x", "--device", device]) == 2
    assert "bad-architecture" in capsys.readouterr().err
