"""Loading handed over to workers: what the loop still pays, what the workers allow, and recorded fixes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import kineto_files as files
import pytest
from kineto_files import Event

from warpline.findings.judge import judge
from warpline.fixes.registry import question_about
from warpline.replay import WhatIf
from warpline.replay.bare_step import MOST_STRAY
from warpline.replay.costs.cost import EXPECTED, OPTIMISTIC
from warpline.replay.costs.shares import LOADER_SHARE
from warpline.trace.open import open_trace

STEPS = 4
REST = 200.0
"""Microseconds of CPU after the copies, while the device works 50."""


def asked(
    folder: Path,
    loading: float,
    *,
    tensors: int = 1,
    copying: float = 5.0,
    frames: bool = False,
    loader: str | None = None,
    memory: str = "Pinned",
) -> WhatIf:
    """A step that makes a batch, copies its tensors, launches a kernel, and goes on for a while; no wait."""
    events: list[Event] = []
    length, number = loading + tensors * (copying + 10) + REST, 0
    for step in range(STEPS):
        now = step * length
        events.append(files.annotation(f"ProfilerStep#{step}", now, length))
        if frames:
            events.append(files.frame("train.py(3): negatives", now, loading - 1, step + 1, None))
        if loader:
            events.append(files.annotation(f"enumerate(DataLoader)#{loader}.__next__", now + 1, loading - 2))
        now += loading
        for _ in range(tensors):
            number += 1
            events.append(files.call("cudaMemcpyAsync", now, 5, number))
            events.append(files.copy(f"Memcpy HtoD ({memory} -> Device)", now + 5, copying, number, 1 << 16))
            now += copying + 10
        number += 1
        events += [files.call("cudaLaunchKernel", now, 5, number), files.kernel("k", now + 10, 50, number)]
    return question_about(open_trace(files.write(folder, events), cache=False))


def saved(question: WhatIf) -> float:
    return question.bare.expected_ns - question.ask("prefetch").new_step_ns.expected


@pytest.mark.parametrize("tensors", [1, 3])
def test_the_loop_still_takes_every_tensor_from_a_worker(tensors: int, tmp_path: Path) -> None:
    question = asked(tmp_path, 3000, tensors=tensors)
    assert saved(question) == pytest.approx(
        3_000_000 - tensors * question.labelled.host.worker_tensor.expected, rel=0.1
    )


@pytest.mark.parametrize(("kind", "case"), [("Pinned", OPTIMISTIC), ("Pageable", EXPECTED)])
def test_where_a_loader_pins_its_thread_takes_the_tensors_from_the_workers(
    kind: str, case: int, tmp_path: Path
) -> None:
    question = asked(tmp_path, 1000, loader="_SingleProcessDataLoaderIter", memory=kind)
    assert saved(question) == pytest.approx(1_000_000 - question.labelled.host.worker_tensor.at(case), abs=100_000)


def test_what_is_made_faster_than_it_is_taken_gains_nothing(tmp_path: Path) -> None:
    assert saved(asked(tmp_path, 500)) == pytest.approx(0, abs=20_000)


@pytest.mark.parametrize("frames", [False, True])
def test_workers_bound_the_step_whatever_the_functions_are_called(frames: bool, tmp_path: Path) -> None:
    prediction = asked(tmp_path, 20_000, frames=frames).ask("prefetch")
    assert prediction.new_step_ns.expected == pytest.approx(20_000_000 * LOADER_SHARE.expected, rel=0.02)


def test_the_range_goes_from_hidden_to_two_workers(tmp_path: Path) -> None:
    step = asked(tmp_path, 5000).ask("prefetch").replayed_ns
    assert step.low < 400_000
    assert step.high == pytest.approx(5_000_000 / 2, rel=0.05)


def test_copies_stay_where_loading_takes_longer_than_they_do(tmp_path: Path) -> None:
    assert not asked(tmp_path, 3000, copying=100).trial("prefetch").moved.any()
    assert asked(tmp_path, 400, copying=1000).trial("prefetch").moved.sum() == STEPS


@pytest.mark.parametrize(
    ("loader", "worst_us"), [("_SingleProcessDataLoaderIter", 2_500), ("_MultiProcessingDataLoaderIter", 5_000 + REST)]
)
def test_more_workers_may_bring_nothing(loader: str, worst_us: float, tmp_path: Path) -> None:
    """At worst the loading is divided between two workers; where workers load already, nothing changes."""
    prediction = asked(tmp_path, 5_000, loader=loader).ask("prefetch")
    assert prediction.gain.expected > 3
    assert prediction.replayed_ns.high == pytest.approx(1_000 * worst_us, rel=0.05)


LAUNCHES = 20
"""Launches of a step, each 10 µs apart, with kernels of 2 µs."""


def with_workers(folder: Path, workers: int, cpu_us: float) -> WhatIf:
    """Steps of 100 µs without recording, bound by launches; `run` has timed the workers of their loader."""
    folder.mkdir()
    return timed_by_run(files.write(folder, steps_of_launches()), workers, cpu_us)


def timed_by_run(trace: Path, workers: int, cpu_us: float) -> WhatIf:
    entry = {"file": trace.name, "loader_work": {"workers": workers, "cpu_ns": 1000 * cpu_us}}
    (trace.parent / "manifest.json").write_text(json.dumps({"files": [trace.name], "traces": [entry]}))
    return question_about(open_trace(trace, cache=False))


def steps_of_launches() -> list[Event]:
    events: list[Event] = []
    for step in range(STEPS):
        now = 220.0 * step
        events.append(files.annotation(f"ProfilerStep#{step}", now, 220))
        events.append(files.annotation("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", now, 5))
        for launch in range(LAUNCHES):
            at, number = now + 10 * (launch + 1), step * LAUNCHES + launch + 1
            events += [files.call("cudaLaunchKernel", at, 5, number), files.kernel("k", at + 7, 2, number)]
    return events


def test_what_the_workers_need_for_a_batch_bounds_every_other_fix(tmp_path: Path) -> None:
    free, bound = (with_workers(tmp_path / str(cpu), 2, cpu) for cpu in (20, 120))
    assert free.ask("cuda_graph").new_step_ns.expected < 50_000
    step = bound.ask("cuda_graph").new_step_ns
    assert step.expected == 60_000 < bound.bare.expected_ns == free.bare.expected_ns
    assert step.low == 60_000 / MOST_STRAY, "the workers' CPU time is no better known than a timed step"


def test_more_workers_share_what_was_measured(tmp_path: Path) -> None:
    question = with_workers(tmp_path / "run", 2, 120)
    assert question.trial("cuda_graph").floor_ns == 60_000
    assert question.trial("prefetch").floor_ns == pytest.approx(120_000 * LOADER_SHARE.expected)
    assert question.trial("prefetch", "cuda_graph").floor_ns == question.trial("prefetch").floor_ns


def test_workers_are_not_slower_than_the_step_that_they_fed(tmp_path: Path) -> None:
    assert with_workers(tmp_path / "run", 1, 10_000).ask("cuda_graph").gain.expected == 1.0


def test_advice_does_not_ask_for_fewer_workers_than_there_are(tmp_path: Path) -> None:
    """Those need 3 ms for a batch, the loop without its loading less than 1 ms."""
    trace = asked(tmp_path, 3000, loader="_MultiProcessingDataLoaderIter").trace.file
    findings = judge(timed_by_run(trace, 20, 60_000).trace).findings
    advice = next(one.how for one in findings if one.fix == "prefetch")
    found = re.search(r"assumes 20 workers, which load a batch in 3\.00 ms; about (\d+) would hide all loading", advice)
    assert found and int(found[1]) > 60, advice


def test_where_workers_need_as_long_as_the_step_neither_launches_nor_data_alone_are_the_cause(tmp_path: Path) -> None:
    judged = judge(with_workers(tmp_path / "run", 1, 300).trace)
    limits = judged.limits
    assert limits.row("dispatch").gain.expected == 1.0
    assert set(limits.pair) == {"dispatch", "input"}
    assert (
        "1 worker: 300 µs of CPU time for each step, so no step is shorter than about 99.5 µs"
        in judged.verdict.sentence
    )


@pytest.mark.parametrize(("loader", "effort"), [("_SingleProcessDataLoaderIter", "setting"), (None, "few_lines")])
def test_workers_are_an_argument_of_the_loader_that_is_there(tmp_path: Path, loader: str | None, effort: str) -> None:
    found = judge(asked(tmp_path, 3000, frames=True, loader=loader).trace).findings
    assert [one.effort for one in found if one.fix == "prefetch"] == [effort]
