"""Tracks hold every row of the trace once, with its times; bars on one track nest or follow each other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from answers import diagnosed
from kineto_files import annotation, call, frame, kernel, launched, op, write
from paths import DATA, DEMO

from warpline.exports.timeline import ViewerTimeline, viewer_timeline
from warpline.findings.diagnosis import Diagnosis, diagnose
from warpline.trace.arrays import NONE
from warpline.trace.open import open_trace
from warpline.trace.steps.choice import StepChoice

NSYS = DATA / "nsys" / "graph_node.sqlite.gz"


@pytest.fixture(scope="module", params=[DEMO, NSYS], ids=["kineto", "nsys"])
def diagnosis(request: pytest.FixtureRequest) -> Diagnosis:
    return diagnosed(request.param)


def bars(shown: ViewerTimeline, table: str) -> pl.DataFrame:
    return pl.concat(
        track.bars.select("start_ns", "end_ns", "name", "row") for track in shown.tracks if track.table == table
    )


@pytest.mark.parametrize("table", ["gpu", "api", "ops", "python", "ranges"])
def test_every_row_of_a_table_is_one_bar_with_its_times(diagnosis: Diagnosis, table: str) -> None:
    rows = diagnosis.trace.tables[table].stored
    if not len(rows):
        return
    shown = bars(viewer_timeline(diagnosis), table).sort("row")
    assert shown["row"].to_list() == list(range(len(rows)))
    assert shown["start_ns"].to_list() == rows["start_ns"].to_list()
    closed = rows["end_ns"].is_not_null()
    assert shown["end_ns"].filter(closed).to_list() == rows["end_ns"].filter(closed).to_list()
    assert shown["name"].to_list() == rows["name"].cast(pl.String).to_list()


def test_idle_bars_sum_to_each_cause(diagnosis: Diagnosis) -> None:
    shown = bars(viewer_timeline(diagnosis), "idle")
    found = dict(shown.group_by("name").agg((pl.col("end_ns") - pl.col("start_ns")).sum()).iter_rows())
    totals = [gaps.totals() for gaps in diagnosis.gaps]
    assert found == {
        cause: sum(one[cause] for one in totals) for cause in totals[0] if any(one[cause] for one in totals)
    }


def test_arrows_lead_from_every_launch_to_what_it_launched(diagnosis: Diagnosis) -> None:
    launches, autograd = viewer_timeline(diagnosis).arrows
    gpu = diagnosis.trace.gpu
    linked = np.flatnonzero(gpu.api_id != NONE)
    assert launches.from_rows.tolist() == gpu.api_id[linked].tolist()
    assert launches.to_rows.tolist() == linked.tolist()
    assert len(autograd) == (diagnosis.trace.ops.forward_op != NONE).sum()
    numbers = [number for arrows in (launches, autograd) for found in arrows.arriving().values() for number in found]
    assert sorted(numbers) == list(range(1, len(numbers) + 1))


def test_a_finding_shows_when_what_its_fix_touches_ran(tmp_path: Path) -> None:
    # Two steps of 100 µs, each with one kernel of 10 µs: the CPU launches too slowly.
    events = [
        event
        for step in range(4)
        for event in (
            annotation(f"ProfilerStep#{step}", 100 * step, 100),
            *(
                event
                for place in range(4)
                for event in launched(
                    f"k{place}", 100 * step + 20 * place + 5, 100 * step + 20 * place + 12, 3, 10 * step + place + 1
                )
            ),
        )
    ]
    found = diagnose(open_trace(write(tmp_path, events), cache=False), why=True)
    named = {track.name: track for track in viewer_timeline(found).tracks if track.table == "findings"}
    assert len(named) == len(found.findings) > 0
    for finding, track in zip(found.findings, named.values(), strict=True):
        assert track.bars["claim"].unique().to_list() == [finding.claim]
        assert track.bars["end_ns"].max() <= 400_000


def test_chosen_steps_leave_the_rest_out() -> None:
    trace = open_trace(DEMO, cache=False)
    shown = viewer_timeline(diagnose(trace.with_steps(StepChoice(1, 2)), why=False))
    assert 0 < len(bars(shown, "gpu")) < len(trace.gpu)
    assert len(bars(shown, "steps")) == 1


def test_threads_and_streams_have_names(tmp_path: Path) -> None:
    events = [
        annotation("forward", 0, 50),
        frame("train.py(3): step", 1, 40, 1, None),
        op("aten::mm", 2, 10, external=1),
        call("cudaLaunchKernel", 4, 5, 1),
        kernel("gemm", 20, 10, 1, stream=7),
        kernel("gemm", 25, 10, 2, stream=13),
    ]
    shown = viewer_timeline(diagnose(open_trace(write(tmp_path, events), cache=False), why=False))
    assert [(track.group, track.name) for track in shown.tracks] == [
        ("GPU 0 · Test GPU", "stream 7"),
        ("GPU 0 · Test GPU", "stream 13"),
        ("thread 100", "ranges"),
        ("thread 100", "Python"),
        ("thread 100", "ops"),
        ("thread 100", "CUDA API"),
    ]


def test_activity_without_a_stream_comes_last(tmp_path: Path) -> None:
    without = kernel("lost", 40, 10, 3)
    without["args"].pop("stream")
    without["tid"] = "none"
    events = [kernel("a", 0, 10, 1, stream=13), kernel("b", 20, 10, 2, stream=7), without]
    shown = viewer_timeline(diagnose(open_trace(write(tmp_path, events), cache=False), why=False))
    assert [track.name for track in shown.tracks if track.table == "gpu"] == [
        "stream 7",
        "stream 13",
        "no stream recorded",
    ]
