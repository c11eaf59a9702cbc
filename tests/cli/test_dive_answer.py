"""`warpline dive REPORT` to a file, and `warpline dive --compare`."""

import json
from pathlib import Path

import pytest
from ncu_files import GEMM, raw_page, raw_row

import warpline
from warpline.cli.main import run


def test_a_report_goes_to_a_file_by_its_suffix(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, output = tmp_path / "a.csv", tmp_path / "a.md"
    page.write_text(raw_page(raw_row(0, GEMM, "254.3", "100.5")))
    assert run(["dive", str(page), "-o", str(output)]) == 0
    assert "is unknown" in output.read_text()  # a duration and a bandwidth are no speed of light
    assert run(["dive", str(page), "-o", str(output)]) == 2
    assert "file-exists" in capsys.readouterr().err


def test_the_package_stays_callable_after_its_modules_are_loaded(tmp_path: Path) -> None:
    page = tmp_path / "a.csv"
    page.write_text(raw_page(raw_row(0, GEMM, "254.3", "100.5")))
    assert warpline.dive(page).kernels["reason"].to_list() == ["unknown"]
    assert warpline.dive(str(page)).to_dict()["schema"] == "warpline.dive/1"
    assert warpline.dive.compared(page, page).kernels[0].verdict == "same"


def test_two_reports_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, after = tmp_path / "a.csv", tmp_path / "b.csv"
    before.write_text(raw_page(raw_row(0, GEMM, "200.0", "100.5", warps="20.0")))
    after.write_text(raw_page(raw_row(0, GEMM, "100.0", "100.5", warps="40.0")))
    assert run(["dive", "--compare", str(before), str(after), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    (found,) = answer["kernels"]
    assert (answer["schema"], found["verdict"], found["gain"]) == ("warpline.dive_comparison/1", "faster", 2.0)
    assert "achieved occupancy went from 20 to 40 %" in found["sentence"]
    assert run(["dive", "--compare", str(before), str(after)]) == 0
    assert "2.00× faster" in capsys.readouterr().out
    assert run(["dive", "--compare", str(before)]) == 2
