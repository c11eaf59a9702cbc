"""Reports of an H200: printed values, bound and limiting unit agree with ncu's own pages; no gain above the cap."""

import csv
import gzip
from functools import cache

import pytest
from paths import SHARED

from warpline.dive.answer import dive_files
from warpline.dive.model import Dive, KernelDive
from warpline.trace.open import open_trace

pytestmark = pytest.mark.shared
FOLDER = SHARED / "h200" / "ncu"
FILES = ("layer_full", "block_full")


@cache
def answer(name: str) -> Dive:
    return dive_files([FOLDER / f"{name}.raw.csv.gz"])


@cache
def raw_rows(name: str) -> tuple[list[str], list[str], list[list[str]]]:
    with gzip.open(FOLDER / f"{name}.raw.csv.gz", "rt") as stream:
        header, units, *rows = csv.reader(stream)
    return header, units, rows


@cache
def details(name: str) -> dict[tuple[int, str, str], str]:
    with gzip.open(FOLDER / f"{name}.details.csv.gz", "rt") as stream:
        return {
            (int(row["ID"]), row["Section Name"], row["Metric Name"]): row["Metric Value"]
            for row in csv.DictReader(stream)
            if row["Metric Name"]
        }


SCALES = {"Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "us": 1e3, "ms": 1e6, "Ghz": 1e9, "Mhz": 1e6}


@pytest.mark.parametrize("name", FILES)
def test_every_value_of_the_tree_equals_the_csv(name: str) -> None:
    header, units, rows = raw_rows(name)
    checked = 0
    for found, row in zip(answer(name).found, rows, strict=True):
        for node in found.nodes:
            if node.value is None or node.metric not in header:
                continue
            at = header.index(node.metric)
            printed = float(row[at].replace(",", "")) * SCALES.get(units[at].split("/")[0], 1.0)
            assert node.value == pytest.approx(printed, rel=1e-6, abs=0.006), node
            checked += 1
    assert checked > 30 * len(rows)


@pytest.mark.parametrize("name", FILES)
def test_bound_and_limiter_agree_with_the_speed_of_light(name: str) -> None:
    for found in answer(name).found:
        page = {metric: value for (launch, section, metric), value in details(name).items()
                if launch == found.kernel.launch and section.startswith("GPU Speed Of Light")}  # fmt: skip
        compute, memory = float(page["Compute (SM) Throughput"]), float(page["Memory Throughput"])
        expected = "latency" if max(compute, memory) < 60 else "compute" if compute >= memory else "memory"
        assert found.bound == expected
        assert found.limiter_pct == pytest.approx(max(compute, memory), abs=0.006)


@pytest.mark.parametrize("name", FILES)
def test_no_gain_is_above_what_the_busiest_unit_leaves(name: str) -> None:
    for found in answer(name).found:
        sol = max(
            node.value or 0.0
            for node in found.nodes
            if node.question.startswith(("How busy is compute", "How busy is memory"))
        )
        assert found.gain.high <= found.cap <= 100 / sol + 1e-9


def values(found: KernelDive) -> dict[str, float]:
    return {node.question: round(node.value, 2) for node in found.nodes if node.value is not None}


def test_the_gemm_is_compute_bound_and_near_the_peak() -> None:
    gemm = answer("layer_full").found[0]
    known = values(gemm)
    assert known["How busy is compute?"] == known["How busy are the tensor cores?"] == 90.37
    assert known["How busy is DRAM?"] == 22.58
    assert known["How many are active (achieved occupancy)?"] == 14.68
    assert known["How many warps fit on an SM (theoretical occupancy)?"] == 18.75
    assert known["Waiting for a warpgroup matrix instruction?"] == 5.45
    assert known["Waiting at a block barrier (__syncthreads)?"] == 3.63
    assert known["Waiting for global, local or texture memory?"] == 3.03
    assert gemm.sentence.startswith("compute-bound, near the peak; low occupancy is no fault")


def test_silu_and_layer_norm() -> None:
    silu, norm = values(answer("layer_full").found[2]), values(answer("layer_full").found[6])
    assert (silu["How busy is compute?"], silu["How busy is DRAM?"]) == (68.71, 59.26)
    assert (norm["How busy is compute?"], norm["How busy is DRAM?"]) == (56.33, 21.16)


def test_the_details_page_says_what_it_lacks() -> None:
    found = dive_files([FOLDER / "layer_full.details.csv.gz"]).found[0]
    assert (found.bound, found.reason) == ("compute", "compute_peak")
    lacking = next(node for node in found.nodes if node.question == "How busy are the tensor cores?")
    assert (lacking.value, lacking.answer) == (None, "not recorded; section ComputeWorkloadAnalysis has it")


def test_the_gain_is_carried_to_the_step_of_a_trace() -> None:
    trace = open_trace(SHARED / "h200" / "kineto" / "layer_eager.json.gz")
    found = dive_files([FOLDER / "layer_full.raw.csv.gz"], trace).found
    carried = [one for one in found if one.step is not None]
    assert len(carried) >= 8
    for one in carried:
        assert one.step is not None
        assert 1.0 <= one.step.gain.low <= one.step.gain.expected <= one.step.gain.high <= one.gain.high
