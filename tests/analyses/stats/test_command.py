"""The command: formats, files, refusals and exit codes."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from stats_traces import make_trace, paper_trace

from warpline.analyses.stats import REPORTS, report
from warpline.cli import main
from warpline.cli.stats import DEFAULT_REPORTS, stats
from warpline.errors import UsageError, WarplineError
from warpline.reports.frame_text import table_text, to_csv
from warpline.reports.text import shorten
from warpline.trace.trace import Trace

DOCUMENT = Path(__file__).parents[3] / "docs" / "commands" / "stats.md"


def run(monkeypatch: pytest.MonkeyPatch, trace: Trace, *arguments: str) -> tuple[int, str, str]:
    monkeypatch.setattr("warpline.cli.selection.open_trace", lambda _, **options: trace)
    result = CliRunner().invoke(stats, ["any.json", *arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def test_csv_is_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, err = run(monkeypatch, paper_trace(), "-r", "cuda_api_sum", "--format", "csv")
    assert (code, out, err) == (0, to_csv(report(paper_trace(), "cuda_api_sum")), "")


def test_reports_follow_each_other_once(monkeypatch: pytest.MonkeyPatch) -> None:
    _, out, _ = run(monkeypatch, paper_trace(), "-r", "cuda_api_sum,osrt_sum", "-r", "osrt_sum", "--format", "csv")
    assert out.count("Num Calls") == 2
    assert "\n\n" in out


def test_json_holds_answers_and_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, err = run(monkeypatch, paper_trace(), "-r", "cuda_gpu_kern_sum,um_sum", "--json")
    document = json.loads(out)
    assert code == 0
    assert document["schema"] == "warpline.stats/1"
    assert document["reports"]["cuda_gpu_kern_sum"][1]["Name"] == "beta"
    assert "cannot answer, because" in document["unanswered"]["um_sum"]
    assert err.startswith("warpline: skipped: um_sum: cannot answer, because")
    assert len(err.splitlines()) == 1


def test_exit_code_is_one_when_nothing_was_answered(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("warpline.cli.selection.open_trace", lambda _, **options: make_trace())
    assert main.run(["stats", "any.json"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert len(printed.err.splitlines()) == len(DEFAULT_REPORTS.split(","))


def test_suffix_picks_the_format_and_nothing_is_overwritten(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "api.csv"
    run(monkeypatch, paper_trace(), "-r", "cuda_api_sum", "-o", str(file))
    assert file.read_text(encoding="utf-8").startswith("Time (%),")
    with pytest.raises(UsageError, match="-f"):
        run(monkeypatch, paper_trace(), "-r", "osrt_sum", "-o", str(file))
    run(monkeypatch, paper_trace(), "-r", "osrt_sum", "-o", str(file), "-f")
    assert "poll" in file.read_text(encoding="utf-8")
    with pytest.raises(UsageError, match="unknown-format"):
        run(monkeypatch, paper_trace(), "-r", "osrt_sum", "-o", str(tmp_path / "api.xml"))


def test_file_that_cannot_be_written_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(WarplineError, match="cannot-write"):
        run(monkeypatch, paper_trace(), "-r", "osrt_sum", "-o", str(tmp_path / "absent" / "api.csv"))


@pytest.mark.parametrize("name", [name for name in REPORTS if name != "um_sum"])
def test_every_format_holds_every_row(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = report(paper_trace(), name).height
    _, out, _ = run(monkeypatch, paper_trace(), "-r", name, "--format", "csv")
    assert len(list(csv.reader(io.StringIO(out)))) == rows + 1
    _, out, _ = run(monkeypatch, paper_trace(), "-r", name, "--format", "json")
    assert len(json.loads(out)["reports"][name]) == rows
    _, out, _ = run(monkeypatch, paper_trace(), "-r", name)
    assert len(out.splitlines()) == rows + 2
    assert REPORTS[name].title in out


def test_a_narrow_table_keeps_the_name_and_says_what_it_leaves_out() -> None:
    text = table_text(report(paper_trace(), "cuda_gpu_trace"), width=80)
    *lines, note = text.splitlines()
    assert max(map(len, lines)) <= 80
    assert "[CUDA memcpy Host-to-Device]" in text
    assert note == "(no room for 14 more columns in 80; --format csv or --format json shows them all)"
    assert shorten("abcdefgh", 5) == "ab…gh"


def test_every_report_is_documented() -> None:
    document = DOCUMENT.read_text(encoding="utf-8")
    assert [name for name in REPORTS if f"`{name}`" not in document] == []
    assert [name for entry in REPORTS.values() for name in entry.older_names if f"`{name}`" not in document] == []
