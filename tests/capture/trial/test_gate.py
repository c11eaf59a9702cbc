"""Windows of steps, as the program counts them."""

from __future__ import annotations

import json
import os
import sys
import threading
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace

import pytest

from warpline.capture.trial.gate import ALLOWED, WINDOWS, WindowGate, await_compile_workers

TORCH = SimpleNamespace(cuda=SimpleNamespace(is_initialized=lambda: False))


def test_only_the_steps_of_a_window_before_its_last_are_amid_it(tmp_path: Path) -> None:
    (tmp_path / ALLOWED).write_text("2")
    gate = WindowGate(TORCH, str(tmp_path), os.getpid(), (2, 1, 3), dict, writes=True)
    amid = []
    for _ in range(9):
        amid.append(gate.is_amid_window())
        gate.step()
    # Two steps are skipped; then one is not timed and three are, twice as far as the test goes.
    assert amid == [False, False, False, True, True, False, False, True, True]
    (window,) = (tmp_path / WINDOWS).read_text().splitlines()
    assert json.loads(window)["last_step"] == 6


def test_workers_of_a_compiler_are_awaited_where_they_are_starting(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "torch._inductor.async_compile"
    monkeypatch.setitem(sys.modules, name, SimpleNamespace(AsyncCompile=SimpleNamespace(_ready_future=None)))
    await_compile_workers()
    starting: Future[str] = Future()
    monkeypatch.setitem(sys.modules, name, SimpleNamespace(AsyncCompile=SimpleNamespace(_ready_future=starting)))
    threading.Timer(0.1, starting.set_result, ["ready"]).start()
    await_compile_workers()
    assert starting.done()
