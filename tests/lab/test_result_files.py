"""Results that were stored: read again without a loss, refused if they are none, and compared row by row."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from warpline.cli.main import run
from warpline.lab.model import LabColumn, LabRange, LabResult, LabResults, LabTable, LabValue
from warpline.lab.result_files import read_results, side_by_side


def results(device: str, times: dict[str, float], sizes: str = "full") -> LabResults:
    columns = (LabColumn("way", "way"), LabColumn("time_ns", "time", "ns"), LabColumn("range", "range", "gain"))
    rows: tuple[tuple[LabValue, ...], ...] = tuple((name, ns, LabRange(1.0, 2.0, 3.0)) for name, ns in times.items())
    found = LabResult("copies", "?", "seen", "why", (LabTable("ways", "Ways", columns, rows),), ("a note",), "", 1.5)
    return LabResults(device, "2.11", "13.0", "2026-11-18", "small" if sizes == "small" else "full", (found,))


def stored(folder: Path, found: LabResults) -> Path:
    path = folder / f"{found.device}.json"
    path.write_text(json.dumps(found.to_dict()))
    return path


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    found = results("A", {"pageable": 20.0, "pinned": 5.0})
    assert read_results(stored(tmp_path, found)) == found


def test_two_machines_are_compared_in_the_rows_that_both_have() -> None:
    both = side_by_side(results("A", {"pageable": 20.0, "pinned": 5.0}), results("B", {"pinned": 2.5, "other": 1.0}))
    assert both.experiments[0].tables[0].rows == (("pinned", 5.0, 2.5, 2.0),)


def test_the_command_shows_one_file_and_compares_two(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = (str(stored(tmp_path, results(name, {"pinned": ns}))) for name, ns in (("A", 5.0), ("B", 2.5)))
    assert run(["lab", a]) == 0
    assert "a note" in capsys.readouterr().out
    assert run(["lab", a, b]) == 0
    assert "2.00×" in capsys.readouterr().out
    assert run(["lab", a, b, a]) == 2
    assert run(["lab", a, "dispatch"]) == 2


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": "warpline.lab/1"}', '{"schema": "other"}', "[" * 100_000])
def test_a_file_without_results_gets_one_line(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    assert run(["lab", str(path)]) == 1
    assert "not-lab-results" in capsys.readouterr().err
    assert run(["lab", str(tmp_path / "missing.json")]) == 1


def test_small_sizes_are_not_compared_with_full_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [stored(tmp_path, one) for one in (results("A", {"pinned": 5.0}), results("B", {"pinned": 5.0}, "small"))]
    assert run(["lab", *map(str, files)]) == 2
    assert "other-sizes" in capsys.readouterr().err
