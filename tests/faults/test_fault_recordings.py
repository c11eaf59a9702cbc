"""The recorded faults: what the manifest says, and that every trace is whole."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import polars as pl
import pytest
from paths import ROOT
from paths import SUITES as RECORDINGS

import warpline
from faults.page import page
from faults.programs import CAUSES, SUITES
from faults.captures import absolute_paths, profiled_step_ns
from warpline.analyses.breakdown import device_times

FOLDERS = {suite: RECORDINGS / suite for suite in SUITES}
MANIFESTS = {
    suite: json.loads((folder / "faults.json").read_text(encoding="utf-8")) for suite, folder in FOLDERS.items()
}
RECORDED = {suite: {case["name"]: case for case in manifest["cases"]} for suite, manifest in MANIFESTS.items()}
EVERY = {name: case for cases in RECORDED.values() for name, case in cases.items()}
TRACES = [path for folder in FOLDERS.values() for path in sorted(folder.glob("*.json.gz"))]
FEWEST = {
    "planted": (28, 3, 3, 4),
    "held_out": (24, 1, 3, 4),
    "field": (24, 1, 3, 4),
    "training": (18, 1, 3, 4),
    "serving": (18, 1, 2, 3),
    "studio": (16, 1, 2, 2),
    "textbook": (20, 1, 3, 4),
    "workshop": (20, 1, 3, 4),
}
"""Cases of a suite, cases of each cause, healthy ones and traps."""
LARGEST_BYTES = 12_500_000


def of(path: Path) -> dict[str, object]:
    return EVERY[path.name.split(".")[0]]


@pytest.mark.parametrize("suite", SUITES)
def test_every_case_is_recorded_as_it_is_written(suite: str) -> None:
    assert list(RECORDED[suite]) == [case.name for case in SUITES[suite]]
    for case in SUITES[suite]:
        recorded = EVERY[case.name]
        assert (recorded["cause"], recorded["fix"], recorded["innocent"]) == (case.cause, case.fix, case.innocent)
        assert set(recorded["other_cures"]) == set(case.also)


@pytest.mark.parametrize("suite", SUITES)
def test_a_suite_covers_every_cause(suite: str) -> None:
    cases, (fewest, fewest_each, fewest_healthy, fewest_traps) = RECORDED[suite].values(), FEWEST[suite]
    assert (MANIFESTS[suite]["schema"], MANIFESTS[suite]["suite"]) == ("warpline.faults/1", suite)
    assert len(cases) >= fewest
    counts = {cause: sum(case["cause"] == cause for case in cases) for cause in CAUSES}
    assert min(counts.values()) >= fewest_each, counts
    assert counts["healthy"] >= fewest_healthy
    assert sum(case["trap"] for case in cases) >= fewest_traps


@pytest.mark.parametrize("name", EVERY)
def test_a_cure_cures_and_an_innocent_is_innocent(name: str) -> None:
    case = EVERY[name]
    faulty, cured = case["bare_step_ns"]["faulty"], case["bare_step_ns"]["cured"]
    for time in (faulty, cured, *case["other_cures"].values()):
        assert 0 < time["min_ns"] <= time["median_ns"] <= time["max_ns"]
    assert case["gain"] == pytest.approx(faulty["step_ns"] / cured["step_ns"], abs=1e-3)
    if case["fix"]:
        assert case["gain"] >= 1.15
    if case["innocent"]:
        without = case["innocent_step_ns"]
        assert faulty["step_ns"] < 1.05 * without["step_ns"] or faulty["min_ns"] < 1.05 * without["median_ns"]


@pytest.mark.parametrize("suite", SUITES)
def test_every_case_has_its_captures(suite: str) -> None:
    expected, found = set(), list(FOLDERS[suite].glob("*.json.gz"))
    for case in RECORDED[suite].values():
        captures = ["", ".cured", *([".plain"] if case["stacks"] else [])]
        expected |= {f"{case['name']}{capture}.json.gz" for capture in captures}
    assert {path.name for path in found} == expected
    assert sum(path.stat().st_size for path in found) < LARGEST_BYTES


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
    assert profiled_step_ns(text)[0] == of(path)["profiled_step_ns"][captured]  # type: ignore[index]


@pytest.mark.parametrize("path", [path for path in TRACES if path.name.count(".") == 2], ids=lambda path: path.name)
def test_the_planted_line_is_in_the_trace(path: Path) -> None:
    case = EVERY[path.name.removesuffix(".json.gz")]
    if not case["stacks"]:
        pytest.skip("recorded without Python frames")
    frames = set(warpline.open(path, cache=False).python["name"].cast(pl.String))
    for line in case["planted"]:
        assert f"{line['file']}({line['function_line']}): {line['function']}" in frames


def test_the_page_shows_what_was_measured() -> None:
    assert (ROOT / "docs" / "lab" / "faults.md").read_text(encoding="utf-8") == page(MANIFESTS)
