"""The recorder of the noise study, at toy sizes on a CPU."""

from __future__ import annotations

import json
import tarfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from faults.jobs import Result
from faults.noise import __main__ as noise
from faults.noise import study, workers
from faults.noise.layer import layer_forms
from faults.noise.programs import PROGRAMS, SMALL_KERNELS, Program
from faults.noise.rules import RULES
from faults.recorded import RECORDINGS
from warpline.capture.plan import MAX_SKIP_FACTOR
from warpline.compare.measurement import measure
from warpline.intervals import Spans
from warpline.trace.open import open_trace

TRACE = RECORDINGS / "planted" / "kernel_at_bandwidth.plain.json.gz"
BATCHES = [(form, batch) for form in "ab" for batch in (0, 1)]


def test_steps_are_timed_as_warpline_run_does() -> None:
    torch = SimpleNamespace(cuda=SimpleNamespace(is_initialized=lambda: False))
    steps: list[int] = []
    timed = workers.timed(torch, lambda: steps.append(1))
    assert len(steps) == MAX_SKIP_FACTOR * workers.PLAN.skip  # quick steps, far from a fifth of a second
    assert timed.steps == len(timed.laps_ns) == len(steps) - 1 - (len(steps) - 1) // 3


def test_the_extra_work_of_an_earlier_study_is_taken(tmp_path: Path) -> None:
    known = {"p": {"pace": "GPU", "extra": 30, "truth": [{"ratio": 1.03}]}, "q": {}}
    (tmp_path / noise.LIST).write_text(json.dumps({"programs": known}))
    program = Program("p", "GPU", lambda torch, tiny: lambda extra: None)
    kept = noise.Study(tmp_path, tmp_path, True, (program,), 0.0, 1.0, {"programs": {}})
    noise.take_programs(kept, tmp_path)
    assert kept.found["programs"] == {"p": known["p"]}


@pytest.mark.parametrize("program", PROGRAMS, ids=[program.name for program in PROGRAMS])
def test_a_program_runs_with_and_without_extra_work(program: Program) -> None:
    step = program.build(pytest.importorskip("torch"), True)
    for extra in (0, program.extra or 1000):
        step(extra)


def test_extra_kernels_are_three_percent() -> None:
    program = next(program for program in PROGRAMS if program.name == "small_kernels")
    assert program.extra is not None
    assert program.extra / SMALL_KERNELS == pytest.approx(workers.SLOWDOWN, rel=0.02)


def test_extra_work_is_corrected_by_all_that_was_tried() -> None:
    assert workers.corrected([(1000, 0.06)]) == 500
    # 0.06 for 1,000 and 0.02 for 500: (60 + 10) / (1e6 + 0.25e6) = 5.6e-5 for each, and 0.03 / 5.6e-5 = 536.
    assert workers.corrected([(1000, 0.06), (500, 0.02)]) == 536
    assert workers.corrected([(1000, -0.01)]) == 4000


class _Timed:
    """A process in which each unit of extra work costs 0.1 % of the step."""

    failed = False

    def ask(self, asked: Any) -> Result:
        return {"extra": 60} if asked == workers.MEASURE else {"extra": asked, "a_ns": [1000], "b_ns": [1000 + asked]}


def test_a_program_is_timed_until_it_is_three_percent_slower(tmp_path: Path) -> None:
    program = Program("p", "GPU", lambda torch, tiny: lambda extra: None)
    found = {"extra": None, "truth": [], "tried": []}
    kept = noise.Study(tmp_path, tmp_path, True, (program,), 0.0, 1e12, {"programs": {"p": found}, "log": []})
    noise._time_program(kept, program, [_Timed(), _Timed()])  # type: ignore[list-item]
    assert (found["extra"], found["tried"]) == (30, [[60, 0.06], [30, 0.03]])
    assert [one["extra"] for one in found["truth"]] == [30, 30]


def test_all_forms_of_the_layer_compute_the_same() -> None:
    torch: Any = pytest.importorskip("torch")
    results = [build()() for build in layer_forms(torch, True).values()]
    for other in results[1:]:
        torch.testing.assert_close(other, results[0], rtol=0.05, atol=0.05)


