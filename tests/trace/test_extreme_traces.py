"""Traces with more of something than any program has are read in proportion to their size."""

from __future__ import annotations

from pathlib import Path

import pytest
from kineto_files import frame, kernel, launched, op, write

from warpline.replay.patterns import precision
from warpline.replay.whatif import WhatIf
from warpline.trace.column_rules import MAX_DEVICES
from warpline.trace.open import open_trace
from warpline.trace.steps import frames

DEEP = 70_000


def test_ops_may_be_nested_more_than_65535_deep(tmp_path: Path) -> None:
    events = [op("aten::add", i, 2 * (DEEP - i)) for i in range(DEEP)]
    trace = open_trace(write(tmp_path, events), cache=False)
    assert trace.ops.depth.max() == trace.ops.stored["depth"].max() == DEEP - 1


def test_a_loop_is_looked_for_as_deep_as_python_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = 3 * frames.MAX_LEVELS
    events = [frame(f"a.py({i}): f", i, 2 * (deep - i), i, i - 1 if i else None) for i in range(deep)]
    events += launched("k", deep, deep + 10, 5, 1)
    looked: list[int] = []
    calls = frames.Frames.calls
    monkeypatch.setattr(frames.Frames, "calls", lambda own, row: looked.append(row) or calls(own, row))
    open_trace(write(tmp_path, events), cache=False)
    assert len(looked) == frames.MAX_LEVELS


def test_devices_beyond_what_a_machine_has_are_left_out_and_said(tmp_path: Path) -> None:
    events = [kernel("k", 2 * i, 1, i + 1, device=i) for i in range(MAX_DEVICES + 500)]
    trace = open_trace(write(tmp_path, events), cache=False)
    assert trace.gpu.device.max() < MAX_DEVICES
    assert "impossible-values" in trace.health.stored["code"].to_list()


def test_each_name_of_a_device_is_looked_up_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    monkeypatch.setattr(precision, "find_device", looked.append)
    listed = [{"id": number, "name": f"GPU {number % 2}"} for number in range(3 * MAX_DEVICES)]
    file = write(tmp_path, launched("k", 0, 10, 5, 1), deviceProperties=listed)
    precision.has_tensor_cores(WhatIf(open_trace(file, cache=False), {}).labelled)
    assert looked == ["GPU 0", "GPU 1"]
