"""What the live table says of the processes that are measured now."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from warpline.reports.terminal import render
from warpline.reports.trial import live_report
from warpline.trial.live import live_rows


def process(name: str, *steps_s: float, ready: bool = True, error: str = "") -> Any:
    windows = [SimpleNamespace(step_s=step_s) for step_s in steps_s]
    return SimpleNamespace(name=name, windows=windows, report="ready" if ready else None, error=error)


def test_each_process_has_its_state_and_the_gain_so_far() -> None:
    base, other = process("baseline", 0.020, 0.022, 0.021), process("baseline", 0.019)
    fast, done = process("tf32", 0.010), process("no_gc", 0.020)
    late, dead = process("torch_compile", ready=False), process("bf16", error="crashed: out of memory")
    waits = process("no_gc")
    rows = live_rows([base, other, fast, done, late, dead, waits], [base, other, fast, waits])
    assert [row.state for row in rows] == ["runs", "runs", "runs", "decided", "starts", dead.error, "ready"]
    assert [row.windows for row in rows] == [3, 1, 1, 1, 0, 0, 0]
    # Medians of the baselines: 21 and 19 ms, so 20 ms.
    assert [row.gain and round(row.gain, 6) for row in rows] == [None, None, 2.0, 1.0, None, None, None]
    text = render(live_report(rows), 100).plain
    assert "tf32" in text
    assert "2.00×" in text
