"""Small files that warpline reads beside traces, with every value in turn replaced by odd ones."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.fuzz import companions, seeds
from warpline.capture.run_folder import recorded_entry, timed_step
from warpline.compare.baseline import read_baseline
from warpline.compare.history import _run
from warpline.errors import UnreadableFile
from warpline.hardware.ceilings import SCHEMA, read_ceilings
from warpline.replay.costs.host import read_calibration
from warpline.sources.second_pass import read_second_pass
from warpline.trace.open import _files_of_run
from warpline.untrusted_json import parse_json, read_json

DEEP: Any = json.loads("[" * 900 + "]" * 900)
ODD = (None, True, -1, 1 << 70, 10**400, float("nan"), float("inf"), 1e300, "", "x" * 10_000, "\ud800", "1e999", [], [1, "a"], DEEP, {}, {"a": 1})  # fmt: skip
CEILINGS = {
    "schema": SCHEMA,
    "device": {"name": "NVIDIA H200", "sm_count": 132, "compute": "9.0"},
    "date": "2026-01-01",
    "origin": "here",
    "measurements": {"copy.dram": {"value": 4e12}},
    "host": {"schema": "warpline.calibration/1", "costs_ns": {"op": {"low": 1.0, "expected": 2.0, "high": 3.0}}},
}


def _of_manifest(file: Path) -> None:
    trace = file.with_name("trace.json")
    entry = recorded_entry(trace)
    read_calibration(entry.get("host_costs"), "x")
    timed = timed_step(trace)
    assert timed is None or len(np.array(timed.laps_ns, np.int64))
    _files_of_run(file.parent)


def _of_ceilings(file: Path) -> None:
    read_calibration(read_ceilings(file).host, "x")


READERS: dict[str, tuple[Callable[[], Any], Callable[[Path], Any]]] = {
    "manifest.json": (lambda: companions.manifest("trace"), _of_manifest),
    "trace.look.json.gz": (companions.look, read_second_pass),
    "base.json": (lambda: json.loads(seeds.baseline()), read_baseline),
    "ceilings.json": (lambda: CEILINGS, _of_ceilings),
    "numbers.json": (
        lambda: {"step_ns": 1e6, "idle": 3},
        lambda file: _run(("at", "n", "l", "o", "d", file.read_text())),
    ),
}


def _places(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where there is a value within a document; of lists only the first."""
    yield way
    inner = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for key, one in inner:
        yield from _places(one, (*way, key))


def _changed(document: Any, way: tuple[Any, ...], value: Any) -> Any:
    if not way:
        return value
    first, *rest = way
    inner = _changed(document[first], tuple(rest), value)
    return {**document, first: inner} if isinstance(document, dict) else [inner, *document[1:]]


@pytest.mark.parametrize("name", READERS)
def test_odd_values_are_refused_or_left_out(name: str, tmp_path: Path) -> None:
    made, read = READERS[name]
    document, file = made(), tmp_path / name
    for way in _places(document):
        for value in ODD:
            file.write_text(json.dumps(_changed(document, way, value)))
            try:
                read(file)
            except UnreadableFile:
                continue
            except Exception as error:
                raise AssertionError(f"{way}: {str(value)[:30]}") from error


def test_numbers_that_nothing_has_are_none() -> None:
    assert parse_json("[1e999, NaN, -Infinity, 9223372036854775808, 1" + "0" * 9999 + "]") == [None] * 5
    assert parse_json("[-9223372036854775808, 1.5e300, 7]") == [-(1 << 63), 1.5e300, 7]
    with pytest.raises(ValueError, match="deep"):
        parse_json("[" * 100_000)


def test_pipes_and_large_files_are_not_read(tmp_path: Path) -> None:
    pipe, large = tmp_path / "manifest.json", tmp_path / "large.json"
    os.mkfifo(pipe)
    large.write_text("[" + " " * 100 + "]")
    for path in (pipe, large, tmp_path):
        with pytest.raises((ValueError, OSError)):
            read_json(path, 100)
    assert recorded_entry(tmp_path / "trace.json") == {}
