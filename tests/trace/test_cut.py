"""A stretch of a trace is a trace: its rows are those of the whole, and point to each other as before."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from kineto_files import annotation, launched, write

import warpline
from warpline.analyses.breakdown import device_times
from warpline.analyses.idle.gaps import idle_gaps
from warpline.replay.replay import replay
from warpline.trace.cut import cut_to_steps
from warpline.trace.open import open_trace
from warpline.trace.steps.choice import StepChoice
from warpline.trace.trace import Trace

DEMO = Path(warpline.__file__).parent / "data" / "demo.json.xz"
POINTERS = {
    ("gpu", "api_id"): "api",
    ("gpu", "op_id"): "ops",
    ("api", "op_id"): "ops",
    ("ops", "parent"): "ops",
    ("ops", "forward_op"): "ops",
    ("ops", "frame"): "python",
    ("python", "parent"): "python",
}


@pytest.fixture(scope="module")
def some_steps() -> Trace:
    whole = open_trace(DEMO, cache=False)
    assert len(whole.all_steps) >= 4
    return whole.with_steps(StepChoice(1, 3))


def test_it_is_shorter_and_has_only_its_steps(some_steps: Trace) -> None:
    cut = cut_to_steps(some_steps)
    assert cut.all_steps.name.tolist() == some_steps.steps_in_view.name.tolist()
    assert cut.window == some_steps.window
    for name in ("gpu", "api", "ops"):
        assert 0 < len(cut.tables[name].stored) < len(some_steps.tables[name].stored)


def test_busy_time_and_its_parts_stay(some_steps: Trace) -> None:
    assert device_times(cut_to_steps(some_steps)) == device_times(some_steps)


def test_idle_time_has_the_same_causes(some_steps: Trace) -> None:
    (cut,), (whole,) = idle_gaps(cut_to_steps(some_steps)), idle_gaps(some_steps)
    kept, known = cut.totals(), whole.totals()
    # While the last work of these steps runs, the host loads for the next one, which the cut does not have.
    kept["dispatch"] -= known["input"]
    assert kept | {"input": known["input"]} == known


@pytest.mark.parametrize(("place", "target"), POINTERS.items())
def test_what_a_row_points_to_is_the_same(some_steps: Trace, place: tuple[str, str], target: str) -> None:
    table, column = place
    cut = cut_to_steps(some_steps)
    was, now = _followed(some_steps, table, column, target), _followed(cut, table, column, target)
    both = now.join(
        was, on=["name", "start_ns", "end_ns", "correlation"], how="left", suffix="_before", nulls_equal=True
    )
    same = both.filter(pl.col("target").is_not_null())
    assert len(same) or not len(now.filter(pl.col("target").is_not_null()))
    assert same["target"].to_list() == same["target_before"].to_list()


def _followed(trace: Trace, table: str, column: str, target: str) -> pl.DataFrame:
    """Each row of a table with the name and begin of what it points to."""
    other = (
        trace.tables[target]
        .stored.with_row_index("row")
        .select(pl.col("row").cast(pl.UInt32), target=pl.format("{} {}", pl.col("name").cast(pl.String), "start_ns"))
    )
    rows = trace.tables[table].stored.with_columns(pl.col("name").cast(pl.String))
    extra = [] if "correlation" in rows.columns else [pl.lit(0, pl.Int64).alias("correlation")]
    return (
        rows.with_columns(extra)
        .select("name", "start_ns", "end_ns", "correlation", pl.col(column).alias("row"))
        .join(other, on="row", how="left")
    )


def test_the_replay_of_a_stretch_gives_back_its_steps(some_steps: Trace) -> None:
    assert replay(cut_to_steps(some_steps)).error_pct < 1


def test_steps_found_on_the_device_keep_the_launches_before_them(tmp_path: Path) -> None:
    events = []
    for number in range(24):  # six steps of four kernels, launched 5 ms before they run
        name = "load" if number % 4 == 0 else "layer"
        events += launched(name, 10 * number, 5_000 + 100 * number, 50, 1 + number)
    trace = open_trace(write(tmp_path, events), cache=False)
    assert trace.all_steps.stored["found_by"][0] == "repetition"
    cut = cut_to_steps(trace.with_steps(StepChoice(2, 4)))
    assert len(cut.gpu) == 8
    assert cut.gpu.stored["api_id"].null_count() == 0
    assert len(cut.api) >= 8


def test_work_that_is_still_queued_when_the_steps_begin_stays(tmp_path: Path) -> None:
    """A loop that runs 2 ms ahead of its device: steps in the middle take 1 ms, as they do in the whole trace."""
    events = []
    for step in range(8):
        events += [annotation(f"ProfilerStep#{step}", 100 * step, 100)]
        events += launched("layer", 10 + 100 * step, 1000 * step + 20, 1000, 10 + step)
        events += launched("side", 20 + 100 * step, 100 * step + 30, 20, 30 + step, stream=20)
    cut = cut_to_steps(open_trace(write(tmp_path, events), cache=False).with_steps(StepChoice(4, 6)))
    begins, ends = cut.step_spans
    assert (ends - begins).tolist() == [1_000_000, 1_000_000]
    assert replay(cut).measured_ns.tolist() == [1_000_000, 1_000_000]
