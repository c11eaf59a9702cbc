"""What operations that differ do to a step, on made-up runs of a noisy host."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from warpline.analyses.idle.gaps import CAUSES
from warpline.compare.changed_work import ChangedWork, changed_work, judge
from warpline.compare.comparable import Setting
from warpline.compare.comparison import compare_measurements
from warpline.compare.counts import KINDS
from warpline.compare.gate import GateLimits
from warpline.compare.gate import judge as gate
from warpline.compare.measurement import RunMeasurement
from warpline.compare.typical_step import Operation, TypicalStep
from warpline.estimate import Estimate
from warpline.intervals import Spans

SETTING = Setting("kineto", ("GPU",), None, 1, frozenset())
LEAST = 0.02


def run(waits: list[float], works: list[float], names: str = "", host: float = 1.0) -> RunMeasurement:
    """A run: a wait before each operation and the operation itself, on a host that is so much slower."""
    waited, exposed = np.array(waits) * host, np.array(works, float)
    whole = float((waited + exposed).sum())
    step = TypicalStep(
        operations=tuple(Operation("kernel", name, "", (1, 1, 1)) for name in names or "k" * len(works)),
        exposed_ns=exposed,
        idle_ns={cause: float(waited.sum()) if cause == "dispatch" else 0.0 for cause in CAUSES},
        spans=Spans(np.arange(6) * round(whole), np.arange(1, 7) * round(whole)),
        averaged=6,
        step_ns=whole,
        device=0,
        found_by="profiler_step",
        waited_ns=waited,
    )
    return RunMeasurement("run.json", SETTING, step, dict.fromkeys(KINDS, 0.0))


def noisy(draw: np.random.Generator, kernels: int, count: int = 8) -> list[RunMeasurement]:
    """Runs of small kernels on a host whose speed differs by a fifth, and each wait by a tenth."""
    return [
        run(
            list(9000 * np.exp(0.1 * draw.normal(size=kernels))),
            [1000] * kernels,
            host=float(np.exp(draw.normal() / 5)),
        )
        for _ in range(count)
    ]


def test_the_ratio_is_that_of_the_steps_with_the_hosts_speed_taken_out() -> None:
    a, b = run([900] * 10, [100] * 10), run([900] * 12, [100] * 12, host=1.5)
    found = changed_work([a], [b], LEAST)
    assert found is not None
    assert (found.gone, found.new) == (0, 2)
    # Ten operations are common, with their waits and work: 12/10 of them, whatever the host's speed.
    assert found.ratio.expected == pytest.approx(1.2)
    assert found.ratio.low < 1.2 < found.ratio.high


def test_two_launches_more_are_found_where_the_host_hides_three_percent() -> None:
    draw = np.random.default_rng(1)
    a, b = noisy(draw, 66), noisy(draw, 68)
    found, changed = judge(a, b, LEAST)
    assert (found.verdict, found.judged_by) == ("slower", "structure")
    assert changed is not None and 1.02 < changed.ratio.expected < 1.04
    assert judge(b, a, LEAST)[0].verdict == "faster"
    answer = compare_measurements(a, b)
    assert answer.sentence.startswith("B is slower by what it runs: 2 new operations, +3.")
    assert answer.to_dict()["change"]["structure"]["new"] == 2
    assert gate(b, GateLimits(a)).outcome == "regression"


def test_runs_of_one_program_have_no_operations_that_differ() -> None:
    draw = np.random.default_rng(2)
    assert changed_work(noisy(draw, 66), noisy(draw, 66), LEAST) is None


def test_a_rest_that_is_faster_refuses_it() -> None:
    a = [run([9000] * 66, [1000] * 66, host=host) for host in (0.9, 1.0, 1.0, 1.1)]
    b = [run([9000] * 68, [1000] * 68, host=host) for host in (0.5, 0.55, 0.55, 0.6)]
    assert judge(a, b, LEAST)[0].verdict != "slower"


def test_work_and_operations_that_disagree_leave_it_open() -> None:
    # The GPU has less to do in the operation that both run, and B waits for one more.
    a = [run([100, 3000, 100], [9000, 100, 100], "axb", host) for host in (0.7, 1.0, 1.3, 1.6)]
    b = [run([100, 3000, 3000, 100], [8000, 100, 100, 100], "axyb", host) for host in (0.7, 1.0, 1.3, 1.6)]
    found, changed = judge(a, b, LEAST)
    assert changed is not None and changed.ratio.low > 1
    assert found.work_ratio.high < 1
    assert (found.verdict, found.judged_by) == ("inconclusive", "step")


def test_time_that_a_later_wait_gives_back_is_not_counted() -> None:
    # The GPU works 1000 longer in x, and then waits 1000 less for the CPU.
    a = run([0, 0, 2000], [10_000, 1000, 10_000], "axb")
    b = run([0, 0, 0, 1000], [10_000, 1000, 1000, 10_000], "axxb")
    found = changed_work([a], [b], LEAST)
    assert found is not None and found.ratio.expected == pytest.approx(1.0)


def test_a_kernel_of_the_same_name_and_grid_may_do_other_work() -> None:
    # Two halves became one whole: half as many kernels, each of which takes twice as long.
    a, b = run([0] * 8, [10_000] * 8, "abababab"), run([0] * 4, [20_000] * 4, "abab")
    assert changed_work([a], [b], LEAST) is None


def test_steps_that_vary_say_nothing() -> None:
    a, b = run([900] * 10, [100] * 10), run([900] * 12, [100] * 12)
    assert changed_work([a], [replace(b, step=replace(b.step, waited_ns=None))], LEAST) is None
    assert changed_work([a], [b, run([900] * 11, [100] * 11)], LEAST) is None


@pytest.mark.parametrize(
    ("gone", "new", "words"),
    [(1, 0, "1 operation gone"), (0, 2, "2 new operations"), (36, 1, "36 operations gone and 1 new operation")],
)
def test_the_operations_in_words(gone: int, new: int, words: str) -> None:
    a = run([900] * 10, [100] * 10)
    rest = judge([a], [a], LEAST)[0]
    assert ChangedWork(Estimate(1, 1, 1), gone, new, rest).in_words == words


def allocating(memory: float, calls: float) -> RunMeasurement:
    """Ten operations that wait for 900 ns each, and so long for calls that allocate."""
    one = run([900 + memory / 10] * 10, [100] * 10)
    idle = {**one.step.idle_ns, "memory": memory, "dispatch": one.step.idle_ns["dispatch"] - memory}
    return replace(one, step=replace(one.step, idle_ns=idle), counts={**one.counts, "allocations": calls})


def test_allocations_that_only_one_side_has_are_what_changed() -> None:
    a, b = allocating(5000, 20), allocating(0, 0)
    found, changed = judge([a], [b], LEAST)
    assert changed is not None
    assert (changed.gone, changed.new, changed.in_words) == (20, 0, "20 allocations gone")
    # The rest takes 10 µs on both sides, and the allocations 5 µs more: 10/15.
    assert changed.ratio.expected == pytest.approx(10 / 15)
    assert (found.verdict, found.judged_by) == ("faster", "structure")
    assert judge([b], [a], LEAST)[0].verdict == "slower"


@pytest.mark.parametrize(("calls_a", "calls_b"), [(20, 20), (0.4, 0), (20, 1)])
def test_allocations_on_both_sides_or_on_none_say_nothing(calls_a: float, calls_b: float) -> None:
    assert changed_work([allocating(5000, calls_a)], [allocating(0, calls_b)], LEAST) is None


def test_where_it_is_open_more_runs_may_settle_it_by_the_operations() -> None:
    a, b = run([900] * 14, [100] * 14, "k" * 10 + "x" * 4), run([900] * 15, [100] * 15, "k" * 10 + "y" * 5)
    found, changed = judge([a], [b], LEAST)
    assert changed is not None and changed.ratio.low < 1 < changed.ratio.expected
    assert (found.verdict, found.more_runs) == ("inconclusive", changed.more_runs)
    assert changed.more_runs is not None
    enough = 1 + changed.more_runs
    assert judge([a] * enough, [b] * enough, LEAST)[0].verdict == "slower"
