"""The calibration of a host: on a torch whose clock a test can read, and on the real one."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fake_torch import Device, fake_torch

from warpline.bench import host_costs as command
from warpline.capture.calibration import measure_host
from warpline.capture.plan import Plan
from warpline.capture.session import Session
from warpline.capture.steps import OPTIMIZER
from warpline.replay.costs.host import read_calibration

LAUNCH, DISPATCH, VIEW, RECORD_OP, RECORD_CALL = 3_000, 5_000, 1_000, 2_000, 4_000


class Profiled:
    """A torch whose ops take known times, more of it while a profiler is on."""

    def __init__(self, *, gpu: bool = True) -> None:
        self.device = Device(submit_ns=LAUNCH)
        self.torch = fake_torch(self.device, available=gpu)
        self.recording = False
        self.torch.no_grad = contextlib.nullcontext
        self.torch.zeros = lambda size, device: SimpleNamespace(view=self.view, add_=self.add)
        kinds = SimpleNamespace(CPU="cpu", CUDA="cuda")
        self.torch.profiler = SimpleNamespace(ProfilerActivity=kinds, profile=self.profile)

    def view(self, size: int) -> None:
        self.device.host_ns += VIEW + (RECORD_OP if self.recording else 0)

    def add(self, value: float) -> None:
        self.device.host_ns += DISPATCH + (RECORD_OP + RECORD_CALL if self.recording else 0)
        self.device.launch(100)

    @contextlib.contextmanager
    def profile(self, **options: Any) -> Iterator[None]:
        self.recording = True
        yield
        self.recording = False

    def measure(self) -> dict[str, Any] | None:
        return measure_host(self.torch, now=self.device.now)


def test_costs_are_what_the_loops_take_bare_and_recorded() -> None:
    document = Profiled().measure()
    assert document is not None
    expected = {name: cost["expected"] for name, cost in document["costs_ns"].items()}
    assert expected == {"op": DISPATCH, "launch": LAUNCH, "recording_op": RECORD_OP, "recording_call": RECORD_CALL}


def test_a_calibration_comes_back_from_its_text() -> None:
    document = json.loads(json.dumps(Profiled().measure()))
    calibration = read_calibration(document, "test")
    assert calibration is not None
    costs = [calibration.cost(name) for name in ("op", "launch", "recording_op", "recording_call")]
    assert [cost.expected if cost else None for cost in costs] == [DISPATCH, LAUNCH, RECORD_OP, RECORD_CALL]
    assert calibration.cost("region") is None


def test_without_a_gpu_only_ops_are_measured() -> None:
    document = Profiled(gpu=False).measure()
    assert document is not None
    assert set(document["costs_ns"]) == {"recording_op"}


def test_nothing_is_measured_while_a_graph_is_captured() -> None:
    profiled = Profiled()
    profiled.device.capturing = []
    assert profiled.measure() is None


@pytest.mark.parametrize("missing", ["profiler", "zeros", "no_grad"])
def test_a_torch_that_fails_leaves_no_calibration(missing: str) -> None:
    profiled = Profiled()
    delattr(profiled.torch, missing)
    assert profiled.measure() is None


def test_a_long_calibration_is_cut_short() -> None:
    """An op takes 10 ms: after the time is up no round of loops is begun, and what was measured counts."""
    profiled = Profiled()
    profiled.device.submit_ns = 10_000_000
    document = profiled.measure()
    assert document is not None
    assert document["costs_ns"]["launch"]["expected"] == 10_000_000
    assert len([name for name in profiled.device.log if name == "hold"]) < 1_000


def test_a_session_stores_one_after_its_last_recorded_step(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    session = Session(torch, Plan(folder=str(tmp_path), skip=2, settle_s=0.0, warmup=1, steps=3))
    for _ in range(8):
        torch.randn(8, 8) @ torch.randn(8, 8)
        session.boundary(OPTIMIZER)
    (part,) = (tmp_path / "parts").glob("*.json")
    record = json.loads(part.read_text())
    assert record["state"] == "recorded"
    assert record["host_costs"]["costs_ns"]["frame"]["expected"] > 0
    assert "aten::view" not in (tmp_path / record["file"]).read_text(), "the loops are not part of the trace"


def test_the_command_prints_the_same_document(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    assert command.main(["--json"]) == 0
    assert json.loads(capsys.readouterr().out)["schema"] == "warpline.host_costs/1"
    assert command.main([]) == 0
    assert "frame" in capsys.readouterr().out, "differences may come out as nothing on a busy machine"
