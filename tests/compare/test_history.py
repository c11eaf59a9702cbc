"""The history: every run of the gate is kept, under many writers and kills, and damage is one line."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest
from paths import ROOT
from step_traces import steps, trace

from warpline.cli.main import run
from warpline.errors import WarplineError
from warpline.sources.local_record import append, rows
from warpline.sources.record_files import record_file

WRITER = """
import sys
from pathlib import Path
from warpline.sources.local_record import append
insert = ("insert into runs (at, project, name, label, outcome, metric, device, recordings, numbers)"
          " values ('', 'p', ?, ?, '', '', '', 1, '{}')")
for number in range(int(sys.argv[3])):
    append(Path(sys.argv[1]), insert, (sys.argv[2], str(number)))
    print(number, flush=True)
"""
INSERT = (
    "insert into runs (at, project, name, label, outcome, metric, device, recordings, numbers)"
    " values (?, ?, ?, '', 'passed', 'step', 'H200', 1, ?)"
)


def writer(path: Path, name: str, count: int) -> subprocess.Popen[str]:
    source = f"{ROOT / 'src'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), name, str(count)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": source},
    )


def test_eight_writers_lose_nothing_and_kills_damage_nothing(tmp_path: Path) -> None:
    path = tmp_path / "new" / "history.sqlite"
    writers = [writer(path, f"whole{number}", 12) for number in range(4)]
    writers += [writer(path, f"killed{number}", 10_000) for number in range(4)]
    acknowledged = {}
    for number, process in enumerate(writers[4:]):
        assert process.stdout is not None
        for _ in range(3 + number):
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        acknowledged[f"killed{number}"] = 3 + number + len(process.stdout.read().split())
    for process in writers:
        assert process.wait(120) in {0, -signal.SIGKILL}
        assert process.stdout is not None
        process.stdout.close()
    counts = dict(rows(path, "select name, count(*) from runs group by name"))
    assert {name: count for name, count in counts.items() if name.startswith("whole")} == {
        f"whole{number}": 12 for number in range(4)
    }
    for name, least in acknowledged.items():
        assert counts[name] in {least, least + 1}, "a row that was acknowledged is there; one more may be"
    assert rows(path, "pragma integrity_check") == [("ok",)]
    assert path.stat().st_mode & 0o077 == 0


def test_a_gate_is_recorded_and_its_history_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, folder = str(trace(tmp_path, "good", steps(6, [("gemm", 100.0)]))), str(tmp_path / "baselines")
    assert run(["gate", good, "--budget", "kernels<=1", "--folder", folder, "--name", "train", "--label", "abc"]) == 0
    assert run(["gate", good, "--budget", "kernels<=0", "--folder", folder, "--name", "train"]) == 3
    assert run(["gate", good, "--budget", "kernels<=0", "--folder", folder, "--no-history"]) == 3
    capsys.readouterr()
    assert run(["history", "--folder", folder, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [one["outcome"] for one in answer["runs"]] == ["passed", "budget_exceeded"]
    assert answer["runs"][0]["label"] == "abc"
    assert [one["value"] for one in answer["runs"]] == [pytest.approx(0.101, abs=0.001)] * 2
    assert answer["enough"] is False
    assert run(["history", "train", "--folder", folder]) == 0
    assert "12 are needed" in " ".join(capsys.readouterr().out.split())
    assert run(["history", "train", "--folder", folder, "--number", "nonsense"]) == 2
    assert "step_ms" in capsys.readouterr().err
    assert run(["history", "trian", "--folder", folder]) == 2
    assert "no-history: there is no history of trian; did you mean train?" in capsys.readouterr().err


def test_a_run_that_was_not_comparable_leaves_the_others_in_the_history(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    numbers, project = json.dumps({"step_ms": 10.0}), str(tmp_path)
    for _ in range(7):
        append(record_file(), INSERT, ("2026-11-01T00:00", project, "train", numbers))
    other = INSERT.replace("'passed', 'step', 'H200'", "'not_comparable', 'step', 'A100'")
    append(record_file(), other, ("2026-11-02T00:00", project, "train", numbers))
    folder = str(tmp_path / "baselines")
    assert run(["history", "train", "--folder", folder]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "train: 7 runs of the gate" in shown
    assert "of the same program on H200; left out: 1 other run." in shown
    assert run(["history", "train", "--folder", folder, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (len(answer["runs"]), answer["left_out"]) == (7, 1)


def test_a_change_is_named_in_the_terminal_and_in_the_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for place in range(24):
        value = (10.0 if place < 14 else 12.0) + 0.01 * (place % 3)
        numbers = json.dumps({"step_ms": value})
        append(record_file(), INSERT, (f"2026-11-{place + 1:02}T00:00", str(tmp_path), "<b>&\x1b", numbers))
    folder, svg = str(tmp_path / "baselines"), tmp_path / "trend.svg"
    assert run(["history", "--folder", folder, "--svg", str(svg)]) == 0
    shown = capsys.readouterr().out
    assert "from 10.01 to 12.01 (+20.0 %), on 2026-11-15" in " ".join(shown.split())
    assert "\x1b" not in shown
    drawn = ElementTree.fromstring(svg.read_text())
    assert len(drawn.findall(".//{*}circle")) == 24
    assert len(drawn.findall(".//{*}line[@class='mark']")) == 1
    assert run(["history", "--folder", folder, "--svg", str(svg)]) == 2


@pytest.mark.parametrize("content", [b"not a database" * 100, b"SQLite format 3\0" + b"\xff" * 4096, b"{}"])
def test_a_damaged_history_is_one_line_and_changes_no_outcome(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record_file().write_bytes(content)
    good = str(trace(tmp_path, "good", steps(6, [("gemm", 100.0)])))
    assert run(["history", "--folder", str(tmp_path / "b")]) == 1
    assert capsys.readouterr().err.startswith("warpline: bad-history:")
    assert run(["gate", good, "--budget", "kernels<=1"]) == 0
    assert "not recorded: bad-history" in capsys.readouterr().err
    assert record_file().read_bytes() == content


def test_another_programs_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    with sqlite3.connect(path) as database:
        database.execute("create table mine (x)")
    database.close()
    with pytest.raises(WarplineError, match="another program's"):
        append(path, INSERT, ("", "", "", ""))


def test_rows_that_are_no_numbers_are_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for numbers in ('{"step_ms": 1}', "[]", "{", '{"step_ms": "x"}', '{"step_ms": NaN}', '{"step_ms": {}}', "7"):
        append(record_file(), INSERT, ("2026", str(tmp_path), "train", numbers))
    assert run(["history", "--folder", str(tmp_path / "b"), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["runs"]) == 1


def test_a_writer_waits_for_another(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    append(path, INSERT, ("", "", "", ""))
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("begin immediate")
    process = writer(path, "waits", 1)
    time.sleep(0.5)
    assert process.poll() is None
    holder.execute("rollback")
    holder.close()
    assert process.wait(60) == 0
    process.stdout.close()  # type: ignore[union-attr]


def test_a_damaged_schema_whose_bytes_sqlite_quotes_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    append(record_file(), INSERT, ("", "p", "n", "{}"))
    with sqlite3.connect(record_file()) as database:
        database.execute("pragma writable_schema = on")
        database.execute("update sqlite_master set name = cast(x'ffdead' as text), sql = 'no'")
    database.close()
    assert run(["history", "--folder", str(tmp_path)]) == 1
    assert capsys.readouterr().err.startswith("warpline: bad-history:")
