"""Runs that were timed before they were recorded: hand-made run folders, with the answer worked out on paper.

The recorded step of A is one kernel of 100 µs and a wait of 500 µs (600 µs), in B the wait is 490 µs. The stopwatch says
400 µs and 200 µs: there the device works for 100 µs and waits for 300 µs, or for 100 µs.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from step_traces import steps, trace

import warpline
from warpline.capture.run_folder import MANIFEST
from warpline.cli.main import run
from warpline.compare.baseline import read_baseline, write_baseline
from warpline.compare.comparison import Comparison
from warpline.compare.gate import GateLimits, judge
from warpline.compare.measurement import RunMeasurement, measure
from warpline.compare.spread import RunTime
from warpline.compare.stopwatch import BareStepTime, is_timed, stopwatch_of, typical_ns, usual_spread
from warpline.reports import terminal
from warpline.reports.compare import report
from warpline.trace.open import open_trace

US = 1000


def timed(median: float, **other: Any) -> dict[str, Any]:
    """What a manifest says of bare steps of so many microseconds."""
    laps = [round(US * median * factor) for factor in (1.0, 0.99, 1.01, 1.0, 1.02, 0.98)]
    times = {"median_ns": round(US * median), "min_ns": min(laps), "max_ns": max(laps), "steps": 6}
    return {**times, "how": "cuda events", "settled": True, "laps_ns": laps, "cpu_ns": times["median_ns"], **other}


def folder(where: Path, name: str, gap: float, bare: dict[str, Any] | None, kernel: float = 100) -> Path:
    """The folder of a run: its trace, and what the stopwatch showed."""
    file = trace(where, name, steps(6, [("gemm", kernel)], gap=gap))
    recorded = {"median_ns": round(US * (kernel + gap))}
    entry = {"file": file.name, "bare_step_ns": bare, "recorded_step_ns": recorded}
    (where / name / MANIFEST).write_text(json.dumps({"files": [file.name], "traces": [entry]}))
    return where / name


def several(where: Path, name: str, gap: float, bares: list[dict[str, Any] | None]) -> list[Path]:
    return [folder(where, f"{name}{number}", gap, bare) for number, bare in enumerate(bares)]


@pytest.fixture
def hidden(tmp_path: Path) -> Comparison:
    """Five runs a side, in which the profiler hides that B takes half of the time."""
    factors = (1.0, 1.02, 0.98, 1.01, 0.99)
    a = several(tmp_path, "a", 500, [timed(400 * factor) for factor in factors])
    b = several(tmp_path, "b", 490, [timed(200 * factor) for factor in factors])
    return warpline.compare(a, b)


def test_the_stopwatch_decides_and_the_parts_explain_what_was_recorded(hidden: Comparison) -> None:
    assert (hidden.verdict, hidden.judged_by) == ("faster", "stopwatch")
    assert (hidden.a.stopwatch_ns, hidden.b.stopwatch_ns) == (400 * US, 200 * US)
    assert hidden.stopwatch_ratio is not None
    assert hidden.stopwatch_ratio.expected == pytest.approx(0.5, rel=1e-4)
    assert hidden.change_ns == -10 * US
    assert sum(part.change_ns for part in hidden.parts) + hidden.unexplained_ns == hidden.change_ns
    answer = hidden.to_dict()
    assert (answer["a"]["stopwatch_ns"], answer["judged_by"]) == (400 * US, "stopwatch")
    assert answer["change"]["stopwatch_ratio"]["expected"] == 0.5
    assert answer["change"]["ratio"]["expected"] == pytest.approx(590 / 600, abs=1e-4)


def test_both_numbers_are_said(hidden: Comparison) -> None:
    assert hidden.sentence.startswith(
        "B is faster than A: 400 µs → 200 µs a step without the profiler in the median runs, over all runs −50.0 % ("
    )
    assert hidden.sentence.endswith("; recorded 600 µs → 590 µs, over all runs −1.7 %: the profiler hides the gain.")
    assert "What changed, per recorded step" in terminal.render(report(hidden, verbose=True), 120).plain


def test_one_run_a_side_is_never_surer_than_the_noise_between_runs(tmp_path: Path) -> None:
    """Waits of three quarters and a half of the step differ by 30 % between runs: 22.5 and 15 % of the step, 19 % in the
    mean. With one run a side a ratio is known within exp(4.2 × 0.19 × √2), a factor of three, however alike the laps."""
    a, b = folder(tmp_path, "a", 500, timed(400)), folder(tmp_path, "b", 490, timed(200))
    found = warpline.compare(a, b)
    assert (found.verdict, found.judged_by) == ("inconclusive", "stopwatch")
    assert found.stopwatch_ratio is not None
    assert found.stopwatch_ratio.high / found.stopwatch_ratio.expected > 2
    assert found.more_runs is not None
    assert found.sentence.startswith("Inconclusive: 400 µs → 200 µs a step without the profiler, −50.0 % (")


def test_a_gain_that_only_the_profiler_shows_is_none(tmp_path: Path) -> None:
    bares = [timed(110 * factor) for factor in (1.0, 1.002, 0.998, 1.001, 0.999) * 4]
    a, b = several(tmp_path, "a", 500, bares), several(tmp_path, "b", 100, bares)
    found = warpline.compare(a, b)
    assert (found.verdict, found.judged_by) == ("same", "stopwatch")
    assert found.ratio.expected == pytest.approx(200 / 600, rel=1e-3)


def test_where_one_side_was_timed_the_recorded_steps_decide_and_a_note_says_so(tmp_path: Path) -> None:
    a, b = folder(tmp_path, "a", 500, timed(400)), folder(tmp_path, "b", 490, None)
    found = warpline.compare(a, b)
    before = warpline.compare(folder(tmp_path, "c", 500, None), folder(tmp_path, "d", 490, None))
    assert (found.verdict, found.judged_by, found.stopwatch_ratio) == (before.verdict, before.judged_by, None)
    assert (found.a.stopwatch_ns, found.b.stopwatch_ns) == (400 * US, None)
    note = "A was timed without the profiler and B was not, or had not settled, so the recorded steps are compared; "
    assert any(reason.startswith(note) for reason in found.reasons)
    assert not any("timed" in reason for reason in before.reasons)


@pytest.mark.parametrize(
    "bare",
    [
        timed(400, settled=False),
        timed(400, steps=2),
        timed(400, median_ns=0),
        timed(400, laps_ns="x"),
        timed(400, cpu_ns=-1),
        timed(70),  # shorter than the device's work of 100 µs, by more than clocks explain
        {"median_ns": 5},
    ],
)
def test_a_stopwatch_that_is_not_believed_is_none(bare: dict[str, Any], tmp_path: Path) -> None:
    assert measure(open_trace(folder(tmp_path, "a", 500, bare))).stopwatch is None


def test_a_stopwatch_of_other_steps_is_none(tmp_path: Path) -> None:
    """The run timed steps of 600 µs while it recorded; these are twice as long."""
    run = open_trace(folder(tmp_path, "a", 500, timed(400)))
    recorded = RunTime(100 * US, 500 * US, measure(run).step.lengths_ns)
    assert stopwatch_of(run, [600 * US] * 6, recorded) is not None
    assert stopwatch_of(run, [1200 * US] * 6, recorded) is None


def test_an_older_manifest_says_the_least_the_median_and_the_longest(tmp_path: Path) -> None:
    bare = timed(400)
    del bare["laps_ns"], bare["cpu_ns"]
    found = measure(open_trace(folder(tmp_path, "a", 500, bare))).stopwatch
    assert found == BareStepTime(400 * US, (392 * US, 400 * US, 408 * US), None)


def test_last_laps_without_the_median_do_not_stand_for_the_step(tmp_path: Path) -> None:
    late = timed(400, min_ns=300 * US, max_ns=900 * US, laps_ns=[500 * US, 600 * US, 550 * US], cpu_ns=None)
    found = measure(open_trace(folder(tmp_path, "a", 500, late))).stopwatch
    assert found == BareStepTime(400 * US, (300 * US, 400 * US, 900 * US), None)


def test_the_usual_spread_is_that_of_the_parts() -> None:
    """Of 1,000: work 600 (2 %), copies 200 (10 %), waits 200 (30 %)."""
    run = RunTime(600, 1000, np.full(4, 1800), 200)
    assert usual_spread(run, BareStepTime(1000, (1000,), None)) == pytest.approx(math.hypot(12, 20, 60) / 1000)
    # Shorter than the recorded work: no waits, and the parts are as much shorter.
    assert usual_spread(run, BareStepTime(720, (720,), None)) == pytest.approx(math.hypot(0.02 * 0.75, 0.1 * 0.25))


def test_most_runs_must_be_timed() -> None:
    one, two = BareStepTime(2, (2,), None), BareStepTime(3, (3,), None)
    assert is_timed([one, None, two])
    assert not is_timed([one, None])
    assert typical_ns([two, None, one]) == 2


def test_a_recording_compared_with_itself_is_the_same(tmp_path: Path) -> None:
    a = folder(tmp_path, "a", 500, timed(400))
    assert warpline.compare(a, a).verdict == "same"


def test_a_slower_step_that_the_profiler_hides_fails_the_gate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    factors = (1.0, 1.02, 0.98, 1.01, 0.99)
    good = several(tmp_path, "good", 490, [timed(200 * factor) for factor in factors])
    slow = several(tmp_path, "slow", 500, [timed(400 * factor) for factor in factors])
    kept = ["--folder", str(tmp_path / "kept")]
    assert run(["baseline", "save", "train", *map(str, good), *kept]) == 0
    capsys.readouterr()
    assert run(["gate", *map(str, slow), "--baseline", "train", *kept, "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["comparison"]["judged_by"] == "stopwatch"


def test_a_baseline_without_stopwatch_times_is_compared_by_recorded_steps(tmp_path: Path) -> None:
    good = measure(open_trace(folder(tmp_path, "a", 490, timed(200))))
    slow = measure(open_trace(folder(tmp_path, "b", 500, timed(400))))

    def read(run: RunMeasurement) -> list[RunMeasurement]:
        write_baseline(tmp_path / "b.json", [run])
        return read_baseline(tmp_path / "b.json")

    (with_times,) = read(good)
    assert with_times.stopwatch == good.stopwatch
    text = (tmp_path / "b.json").read_text()
    older = json.loads(text)
    del older["runs"][0]["stopwatch"]
    (tmp_path / "b.json").write_text(json.dumps(older))
    (without,) = read_baseline(tmp_path / "b.json")
    assert without.stopwatch is None
    assert read(replace(good, stopwatch=None))[0].stopwatch is None
    compared = judge([slow], GateLimits([without])).comparison
    assert compared is not None and compared.judged_by == "step"
    assert any(reason.startswith("B was timed without the profiler and A was not") for reason in compared.reasons)
