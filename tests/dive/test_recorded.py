"""A recorded chain: `warpline run`, `warpline dive TRACE -- PROGRAM` on an H200, and ncu's own CSV of that report."""

from __future__ import annotations

import csv
import lzma

import pytest
from paths import DATA

from warpline.dive.answer import dive_into
from warpline.dive.inside_kernels import inside_kernels
from warpline.dive.model import Dive
from warpline.dive.ncu_plan import runs_for
from warpline.sources.ncu import read_report
from warpline.trace.open import open_trace

REPORT = DATA / "ncu" / "triton.raw.csv.xz"
TRACE = DATA / "kineto" / "triton.json.xz"
SPEED = ("sm__throughput", "gpu__compute_memory_throughput")


@pytest.fixture(scope="module")
def answer() -> Dive:
    return dive_into(read_report(REPORT), open_trace(TRACE))


@pytest.fixture(scope="module")
def cells() -> list[dict[str, str]]:
    head, _, *rows = csv.reader(lzma.decompress(REPORT.read_bytes()).decode().splitlines())
    return [dict(zip(head, row, strict=True)) for row in rows]


def test_every_value_is_that_of_ncus_csv(answer: Dive, cells: list[dict[str, str]]) -> None:
    compared = 0
    for one, row in zip(answer.found, cells, strict=True):
        for node in (node for branch in one.tree for node in branch.nodes if row.get(node.metric)):
            assert node.value == pytest.approx(float(row[node.metric].replace(",", ""))), node.metric
            compared += 1
    assert compared > 150


def test_the_bound_is_that_of_the_speed_of_light_and_no_gain_is_above_the_cap(
    answer: Dive, cells: list[dict[str, str]]
) -> None:
    for one, row in zip(answer.found, cells, strict=True):
        compute, memory = (float(row[name + ".avg.pct_of_peak_sustained_elapsed"]) for name in SPEED)
        expected = "latency" if max(compute, memory) < 60 else "compute" if compute > memory else "memory"
        assert one.bound == expected
        assert one.gain.high <= one.cap


def test_the_launches_counted_on_the_timeline_are_those_that_ncu_profiled(answer: Dive) -> None:
    (run,) = runs_for(inside_kernels(open_trace(TRACE)), 5)
    by_place = sorted(run.kernels, key=lambda kernel: kernel.position)
    profiled = [(one.kernel.function, one.kernel.grid, one.kernel.block) for one in answer.found]
    assert [(kernel.function, kernel.grid, kernel.block) for kernel in by_place] == profiled
    assert [one.match.how for one in answer.found if one.match] == ["name, grid and block"] * 5


def test_the_flaw_that_was_written_into_a_triton_kernel_is_named(answer: Dive) -> None:
    assert [one.reason for one in answer.found[:2]] == ["uncoalesced", "memory_bandwidth"]
