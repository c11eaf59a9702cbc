"""`warpline watch`: every trace is judged once, whatever happens to the files and to the watch."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
import rank_files
from kineto_files import write
from paths import ROOT
from step_traces import steps

from warpline.cli.main import run
from warpline.compare.history import labels_in, read_history
from warpline.ui.watch import Watch

FAST = ["--settle", "0", "--patience", "0", "--interval", "0.05"]


def trace(file: Path, kernel_us: float = 100.0, kernel: str = "gemm") -> Path:
    """Four steps of one kernel."""
    file.parent.mkdir(parents=True, exist_ok=True)
    scratch = file.parent / f".{file.name}"
    scratch.mkdir()
    made = write(scratch, steps(4, [(kernel, kernel_us)]))
    made.rename(file)
    scratch.rmdir()
    return file


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "traces"
    made.mkdir()
    return made


def watch_of(folder: Path, settle_s: float = 0.0, patience_s: float = 0.0) -> Watch:
    history = Path(os.environ["WARPLINE_HISTORY"])
    return Watch(folder, history, "traces", settle_s, patience_s, 0.02)


def judged(watch: Watch) -> list[str]:
    return [found.trace for found in watch.look()]


def test_a_line_of_json_is_exact_whatever_a_file_is_called(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace(folder / "##[group]\U000e0041.json")
    assert run(["watch", str(folder), "--once", "--json", *FAST]) == 0
    said = capsys.readouterr().out
    assert json.loads(said)["trace"] == "##[group]\U000e0041.json"
    assert "##[" not in said


def test_each_trace_is_judged_once_also_by_another_watch(folder: Path) -> None:
    trace(folder / "a.json")
    trace(folder / "deeper" / "b.json")
    watch, other = watch_of(folder), watch_of(folder)
    assert judged(watch) == ["a.json", "deeper/b.json"]
    assert judged(watch) == judged(other) == judged(watch_of(folder)) == []


def test_a_replaced_trace_is_judged_again(folder: Path) -> None:
    watch = watch_of(folder)
    trace(folder / "a.json")
    assert judged(watch) == ["a.json"]
    trace(folder / "a.json", 150.0)
    assert judged(watch) == ["a.json"]
    assert judged(watch) == []


def test_a_file_that_changes_waits_until_it_has_settled(folder: Path) -> None:
    watch = watch_of(folder, settle_s=3600.0)
    trace(folder / "a.json")
    assert judged(watch) == []
    assert not watch.is_idle


def test_half_a_trace_waits_and_is_judged_when_it_is_whole(folder: Path) -> None:
    watch = watch_of(folder, patience_s=3600.0)
    whole = trace(folder / "a.json").read_bytes()
    (folder / "a.json").write_bytes(whole[: len(whole) // 2])
    assert judged(watch) == []
    assert not watch.is_idle
    (folder / "a.json").write_bytes(whole)
    assert judged(watch) == ["a.json"]


def test_half_a_trace_is_said_to_be_one_when_patience_ends(folder: Path) -> None:
    whole = trace(folder / "a.json").read_bytes()
    (folder / "a.json").write_bytes(whole[: len(whole) // 2])
    (found,) = watch_of(folder).look()
    assert found.outcome == "no answer"
    assert "damaged-recording" in found.line()
    assert judged(watch_of(folder)) == []


def test_ranks_are_one_job_and_wait_for_each_other(folder: Path) -> None:
    watch = watch_of(folder, patience_s=3600.0)
    written = rank_files.job(folder)
    last = written[-1].read_bytes()
    written[-1].unlink()
    assert judged(watch) == []
    written[-1].write_bytes(last)
    (found,) = watch.look()
    assert (found.trace, found.device) == ("rank0_trace.json", "4 ranks")
    assert judged(watch_of(folder)) == []


def test_a_new_level_is_told_once_and_by_whichever_watch_sees_it(folder: Path) -> None:
    lines = []
    for number in range(20):
        trace(folder / f"{number:02}.json", 100.0 + number % 3 + (20.0 if number >= 10 else 0.0))
        lines += list(watch_of(folder).look())
    told = [found for found in lines if found.outcome == "slower"]
    assert len(told) == 1
    assert told[0].change is not None
    assert told[0].change.since == "10.json"
    assert "SLOWER" in told[0].line()


def test_jobs_and_single_traces_are_series_of_their_own(folder: Path) -> None:
    watch = watch_of(folder)
    lines = []
    for number in range(16):
        trace(folder / f"{number:02}.json", 100.0 + number % 3 + (20.0 if number >= 10 else 0.0))
        if number % 4 == 0:
            (folder / f"job{number}").mkdir()
            rank_files.job(folder / f"job{number}")
        lines += list(watch.look())
    assert Counter(found.device == "4 ranks" for found in lines) == {False: 16, True: 4}
    assert {found.trace for found in lines if found.device == "4 ranks"} == {"job0", "job4", "job8", "job12"}
    assert [found.change.since for found in lines if found.change] == ["10.json"]


def test_exit_code_and_command_on_a_regression(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(20):
        trace(folder / f"{number:02}.json", 100.0 + number % 3 + (20.0 if number >= 10 else 0.0))
    script = tmp_path / "note.py"
    script.write_text(f"import sys; open({str(tmp_path / 'note')!r}, 'w').write(sys.stdin.read())")
    command = f"{sys.executable} {script}"
    assert run(["watch", str(folder), "--once", "--json", "--exec", command, *FAST]) == 3
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert Counter(line["outcome"] for line in lines) == {"recorded": 19, "slower": 1}
    assert json.loads((tmp_path / "note").read_text())["change"]["since"] == "10.json"
    page = set(re.findall(r"\w+", (ROOT / "docs" / "commands" / "watch.md").read_text()))
    assert all(set(line) - {"schema"} <= page for line in lines)
    assert run(["watch", str(folder), "--once", *FAST]) == 0
    assert run(["history", "traces", "--folder", str(tmp_path / "baselines"), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["runs"]) == 20


def test_bad_input_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["watch", str(tmp_path / "missing")]) == 2
    assert capsys.readouterr().err.startswith("warpline: no-folder: ")


def appear(folder: Path, number: int, chance: random.Random) -> None:
    """Write a trace at once, in two halves, or twice."""
    file, kind = folder / f"{number:03}.json", chance.choice(["whole", "whole", "halves", "replaced"])
    if kind != "halves":
        trace(file, 100.0)
    if kind == "whole":
        return
    made = trace(folder.parent / "made" / file.name, 110.0)
    text = made.read_bytes()
    if kind == "halves":
        file.write_bytes(text[: len(text) // 2])
        time.sleep(0.1)
        with file.open("ab") as opened:
            opened.write(text[len(text) // 2 :])
    else:
        time.sleep(chance.choice([0.0, 0.3]))
        made.replace(file)


@pytest.mark.parametrize("count", [12, pytest.param(200, marks=pytest.mark.long)])
def test_every_trace_is_judged_once_while_the_watch_is_killed_and_restarted(folder: Path, count: int) -> None:
    if count > 12 and not os.environ.get("WARPLINE_LONG"):
        pytest.skip("takes minutes; WARPLINE_LONG=1 runs it")
    chance = random.Random(1)
    command = [sys.executable, "-m", "warpline", "watch", str(folder), "--settle", "0.2", "--interval", "0.05"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    watch = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    killed = 0
    for number in range(count):
        appear(folder, number, chance)
        time.sleep(chance.random() * 0.3)
        if number % 7 == 6:
            watch.kill()
            watch.wait()
            killed += 1
            watch = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    watch.kill()
    watch.wait()
    ended = subprocess.run([*command, "--once"], env=environment, stdout=subprocess.DEVNULL, check=False)
    assert ended.returncode in {0, 3}
    history = Path(os.environ["WARPLINE_HISTORY"])
    runs = read_history(history, folder.parent, "traces", "step_ms", 0.02).runs
    last = Counter(label.partition(" ")[2] for label in labels_in(history, folder.parent, "traces"))
    assert set(last) == {f"{number:03}.json" for number in range(count)}
    assert max(last.values()) <= 2  # one that was replaced may have been judged before and after
    assert len({run.label for run in runs}) == len(runs) == sum(last.values())
    assert killed == count // 7


def test_a_step_far_from_that_of_the_trace_before_is_shown_beside_it(folder: Path) -> None:
    trace(folder / "a.json", 100)
    watch = watch_of(folder)
    (first,) = watch.look()
    trace(folder / "b.json", 1000)
    (second,) = watch.look()
    trace(folder / "c.json", 1010)
    (third,) = watch.look()
    assert (first.before_ms, second.before_ms) == (None, first.numbers["step_ms"])
    assert "in the trace before" in second.line()
    assert not any("in the trace before" in one.line() for one in (first, third))


def test_a_trace_of_another_program_is_not_compared_and_not_in_the_series(folder: Path) -> None:
    lines = []
    for name, kernel in (("a", "gemm"), ("b", "ncclDevKernel_AllReduce"), ("c", "gemm")):
        trace(folder / f"{name}.json", 100, kernel)
        lines += list(watch_of(folder).look())  # each time another watch, which knows the history alone
    assert [found.outcome for found in lines] == ["recorded", "not_comparable", "recorded"]
    assert "not compared: a.json and b.json have hardly any kernels in common" in lines[1].line()
    assert lines[1].before_ms is None
    history = Path(os.environ["WARPLINE_HISTORY"])
    assert len(read_history(history, folder.parent, "traces", "step_ms", 0.02).runs) == 2
    (folder / "c.json").unlink()  # what it was cannot be known any more
    trace(folder / "d.json", 100, "ncclDevKernel_AllReduce")
    assert [found.outcome for found in watch_of(folder).look()] == ["recorded"]
