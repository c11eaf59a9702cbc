"""Odd values at every place of a baseline: the file is refused in one line, or the gate answers in plain numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from step_traces import steps, trace

from warpline.compare.baseline import read_baseline, write_baseline
from warpline.compare.gate import GateLimits, judge
from warpline.compare.measurement import RunMeasurement, measure
from warpline.compare.stopwatch import BareStepTime
from warpline.errors import UnreadableFile
from warpline.reports.compare import gate_report
from warpline.reports.markdown import render
from warpline.trace.open import open_trace

ODD = [None, True, "x", "\x1b[2J", -1, 0.5, 2**63, 10**400, float("nan"), float("inf"), [], [[1]], {}, {"a": 1}]
Place = tuple[str | int, ...]


def places(value: Any, place: Place = ()) -> Iterator[Place]:
    """Every key and index within a document, the first of each list."""
    if place:
        yield place
    inner = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for key, one in inner:
        yield from places(one, (*place, key))


def changed(document: Any, place: Place, value: Any) -> str:
    """The document with that value at that place."""
    document = json.loads(json.dumps(document))
    container = document
    for key in place[:-1]:
        container = container[key]
    container[place[-1]] = value
    return json.dumps(document)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> RunMeasurement:
    path = trace(tmp_path_factory.mktemp("recorded"), "good", steps(4, [("gemm", 100.0), ("silu", 40.0)]))
    timed = BareStepTime(200_000.0, (200_000, 210_000, 190_000, 200_000), 150_000.0)
    return replace(measure(open_trace(path, cache=False)), stopwatch=timed)


def test_no_value_at_any_place_breaks_the_gate(measured: RunMeasurement, tmp_path: Path) -> None:
    file = tmp_path / "baseline.json"
    write_baseline(file, [measured])
    document = json.loads(file.read_text())
    refused = answered = 0
    for place in places(document):
        for odd in ODD:
            file.write_text(changed(document, place, odd))
            try:
                runs = read_baseline(file)
            except UnreadableFile as error:
                assert error.code == "not-a-baseline" and "\n" not in error.line(), (place, odd)
                refused += 1
                continue
            found = judge([measured], GateLimits(runs))
            json.dumps(found.to_dict(), allow_nan=False)
            render(gate_report(found))
            answered += 1
    assert refused > 300 and answered > 50
