"""No answer depends on an order that Polars leaves open."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from kineto_files import Event, annotation, launched, write
from polars.dataframe.group_by import GroupBy

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


def leave_orders_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turn around the results of Polars that were not asked to maintain their order, and equal rows of a sort."""

    def turned(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: Any, *arguments: Any, **options: Any) -> Any:
            result = method(self, *arguments, **options)
            keeps = options.get("maintain_order") or options.get("how") in ("semi", "anti")
            return result if keeps or getattr(self, "maintain_order", False) else result.reverse()

        return call

    sort = pl.DataFrame.sort

    def sort_turned(self: pl.DataFrame, *keys: Any, **options: Any) -> pl.DataFrame:
        if options.get("maintain_order"):
            return sort(self, *keys, **options)
        return sort(self.reverse(), *keys, **{**options, "maintain_order": True})

    for owner, name in ((pl.DataFrame, "join"), (pl.DataFrame, "unique"), (pl.Series, "unique"), (GroupBy, "agg")):
        monkeypatch.setattr(owner, name, turned(getattr(owner, name)))
    monkeypatch.setattr(pl.DataFrame, "sort", sort_turned)


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
