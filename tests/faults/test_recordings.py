"""The recorded faults: what the manifests say, and that the recordings are whole."""

from __future__ import annotations

import gzip

import polars as pl
import pytest
from paths import ROOT

from faults.captures import profiled_step_ns
from faults.page import page
from faults.programs import CAUSES, SUITES
from faults.recorded import RECORDINGS, RecordedCase, manifest_of, program_file, recorded_cases, recorded_suites
from warpline.analyses.breakdown import device_times
from warpline.replay import replay
from warpline.trace.open import open_trace

MANIFESTS = {suite: manifest_of(suite) for suite in recorded_suites()}
CASES = {case.name: case for case in recorded_cases()}
LARGEST_BYTES = 20_000_000
"""Of all recordings of the checkout."""
KEPT = [(case, variant) for case in CASES.values() for variant in case.kept_variants]


@pytest.mark.parametrize("suite", MANIFESTS)
def test_every_case_is_recorded_as_it_is_written(suite: str) -> None:
    recorded = [case.entry for case in recorded_cases(suite)]
    assert [entry["name"] for entry in recorded] == [case.name for case in SUITES[suite]]
    for entry, case in zip(recorded, SUITES[suite], strict=True):
        assert (entry["cause"], entry["fix"], entry["innocent"]) == (case.cause, case.fix, case.innocent)
        assert set(entry["other_fixes"]) == set(case.also)


@pytest.mark.parametrize("suite", MANIFESTS)
def test_a_suite_covers_the_causes_and_has_traps(suite: str) -> None:
    entries = MANIFESTS[suite]["cases"]
    assert (MANIFESTS[suite]["schema"], MANIFESTS[suite]["suite"]) == ("warpline.faults/1", suite)
    # The unseen suite has no cold start: each takes a process, and recording one takes long.
    assert {entry["cause"] for entry in entries} | ({"cold_start"} if suite == "unseen" else set()) == set(CAUSES)
    assert any(entry["trap"] for entry in entries)


@pytest.mark.parametrize("suite", MANIFESTS)
def test_a_fix_helps_and_an_innocent_is_innocent(suite: str) -> None:
    for case in MANIFESTS[suite]["cases"]:
        faulty, fixed = case["bare_step_ns"]["faulty"], case["bare_step_ns"]["fixed"]
        for time in (faulty, fixed, *case["other_fixes"].values()):
            assert 0 < time["min_ns"] <= time["median_ns"] <= time["max_ns"]
        assert case["gain"] == pytest.approx(faulty["step_ns"] / fixed["step_ns"], abs=1e-3)
        if "doubtful" in case:  # the stopwatch contradicts what its author meant
            continue
        assert case["gain"] >= 1.15 or not case["fix"], case["name"]
        if case["innocent"]:
            without = case["innocent_step_ns"]
            assert faulty["step_ns"] < 1.05 * without["step_ns"] or faulty["min_ns"] < 1.05 * without["median_ns"]


def test_the_checkout_holds_the_variants_that_are_kept_and_no_others() -> None:
    kept = {case.recording(variant) for case in CASES.values() for variant in case.kept_variants}
    assert set(RECORDINGS.glob("*/*.json.gz")) == kept
    assert sum(path.stat().st_size for path in kept) < LARGEST_BYTES


@pytest.mark.parametrize(("case", "variant"), KEPT, ids=[f"{case.name}-{variant}" for case, variant in KEPT])
def test_a_recording_is_whole_and_replays(case: RecordedCase, variant: str) -> None:
    path = case.recording(variant)
    assert profiled_step_ns(gzip.decompress(path.read_bytes()).decode())[0] == case.entry["profiled_step_ns"][variant]
    trace = open_trace(path, cache=False)
    assert [entry for entry in trace.health_entries if entry.severity == "error"] == []
    assert len(trace.all_steps) == case.entry["steps"]
    assert set(trace.all_steps.stored["found_by"].cast(pl.String)) == {"profiler_step"}
    (device,) = device_times(trace)
    assert device.busy_ns + device.idle_ns == device.window_ns
    assert device.compute_ns + device.comm_ns + device.copy_ns + device.memset_ns == device.busy_ns
    assert device.busy_ns > 0
    assert replay(trace).error_pct < 4.0


@pytest.mark.parametrize("name", [case.name for case in CASES.values() if case.kept_with_stacks])
def test_the_planted_lines_are_in_a_recording_with_stacks(name: str) -> None:
    frames = set(open_trace(CASES[name].recording("faulty"), cache=False).python.stored["name"].cast(pl.String))
    here = {program_file(frame) for frame in frames}
    for line in CASES[name].entry["planted"]:
        assert f"{program_file(line['file'])}({line['function_line']}): {line['function']}" in here


@pytest.mark.parametrize(
    "recorded",
    ["warpline/lab/faults/field/sync.py", "src/warpline/lab/faults/field/sync.py", "faults/programs/field/sync.py"],
)
def test_a_program_is_the_same_file_wherever_it_lay(recorded: str) -> None:
    assert program_file(recorded) == "faults/programs/field/sync.py"


def test_other_files_are_not_programs() -> None:
    assert program_file("torch/nn/modules/linear.py") == "torch/nn/modules/linear.py"
    assert program_file("other/warpline/lab/faults/sync.py") == "other/warpline/lab/faults/sync.py"


def test_the_planted_lines_lie_in_programs_that_exist() -> None:
    for case in CASES.values():
        for line in case.entry["planted"]:
            assert (ROOT / program_file(line["file"])).is_file()


def test_the_page_shows_every_case_with_its_time() -> None:
    shown = page()
    for case in CASES.values():
        assert f"| `{case.name}` | {case.entry['cause']} |" in shown
        assert f"| {case.entry['bare_step_ns']['faulty']['step_ns'] / 1e6:.3f} |" in shown


def test_every_suite_but_the_first_has_its_first_score_in_the_log() -> None:
    log = (ROOT / "faults" / "LOG.md").read_text(encoding="utf-8")
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in log.splitlines() if line.startswith("| 20")
    ]
    assert {row[1] for row in rows} == set(MANIFESTS) - {"planted"}
    for _date, suite, _stacks, cases, *figures in rows:
        assert int(cases) == len(SUITES[suite])
        assert all(0 <= int(figure) <= int(cases) for figure in figures[:4])
