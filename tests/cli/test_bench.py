"""`warpline bench` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fake_torch import Device, fake_torch

from warpline.bench import command
from warpline.bench import measure as engine
from warpline.bench.__main__ import main as plain
from warpline.bench.calls import AlternatingCalls
from warpline.bench.subject import Settings, Subject
from warpline.bench.watch import DeviceWatch
from warpline.bench.work import CallWork
from warpline.cli import bench
from warpline.cli.main import run


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "timed_by_hand.py"
    path.write_text("def count():\n    return sum(range(100))\n\ndef other():\n    return sum(range(10000))\n")
    return f"{path}:count"


def test_the_answer_is_on_stdout_and_the_progress_on_stderr(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", program, "--seconds", "0.2"]) == 0
    printed = capsys.readouterr()
    answer = " ".join(printed.out.split())
    assert "95 % interval" in answer
    assert "timed on the CPU's clock" in answer
    assert f"warpline bench {program}" in answer
    assert printed.err == f"timing {program}\n"


@pytest.mark.parametrize("line", [lambda arguments: run(["bench", *arguments]), plain], ids=["full", "plain"])
def test_json_has_every_documented_field(line: object, program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert line([program, "--seconds", "0.2", "--json"]) == 0  # type: ignore[operator]
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "warpline.bench/1"
    assert (document["comparison"], document["cold"]) == (None, [])
    (result,) = document["results"]
    page = (Path(__file__).parents[2] / "docs" / "commands" / "bench.md").read_text()
    for field in [*result, *result["spread"], *result["warm_up"], *result["place"], *document]:
        assert f"`{field}`" in page, field
    low, high = result["interval_ns"]
    assert low <= result["median_ns"] <= high


def test_functions_are_compared_in_turn(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    other = program.replace(":count", ":other")
    assert run(["bench", program, "--against", other, "--seconds", "0.2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["comparison"]
    assert found["faster"] == program
    assert found["ratio"] < 1


def test_impossible_times_leave_with_4(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    device = Device()
    monkeypatch.setattr(engine, "watch_device", lambda torch: DeviceWatch(None))
    subject = Subject("matmul", AlternatingCalls(lambda: device.launch(50_000), [()]), CallWork(2 * 4096**3, 0, "bf16"))
    results = engine.measure([subject], Settings(now=device.now, seconds=0.01), fake_torch(device))
    monkeypatch.setattr(bench, "answer", lambda request, report: command.BenchAnswer(tuple(results)))
    assert run(["bench", "matmul"]) == 4
    assert "matmul on NVIDIA H200: impossible, measured 50.2 µs" in capsys.readouterr().out


def test_the_experiments_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "--list"]) == 0
    assert "matmul" in capsys.readouterr().out
    assert run(["bench", "--list", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "warpline.experiments/1"
    assert {"matmul", "copy", "launch"} <= {row["name"] for row in document["experiments"]}
    assert plain(["--list"]) == 0
    assert "or your own function" in capsys.readouterr().out


MISTAKES = {
    "nothing": ([], "nothing-to-time"),
    "unknown experiment": (["nope"], "unknown-experiment"),
    "a shape for a function": (["{program}", "--shape", "4"], "no-shape"),
    "two types for a function": (["{program}", "--dtype", "fp32,bf16"], "one-dtype"),
    "FLOPs without a type": (["{program}", "--flops", "1e9"], "no-dtype"),
    "work of an experiment": (["matmul", "--flops", "1e9"], "work-known"),
    "an experiment against something": (["matmul", "--against", "{program}"], "no-comparison"),
    "bad device": (["matmul", "--device", "tpu"], "bad-device"),
    "no time": (["{program}", "--seconds", "0"], "bad-seconds"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_line(mistake: str, program: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments, code = MISTAKES[mistake]
    assert run(["bench", *(word.format(program=program) for word in arguments)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.splitlines()[-1].startswith(f"warpline: {code}: ")
