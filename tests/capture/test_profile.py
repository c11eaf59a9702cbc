"""`warpline.profile`, `warpline.region` and `warpline.step` within a program, on the CPU."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

import warpline
from warpline.capture import marks
from warpline.capture.listeners import Listeners
from warpline.capture.plan import Plan
from warpline.capture.session import Session
from warpline.errors import WarplineError

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def events(path: Path | None) -> list[dict[str, Any]]:
    assert path is not None
    with gzip.open(path, "rt") as text:
        return json.load(text)["traceEvents"]


def names(path: Path | None) -> list[str]:
    return [str(event.get("name")) for event in events(path)]


def work() -> None:
    torch.randn(8, 8) @ torch.randn(8, 8)


def test_a_block_is_recorded_whole(capsys: pytest.CaptureFixture[str]) -> None:
    with warpline.profile("block") as p:
        for _ in range(3):
            work()
    assert names(p.trace).count("aten::matmul") == 3
    assert p.folder is not None
    assert p.folder.name.endswith("-block")
    manifest = json.loads((p.folder / "manifest.json").read_text())
    assert manifest["schema"] == "warpline.run/1"
    assert manifest["files"] == ["trace.json.gz"]
    assert "next: warpline .warpline/runs/" in capsys.readouterr().err


def test_steps_in_a_block_are_told_or_found() -> None:
    with warpline.profile("told", skip=2, warmup=1, steps=2) as told:
        for _ in range(8):
            work()
            warpline.step()
    assert sum(name.startswith("ProfilerStep#") for name in names(told.trace)) == 2
    assert names(told.trace).count("aten::matmul") == 2
    model = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with warpline.profile("found", skip=2, warmup=1, steps=2) as found:
        for _ in range(8):
            model(torch.randn(2, 8)).sum().backward()
            optimizer.step()
    assert names(found.trace).count("Optimizer.step#SGD.step") == 2


def test_two_optimizers_that_alternate_make_one_step() -> None:
    model = torch.nn.Linear(8, 8)
    pair = [torch.optim.SGD(model.parameters(), lr=0.1), torch.optim.Adam(model.parameters())]
    with warpline.profile("two", skip=3, warmup=1, steps=2) as p:
        for _ in range(12):
            for optimizer in pair:
                model(torch.randn(2, 8)).sum().backward()
                optimizer.step()
    assert names(p.trace).count("Optimizer.step#Adam.step") == 2
    assert names(p.trace).count("Optimizer.step#SGD.step") == 2


@pytest.mark.filterwarnings("error:Using `torch.compile:UserWarning")
def test_a_compiled_model_is_heard_without_a_warning() -> None:
    with warpline.profile("compiled", skip=3, warmup=1, steps=2) as p, torch.no_grad():
        fast = torch.compile(torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)), backend="eager")
        for _ in range(16):
            fast(torch.randn(4, 8))
    assert sum(name.startswith("ProfilerStep#") for name in names(p.trace)) == 2
    assert names(p.trace).count("aten::addmm") == 4


def test_every_call_of_a_decorated_function_is_a_step() -> None:
    @warpline.profile("calls", skip=2, warmup=1, steps=3)
    def call(times: int) -> int:
        """Works."""
        for _ in range(times):
            work()
        return times

    assert [call(2) for _ in range(30)] == [2] * 30
    assert call.__doc__ == "Works."
    assert call.folder is not None
    assert sorted(path.name for path in call.folder.iterdir()) == ["manifest.json", "trace.json.gz"]
    assert names(call.trace).count("aten::matmul") == 6


def test_it_decorates_without_brackets_and_methods_too() -> None:
    class Trainer:
        @warpline.profile
        def train(self, value: int) -> int:
            work()
            return value

    trainer = Trainer()
    assert [trainer.train(at) for at in range(40)] == list(range(40))
    assert names(Trainer.train.trace).count("aten::matmul") == 6


def test_nothing_recorded_is_said_and_not_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    with warpline.profile("short", skip=5, steps=3) as p:
        for _ in range(4):
            warpline.step()
    assert p.trace is None
    said = capsys.readouterr().err
    assert "warpline: too-few-steps: the program ended after 4 steps (warpline.step)" in said
    assert said.endswith("try skip=1, warmup=1, steps=1\n")


def test_a_block_without_steps_says_what_to_write(capsys: pytest.CaptureFixture[str]) -> None:
    with warpline.profile("none of it/at all", steps=3) as p:
        work()
    assert p.trace is None
    assert p.folder is not None
    assert p.folder.name.endswith("-none-of-it-at-all")
    assert "warpline: no-steps: no step was found; omit steps= to record everything" in capsys.readouterr().err


@pytest.mark.parametrize("bounds", [{"steps": 0}, {"steps": -1}, {"skip": -1}, {"seconds": 0.0}, {"warmup": -1}])
def test_impossible_bounds_are_refused(bounds: dict[str, Any]) -> None:
    with pytest.raises(WarplineError, match="bad-bounds"):
        warpline.profile("bounds", **bounds)


def test_calls_that_fail_are_steps_too() -> None:
    @warpline.profile("failing", skip=2, warmup=1, steps=2)
    def call() -> None:
        work()
        raise KeyError

    for _ in range(6):
        with pytest.raises(KeyError):
            call()
    assert names(call.trace).count("aten::matmul") == 2


def test_an_exception_passes_and_what_was_recorded_stays() -> None:
    with pytest.raises(ValueError, match="mine"), warpline.profile("failing") as p:
        work()
        raise ValueError("mine")
    assert "aten::matmul" in names(p.trace)


def test_a_forked_process_has_no_part_in_it() -> None:
    with warpline.profile("forking", skip=2, warmup=1, steps=4) as p:
        for at in range(12):
            work()
            warpline.step()
            if at == 4 and not os.fork():
                for _ in range(9):
                    warpline.step()
                p.__exit__(None, None, None)
                os._exit(0)
    assert names(p.trace).count("aten::matmul") == 4
    assert p.folder is not None
    assert sorted(path.name for path in p.folder.iterdir()) == ["manifest.json", "trace.json.gz"]


def test_a_second_profiler_is_refused() -> None:
    with torch.profiler.profile(), pytest.raises(WarplineError, match="profiler-on"):
        warpline.profile("second").__enter__()


def test_regions_nest_and_show_in_the_trace() -> None:
    @warpline.region("inner")
    def inner() -> None:
        work()

    with warpline.profile("regions") as p, warpline.region("outer"):
        inner()
        inner()
    found = [event for event in events(p.trace) if event.get("name") in {"outer", "inner"}]
    outer = next(event for event in found if event["name"] == "outer")
    inners = [event for event in found if event["name"] == "inner"]
    assert len(inners) == 2
    for one in inners:
        assert outer["ts"] <= one["ts"]
        assert one["ts"] + one["dur"] <= outer["ts"] + outer["dur"]


def test_a_region_opens_nothing_while_nobody_records(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(name: str) -> None:
        raise AssertionError(name)

    monkeypatch.setattr(torch.profiler, "record_function", never)
    with warpline.region("off"):
        work()


def test_under_nsys_a_region_is_an_nvtx_range_also_when_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(marks, "_UNDER_NSYS", True)
    monkeypatch.setattr(torch.cuda.nvtx, "range_push", said.append)
    monkeypatch.setattr(torch.cuda.nvtx, "range_pop", lambda: said.append("pop"))
    with pytest.raises(KeyError), warpline.region("a"), warpline.region("b"):
        raise KeyError
    assert said == ["a", "b", "pop", "pop"]


def test_listening_leaves_torch_as_it_was(tmp_path: Path) -> None:
    def state() -> list[object]:
        return [
            torch.compile,
            torch.cuda.CUDAGraph.replay,
            torch.cuda.nvtx.range_push,
            torch.profiler.profile.__init__,
            torch.profiler.profile.step,
            torch.profiler.profile.export_chrome_trace,
            torch.autograd.profiler.profile.__init__,
            "export_chrome_trace" in vars(torch.profiler.profile),
            torch.nn.modules.module._has_any_global_hook(),
        ]

    before = state()
    listeners = Listeners(torch, Session(torch, Plan(folder=str(tmp_path))))
    assert state() != before
    listeners.remove()
    assert state() == before
