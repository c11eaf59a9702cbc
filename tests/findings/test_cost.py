"""The price of a day: what a fix saves is its share of the day, in every form of the answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from paths import DEMO

from warpline.cli.main import run
from warpline.estimate import Estimate
from warpline.findings.cost import DailyCost
from warpline.findings.diagnosis import diagnose
from warpline.reports.cost import saved_words
from warpline.trace.open import open_trace


def test_twice_as_fast_saves_half_of_the_day() -> None:
    cost = DailyCost(2.50)
    assert cost.per_day == 60.0
    assert cost.saved(Estimate(1.0, 2.0, 4.0)) == Estimate(0.0, 30.0, 45.0)


def test_a_gain_that_is_rounded_to_zero_costs_much_and_divides_nothing() -> None:
    assert DailyCost(1.0).saved(Estimate(0.0, 0.0, 1.0)) == Estimate(-239_976.0, -239_976.0, 0.0)


def test_a_range_below_one_may_cost_money() -> None:
    assert DailyCost(1.0).saved(Estimate(0.8, 1.0, 1.2)).low == pytest.approx(-6.0)


def test_terminal_and_json_say_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["diagnose", str(DEMO), "--gpu-hour", "2.50", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    cost = answer["cost"]
    assert (cost["gpu_hour"], cost["per_day"]) == (2.5, 60.0)
    assert set(cost["saved_per_day"]) == {finding["fix"] for finding in answer["findings"]}
    for finding in answer["findings"]:
        expected = 60 * (1 - 1 / finding["gain"]["expected"])
        assert cost["saved_per_day"][finding["fix"]]["expected"] == pytest.approx(expected, abs=1e-3)
    first = cost["saved_per_day"][answer["verdict"]["fix"]]["expected"]
    for options in ([], ["-v"]):
        assert run(["diagnose", str(DEMO), "--gpu-hour", "2.50", *options]) == 0
        shown = " ".join(capsys.readouterr().out.split())
        assert f"{answer['verdict']['fix']} saves {first:,.2f}" in shown
        assert "if the recorded loop runs all day on one GPU" in shown


def test_the_report_says_it_at_each_finding(tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    assert run(["report", str(DEMO), "-o", str(file), "--gpu-hour", "2.50"]) == 0
    page = file.read_text()
    for finding in diagnose(open_trace(DEMO), why=True).findings:
        assert f"<dt>saves</dt><dd>{saved_words(finding, DailyCost(2.50))}</dd>" in page


def test_without_a_price_nothing_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["diagnose", str(DEMO), "--json"]) == 0
    assert "cost" not in json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("price", ["0", "-1", "x"])
def test_a_price_is_a_positive_number(price: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["diagnose", str(DEMO), "--gpu-hour", price]) == 2
    assert capsys.readouterr().err.startswith("warpline: usage:")
