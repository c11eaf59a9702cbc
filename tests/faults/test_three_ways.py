"""Recording a step three ways: the commands, the time limits and the files."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

import faults.loop
from faults import three_ways
from faults.actor import Actor
from faults.loop import loop
from faults.programs import SUITES, Case

CASE = SUITES["sealed"][0]


def test_nsys_records_the_steps_and_not_the_warm_up(tmp_path: Path) -> None:
    command = three_ways.profile_command("/opt/nsys", "sealed", CASE, tmp_path, steps=12)
    assert command[:2] == ["/opt/nsys", "profile"]
    assert "--capture-range=cudaProfilerApi" in command
    assert command[command.index("-o") + 1] == str(tmp_path / CASE.name)
    program = command[command.index(sys.executable) :]
    assert program[1:] == ["-m", "faults.loop", "--suite", "sealed", "--case", CASE.name, "--steps", "12"]


def test_the_export_reads_what_was_recorded(tmp_path: Path) -> None:
    command = three_ways.export_command("nsys", CASE, tmp_path)
    assert command[:4] == ["nsys", "export", "--type", "sqlite"]
    assert command[-1] == str(tmp_path / f"{CASE.name}.nsys-rep")
    assert command[command.index("-o") + 1] == str(tmp_path / f"{CASE.name}.nsys.sqlite")


def test_a_command_that_hangs_ends_with_what_it_started(tmp_path: Path) -> None:
    inner = f"import pathlib, time; time.sleep(10); pathlib.Path({str(tmp_path / 'ended')!r}).touch()"
    program = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {inner!r}])"
    # Whoever waits for its output would wait for the inner program, too.
    assert three_ways.run([sys.executable, "-c", program], limit_s=0.5) == "it took over 0 s"
    assert not (tmp_path / "ended").exists()


def test_a_command_that_fails_says_why() -> None:
    assert three_ways.run([sys.executable, "-c", "pass"], limit_s=30) is None
    failure = three_ways.run([sys.executable, "-c", "raise SystemExit('no GPU')"], limit_s=30)
    assert failure == "exit status 1: no GPU"


def test_both_commands_of_nsys_run_and_the_export_is_compressed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ran = []

    def run(command: list[str], limit_s: float) -> None:
        ran.append(command[1])
        three_ways.sqlite_file(CASE, tmp_path).write_bytes(b"rows")

    monkeypatch.setattr(three_ways, "run", run)
    assert three_ways.with_nsys("nsys", "sealed", CASE, tmp_path, steps=3) == []
    assert ran == ["profile", "export"]
    assert [path.name for path in tmp_path.iterdir()] == [f"{CASE.name}.nsys.sqlite.gz"]
    assert gzip.decompress((tmp_path / f"{CASE.name}.nsys.sqlite.gz").read_bytes()) == b"rows"


def test_nothing_is_exported_if_nothing_was_recorded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(three_ways, "run", lambda command, limit_s: "exit status 1")
    assert three_ways.with_nsys("nsys", "sealed", CASE, tmp_path, steps=3) == ["nsys profile: exit status 1"]


def test_one_torch_recording_has_stacks_even_if_the_suite_has_none() -> None:
    without = next(case for case in SUITES["sealed"] if not case.stacks)
    assert [three_ways.torch_job(without, way).stacks for way in three_ways.TORCH_WAYS] == [False, True]


def test_a_torch_recording_that_fails_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    answers = iter([{}, {"error": "no GPU"}, {"error": "gone"}, {"error": "gone"}])
    actor = MagicMock(spec=Actor)
    actor.answer.side_effect = actor.ask.side_effect = lambda *asked: next(answers)
    monkeypatch.setattr(three_ways, "actor_of", lambda job, folder: actor)
    assert three_ways.with_torch(CASE, "plain", tmp_path) == "plain: no GPU"
    actor.end.assert_called_once()


@pytest.mark.parametrize(
    ("name", "nsys", "said"), [("nobody", sys.executable, "nobody"), (CASE.name, "no-nsys", "no-nsys")]
)
def test_what_cannot_be_recorded_is_refused(
    name: str, nsys: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        three_ways.main(["--suite", "sealed", "--only", name, "-o", "nowhere", "--nsys", nsys])
    assert stop.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("cause", ["sync", "cold_start"])
def test_each_step_has_a_range_and_only_a_warm_step_is_warmed_up(monkeypatch: pytest.MonkeyPatch, cause: str) -> None:
    events: list[Any] = []
    nvtx = SimpleNamespace(range_push=events.append, range_pop=lambda: events.append("end"))
    profiler = SimpleNamespace(start=lambda: events.append("record"), stop=lambda: events.append("stop"))
    torch = MagicMock(cuda=SimpleNamespace(synchronize=lambda: None, nvtx=nvtx, profiler=profiler))
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(faults.loop, "wake", lambda torch: None)
    monkeypatch.setattr(faults.loop, "warm_up", lambda torch, step: events.append("warm up"))
    case = Case("some", cause, "warm_up", lambda torch, fix: lambda: events.append("work"))
    assert loop(torch, case, steps=2) == 2
    warm = ["warm up"] if cause == "sync" else []
    assert events == [*warm, "record", *["step", "work", "end"] * 2, "stop"]
