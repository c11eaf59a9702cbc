"""`warpline budget`: its options, and its agreement with `whatif`."""

from __future__ import annotations

import json

import pytest
from paths import ROOT

from warpline.cli.main import run

DEMO = str(ROOT / "src" / "warpline" / "data" / "demo.json.xz")
LOADER = str(ROOT / "faults" / "recordings" / "ward" / "molecules_read_by_two_workers.plain.json.gz")
NUMBERS = ["--ops", "1000", "--cpu-us", "10", "--gpu-us", "4"]


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, float]:
    assert run([*arguments, "--json"]) == 0
    found: dict[str, float] = json.loads(capsys.readouterr().out)
    return found


def test_the_fusion_factor_divides_the_dispatch_and_not_the_work(capsys: pytest.CaptureFixture[str]) -> None:
    for fusion, expected_ns in (("1", 10e6), ("2", 5e6), ("4", 4e6), ("100", 4e6)):
        found = answer(capsys, "budget", *NUMBERS, "--fusion", fusion)
        assert found["fused_step_ns"] == pytest.approx(expected_ns)
        assert found["step_ns"] == pytest.approx(10e6)


def test_80_launches_of_15_microseconds_are_1200_microseconds(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "budget", "--ops", "80", "--cpu-us", "15", "--gpu-us", "15")
    assert found["dispatch_ns"] == pytest.approx(1.2e6)
    assert answer(capsys, "budget", "--ops", "200", "--cpu-us", "15", "--gpu-us", "1")["step_ns"] == pytest.approx(3e6)


def test_the_graph_of_a_trace_gains_what_whatif_predicts(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "budget", DEMO)
    assert run(["whatif", DEMO, "--fix", "cuda_graph", "--json"]) == 0
    predicted = json.loads(capsys.readouterr().out)
    prediction = predicted["predictions"][0] if "predictions" in predicted else predicted
    assert found["graph_step_ns"] == pytest.approx(prediction["new_step_ns"]["expected"], rel=1e-6)
    assert found["step_ns"] / found["graph_step_ns"] == pytest.approx(prediction["gain"]["expected"], rel=1e-3)


def test_the_profiler_s_cost_is_taken_out(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "budget", DEMO)
    assert found["profiler_ns"] > 0
    assert found["dispatch_ns"] <= found["step_ns"] * (1 + 1e-9)


def test_loading_is_no_dispatch(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "budget", LOADER)
    assert found["bound"] == "input"
    assert found["loading_ns"] > found["dispatch_ns"] > found["work_ns"]
    assert found["dispatch_ns"] + found["loading_ns"] <= found["step_ns"] * 1.01
    assert answer(capsys, "budget", LOADER, "--cpu-us", "28")["bound"] == "cpu"


@pytest.mark.parametrize("wrong", [["--fusion", "0.5"], ["--fusion", "x"]])
def test_wrong_options_are_refused(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["budget", *NUMBERS, *wrong]) == 2
    assert capsys.readouterr().err.count("\n") == 1
