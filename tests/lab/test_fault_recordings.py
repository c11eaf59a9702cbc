"""The recorded faults: what the manifest says, and that every trace is whole."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import polars as pl
import pytest
from paths import DATA, ROOT

import warpline
from warpline.analyses.breakdown import device_times
from warpline.lab.faults import CASES, CAUSES
from warpline.lab.page import page
from warpline.lab.snapshot import absolute_paths, profiled_step_ns

FOLDER = DATA / "faults"
MANIFEST = json.loads((FOLDER / "faults.json").read_text(encoding="utf-8"))
RECORDED = {case["name"]: case for case in MANIFEST["cases"]}
TRACES = sorted(FOLDER.glob("*.json.gz"))


def of(path: Path) -> dict[str, object]:
    return RECORDED[path.name.split(".")[0]]


def test_every_case_is_recorded_as_it_is_written() -> None:
    assert list(RECORDED) == [case.name for case in CASES]
    for case in CASES:
        recorded = RECORDED[case.name]
        assert (recorded["cause"], recorded["fix"], recorded["innocent"]) == (case.cause, case.fix, case.innocent)
        assert set(recorded["other_cures"]) == set(case.also)


def test_the_suite_covers_every_cause() -> None:
    assert MANIFEST["schema"] == "warpline.faults/1"
    assert len(RECORDED) >= 28
    counts = {cause: sum(case["cause"] == cause for case in RECORDED.values()) for cause in CAUSES}
    assert min(counts.values()) >= 3, counts
    assert sum(case["trap"] for case in RECORDED.values()) >= 4


@pytest.mark.parametrize("name", RECORDED)
def test_a_cure_cures_and_an_innocent_is_innocent(name: str) -> None:
    case = RECORDED[name]
    faulty, cured = case["bare_step_ns"]["faulty"], case["bare_step_ns"]["cured"]
    for time in (faulty, cured, *case["other_cures"].values()):
        assert 0 < time["min_ns"] <= time["median_ns"] <= time["max_ns"]
    assert case["gain"] == pytest.approx(faulty["median_ns"] / cured["median_ns"], abs=1e-3)
    if case["fix"]:
        assert case["gain"] >= 1.15
    if case["innocent"]:
        assert faulty["median_ns"] / case["innocent_step_ns"]["median_ns"] < 1.05


def test_every_case_has_its_captures() -> None:
    expected = set()
    for case in RECORDED.values():
        captures = ["", ".cured", *([".plain"] if case["stacks"] else [])]
        expected |= {f"{case['name']}{capture}.json.gz" for capture in captures}
    assert {path.name for path in TRACES} == expected
    assert sum(path.stat().st_size for path in TRACES) < 6_000_000


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name.removesuffix(".json.gz"))
def test_a_trace_is_whole(path: Path) -> None:
    trace = warpline.open(path, cache=False)
    assert [entry for entry in trace.health_entries if entry.severity == "error"] == []
    assert len(trace.steps) == of(path)["steps"]
    assert set(trace.steps["found_by"].cast(pl.String)) == {"profiler_step"}
    (device,) = device_times(trace)
    assert device.busy_ns + device.idle_ns == device.window_ns
    assert device.compute_ns + device.comm_ns + device.copy_ns + device.memset_ns == device.busy_ns
    assert device.busy_ns > 0


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name.removesuffix(".json.gz"))
def test_a_trace_names_no_machine(path: Path) -> None:
    text = gzip.decompress(path.read_bytes()).decode()
    assert absolute_paths(text) == []
    assert '"host_name": "' not in text.replace('"host_name": "host"', "")
    captured = path.name.split(".")[1].replace("json", "faulty")
    assert profiled_step_ns(text) == of(path)["profiled_step_ns"][captured]  # type: ignore[index]


@pytest.mark.parametrize("name", [name for name, case in RECORDED.items() if case["stacks"] and case["planted"]])
def test_the_planted_line_is_in_the_trace(name: str) -> None:
    frames = set(warpline.open(FOLDER / f"{name}.json.gz", cache=False).python["name"].cast(pl.String))
    for line in RECORDED[name]["planted"]:
        assert f"{line['file']}({line['function_line']}): {line['function']}" in frames


def test_the_page_shows_what_was_measured() -> None:
    assert (ROOT / "docs" / "lab" / "faults.md").read_text(encoding="utf-8") == page(MANIFEST)
