"""No answer depends on an order that Polars leaves open."""

from __future__ import annotations

from pathlib import Path

import pytest
from kineto_files import Event, annotation, launched, write
from other_order import leave_orders_open

from warpline.analyses.stats import REPORTS
from warpline.cli.main import run


@pytest.fixture
def equals(tmp_path: Path) -> str:
    """Steps, ranges, launches and kernels that begin and end at the same times, and differ by name alone."""
    events: list[Event] = []
    for step in range(3):
        zero = 1000.0 * step
        events += [annotation(f"ProfilerStep#{2 - step}", zero, 900), annotation(f"ProfilerStep#{7 + step}", zero, 900)]
        events += [annotation(name, zero, 800) for name in ("inner", "outer", "middle")]
        for number, name in enumerate(("gemm", "relu", "add")):
            events += launched(name, zero, zero + 100, 50, 10 * step + number + 1)
    return str(write(tmp_path, events))


@pytest.mark.parametrize("words", [["diagnose", "--json"], ["stats", "--format", "json", "-r", ",".join(REPORTS)]])
def test_equal_rows_come_in_one_order(
    words: list[str], equals: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [words[0], equals, *words[1:], "--no-cache"]
    code = run(command)
    usual = capsys.readouterr().out
    leave_orders_open(monkeypatch)
    assert run(command) == code
    assert capsys.readouterr().out == usual