def test_every_form_is_in_every_batch_and_none_has_a_fixed_place() -> None:
    forms = [(program, form) for program in "lsct" for form in "ab"]
    batches = [noise.order_of(forms, batch) for batch in range(len(forms))]
    assert all(set(Counter(batch).values()) == {2} for batch in batches)
    assert len({batch[0] for batch in batches}) == len(forms)


def test_what_does_not_fit_is_left_out_of_the_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    (tmp_path / "out").mkdir()
    results: list[Result] = [{"file": name, "bytes": 9000} for name in ("one.json.gz", "two.json.gz", "three.json.gz")]
    for result in results:
        (scratch / result["file"]).write_bytes(bytes(9000))
    monkeypatch.setattr(noise, "MAX_ARCHIVE_BYTES", 25_000)
    kept = noise.Study(tmp_path / "out", scratch, True, (), 0.0, 1.0, {"runs": results})
    kept.save(results[:1])
    kept.save(results[1:])
    with tarfile.open(tmp_path / "out" / noise.ARCHIVE) as tar:
        assert tar.getnames() == ["one.json.gz", "two.json.gz"]
    listed = json.loads((tmp_path / "out" / noise.LIST).read_text())
    assert [run["file"] for run in listed["runs"]] == ["one.json.gz", "two.json.gz", None]


def test_a_process_that_fails_costs_only_itself(tmp_path: Path) -> None:
    def fails(torch: Any) -> Callable[[], object]:
        raise ValueError("no such form")

    found: dict[str, Any] = {"failures": [], "log": []}
    kept = noise.Study(tmp_path, tmp_path, True, (), 0.0, 1.0, found)
    assert "error" in noise.record_batch(kept, [(fails, "one.json.gz")])[0]
    assert "no such form" in found["failures"][0]


def _runs(count: int, busy_ns: float, seed: int) -> study.Runs:
    """Runs of one kernel and a little idle time."""
    draw = np.random.default_rng(seed)
    one = measure(open_trace(TRACE))
    found = []
    for busy in busy_ns * np.exp(0.002 * draw.normal(size=count)):
        lengths = (busy + 1000 * np.exp(0.01 * draw.normal(size=6))).astype(np.int64)
        ends = np.cumsum(lengths)
        work = np.full(len(one.step.operations), busy / len(one.step.operations))
        idle = {cause: 1000.0 if cause == "dispatch" else 0.0 for cause in one.step.idle_ns}
        step = replace(
            one.step,
            exposed_ns=work,
            idle_ns=idle,
            spans=Spans(ends - lengths, ends),
            step_ns=busy + 1000,
            ahead_ns=0.0,
        )
        found.append(replace(one, step=step))
    return tuple(found)


def test_steady_runs_give_no_false_alarm_and_no_miss() -> None:
    recorded = study.Recorded("GPU", (1.03,), _runs(40, 1e6, 1), _runs(40, 1.03e6, 2))
    assert recorded.recorded_ratio == pytest.approx(1.03, abs=0.002)
    found = study.judge(recorded, 4, runs=(10, 20, 40))
    assert found == {
        **{("warpline", count): (0.0, 1.0) for count in (10, 20)},
        **{(rule, count): (0.0, 0.0) for rule in RULES[1:] for count in (10, 20)},
    }


def test_a_study_is_read_by_program_form_and_half(tmp_path: Path) -> None:
    runs = [
        {"program": "p", "form": form, "batch": batch, "file": f"p.{form}.{batch}.json.gz"} for form, batch in BATCHES
    ]
    programs = {"p": {"pace": "GPU", "truth": [{"ratio": 1.03}]}}
    (tmp_path / noise.LIST).write_text(json.dumps({"runs": [*runs, {**runs[0], "file": None}], "programs": programs}))
    with tarfile.open(tmp_path / noise.ARCHIVE, "w") as tar:
        for run in runs:
            tar.add(TRACE, run["file"])
    sizes = {}
    for half in study.HALVES:
        found = study.read_study(tmp_path, half)["p"]
        sizes[half] = (len(found.a), len(found.b))
    assert sizes == {"all": (2, 2), "even": (1, 1), "odd": (1, 1)}
