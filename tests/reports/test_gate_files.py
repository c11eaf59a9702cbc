"""What a CI system takes from a gate: JUnit, the comment, and the waterfall, which hostile names cannot break."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from step_traces import steps, trace

import warpline
from warpline.cli.main import run
from warpline.reports.gate_files import waterfall

HOSTILE = "gemm]]></failure>|`<script>\x1b[31m\ufffe"


@pytest.fixture
def runs(tmp_path: Path) -> tuple[str, str, str]:
    good = trace(tmp_path, "good", steps(12, [(HOSTILE, 100.0), ("silu", 40.0)]))
    slow = trace(tmp_path, "slow", steps(12, [(HOSTILE, 160.0), ("silu", 40.0)]))
    folder = str(tmp_path / "kept")
    assert run(["baseline", "save", "train", *[str(good)] * 3, "--folder", folder]) == 0
    return str(good), str(slow), folder


def test_junit_has_a_case_for_each_budget_and_one_for_the_baseline(runs: tuple[str, str, str], tmp_path: Path) -> None:
    good, slow, folder = runs
    file = tmp_path / "gate.xml"
    limits = ["--budget", "kernels<=2", "--budget", "recorded_step_ms<=0.2"]
    assert (
        run(["gate", slow, slow, slow, "--baseline", "train", "--folder", folder, *limits, "--junit", str(file)]) == 3
    )
    suite = ElementTree.fromstring(file.read_text())
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("3", "2", "0")
    failed = {case.get("name"): case.find("failure") for case in suite}
    assert failed["kernels<=2"] is None
    assert "0.21" in (failed["recorded_step_ms<=0.2"].get("message") or "")  # type: ignore[union-attr]
    assert "slower" in (failed["not slower than train"].get("message") or "")  # type: ignore[union-attr]
    assert run(["gate", good, "--baseline", "train", "--folder", folder, "--junit", str(file)]) == 2, "it exists"


def test_another_device_fails(runs: tuple[str, str, str], tmp_path: Path) -> None:
    other = [{"id": 0, "name": "Other GPU", "numSms": 132}]
    path = trace(tmp_path, "other", steps(12, [(HOSTILE, 100.0), ("silu", 40.0)]), deviceProperties=other)
    file = tmp_path / "gate.xml"
    assert run(["gate", str(path), "--baseline", "train", "--folder", runs[2], "--junit", str(file)]) == 1
    suite = ElementTree.fromstring(file.read_text())
    assert (suite.get("failures"), suite.get("skipped")) == ("1", "0")


def test_an_inconclusive_comparison_is_skipped(runs: tuple[str, str, str], tmp_path: Path) -> None:
    path = trace(tmp_path, "near", steps(12, [(HOSTILE, 101.0), ("silu", 40.0)], jitter=3))
    file = tmp_path / "gate.xml"
    assert run(["gate", str(path), "--baseline", "train", "--folder", runs[2], "--junit", str(file)]) == 4
    suite = ElementTree.fromstring(file.read_text())
    assert (suite.get("failures"), suite.get("skipped")) == ("0", "1")


def test_the_comment_begins_with_its_mark_and_has_the_waterfall(runs: tuple[str, str, str], tmp_path: Path) -> None:
    file = tmp_path / "comment.md"
    assert run(["gate", *[runs[1]] * 3, "--baseline", "train", "--folder", runs[2], "--comment", str(file)]) == 3
    text = file.read_text()
    assert text.startswith("<!-- warpline gate train -->\n\n## warpline gate: train\n\n**Regression.**")
    assert "+60.0 µs" in text
    assert text.count("<details>") == text.count("</details>") == 1
    outside = text.replace("<script>", "", text.count("```text"))
    assert "\x1b" not in text
    assert "<script>" not in outside.partition("<details>")[2]


def test_the_bars_of_the_waterfall_follow_each_other(tmp_path: Path) -> None:
    a = trace(tmp_path, "a", steps(12, [("gemm", 150.0), ("silu", 40.0)]))
    b = trace(tmp_path, "b", steps(12, [("gemm", 50.0), ("silu", 90.0)]))
    lines = waterfall(warpline.compare(a, b)).splitlines()
    assert [line.split()[0] for line in lines] == ["A", "gemm", "silu", "B"]
    # 200 µs is 32 characters: gemm takes away the last 16, silu adds 8 to what is left.
    bars = [line[33:66].rstrip() for line in lines]
    assert bars == ["█" * 32, " " * 16 + "░" * 16, " " * 16 + "▓" * 8, "█" * 24]
