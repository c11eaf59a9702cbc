"""What a dispatch budget means for a step: worked out on paper."""

from __future__ import annotations

import pytest

from warpline.analyses.budget import DispatchBudget
from warpline.findings.budget import BareBudget, outlook
from warpline.reports.budget import budget_report

TEN_LAUNCHES = DispatchBudget(ops=10, cpu_ns=5_000, gpu_ns=6_000)
"""50 µs to dispatch, 60 µs to run."""


def test_fewer_launches_keep_the_loading_that_the_same_threads_do() -> None:
    # 50 + 40 of 100 µs on the CPU, 10 µs of other waits. With a fifth of the launches the CPU needs 10 + 40 µs, less
    # than the GPU's 60.
    found = outlook(TEN_LAUNCHES, 5.0, 0.0, 0.0, BareBudget(TEN_LAUNCHES, 100_000, None, loading_ns=40_000))
    assert found.fused_ns == pytest.approx(60_000 + 10_000)


@pytest.mark.parametrize(
    ("step_us", "loading_us", "bound", "title"),
    [
        (92, 40, "cpu", "dispatch on the CPU and loading data, one after the other"),
        (150, 100, "input", "loading data and dispatch on the CPU, one after the other"),
        (1_050, 1_000, "input", "loading data"),
        (62, 0, "gpu", "the GPU"),
        (200, 0, "waits", "neither dispatch nor the GPU alone"),
    ],
)
def test_a_step_is_bound_by_what_fills_it(step_us: int, loading_us: int, bound: str, title: str) -> None:
    bare = BareBudget(TEN_LAUNCHES, 1_000.0 * step_us, None, loading_ns=1_000.0 * loading_us)
    found = outlook(TEN_LAUNCHES, 4.0, 0.0, 0.0, bare)
    assert found.bound == bound
    assert budget_report(found).title.startswith(f"Bound by {title}: ")


def test_time_that_is_neither_dispatch_nor_loading_is_named() -> None:
    bare = BareBudget(TEN_LAUNCHES, 200_000.0, None, loading_ns=30_000.0)
    lines = [
        str(part)
        for section in budget_report(outlook(TEN_LAUNCHES, 4.0, 0.0, 0.0, bare)).sections
        for part in section.content
    ]
    assert any("120 µs a step in which the launching threads wait, copy" in line for line in lines)


def test_the_product_of_the_launches_is_the_time_beside_it() -> None:
    """6.3 launches of 120 µs are 756 µs; 6 would not be."""
    report = budget_report(outlook(DispatchBudget(6.3, 120_000.0, 1_000.0), 4.0, 0.0, 0.0))
    assert "6.3 launches a step × 120 µs of CPU each = 756 µs to dispatch" in str(report)


def test_a_crossover_is_shown_where_it_says_what_bounds_the_step() -> None:
    """10 launches of 10 µs and 20 µs: below 20 launches the GPU is the limit, and so it is here."""
    gpu = DispatchBudget(10, 10_000.0, 20_000.0)
    assert "below 20 launches for the same GPU time, the GPU is the limit" in str(
        budget_report(outlook(gpu, 4.0, 0.0, 0.0))
    )
    with_loading = outlook(gpu, 4.0, 0.0, 0.0, BareBudget(gpu, 220_000.0, None, loading_ns=120_000.0))
    assert with_loading.bound == "input"
    assert "crossover" not in str(budget_report(with_loading))


def test_a_little_loading_beside_dispatch_is_not_named() -> None:
    """Dispatch takes 90.8 of 100 µs, loading 3 µs: without it the step would be 3 % shorter."""
    budget = DispatchBudget(10, 9_080.0, 1_000.0)
    found = outlook(budget, 4.0, 0.0, 0.0, BareBudget(budget, 100_000.0, None, loading_ns=3_000.0))
    assert budget_report(found).title.startswith("Bound by dispatch on the CPU: ")
