"""Two reports: kernels aligned, changes, and the one that explains the time."""

from pathlib import Path

import pytest
from dive_kernels import kernel

from warpline.dive.compare import align, compare
from warpline.errors import UsageError
from warpline.reports import terminal
from warpline.reports.dive_compare import report as sections_of
from warpline.sources.ncu.model import KernelReport, NcuReport


def report_of(name: str, *kernels: KernelReport) -> NcuReport:
    return NcuReport(Path(name), "csv-raw", "2025.3", kernels)


def test_padding_explains_a_faster_kernel() -> None:
    conflicts = kernel(
        memory=95,
        dram=5,
        l2=5,
        shared_wavefronts=3.2e7,
        shared_conflicts=3.1e7,
        data_wavefronts=95,
        shared_wavefronts_pct=95,
    )
    padded = kernel(duration=10_000, memory=50, dram=50, shared_wavefronts=1e6, shared_conflicts=0)
    (found,) = compare(report_of("a", conflicts), report_of("b", padded)).kernels
    assert (found.verdict, found.gain) == ("faster", pytest.approx(10.0))
    assert found.explained_by is not None and found.explained_by.words == "shared-memory wavefronts"
    assert "10.00× faster: shared-memory wavefronts went from 32,000,000 to 1,000,000" in found.sentence
    assert "the reason was bank_conflicts and is latency" in found.sentence


def test_a_slower_kernel_is_explained_by_what_its_reason_is_about() -> None:
    filled, few = kernel(), kernel(duration=500_000, grid=24, waves=24 / 1056, sm=3, memory=5, dram=5, issue=3)
    (found,) = compare(report_of("a", filled), report_of("b", few)).kernels
    assert found.verdict == "slower"
    assert found.explained_by is not None and found.explained_by.words == "blocks"


def test_the_same_time_needs_no_explanation() -> None:
    (found,) = compare(report_of("a", kernel()), report_of("b", kernel(duration=101_000))).kernels
    assert (found.verdict, found.explained_by) == ("same", None)


def test_a_missing_duration_is_no_verdict() -> None:
    (found,) = compare(report_of("a", kernel(without=("duration",))), report_of("b", kernel())).kernels
    assert (found.verdict, found.gain) == ("unknown", None)


def test_kernels_are_aligned_by_function_then_geometry_then_order() -> None:
    a = (kernel("one", launch=0), kernel("one", launch=1, grid=10), kernel("gone", launch=2))
    b = (kernel("one", launch=0, grid=10), kernel("one", launch=1), kernel("new", launch=2))
    found = align(a, b)
    assert [(first.launch, second.launch) for first, second in found.pairs] == [(0, 1), (1, 0)]
    assert [one.name for one in found.only_a] == ["gone"] and [one.name for one in found.only_b] == ["new"]


def test_one_kernel_each_is_a_pair_under_any_name_and_all_is_shown() -> None:
    answer = compare(report_of("a", kernel("first")), report_of("b", kernel("second", duration=50_000, dram_read=1e8)))
    assert len(answer.kernels) == 1
    assert answer.to_dict()["schema"] == "warpline.dive_comparison/1"
    assert "2.00× faster" in terminal.render(sections_of(answer), 120).plain


def test_two_implementations_are_named_by_a_part_of_the_name_or_by_the_number() -> None:
    a = report_of("a", kernel("softmax", launch=0), kernel("sgemm_128x64", launch=1))
    b = report_of("b", kernel("hgemm_128x64", launch=0), kernel("softmax", launch=1))
    for first, second in (("sgemm", "hgemm"), ("1", "0")):
        (pair,) = compare(a.only(first), b.only(second)).kernels
        assert (pair.before.kernel.name, pair.after.kernel.name) == ("sgemm_128x64", "hgemm_128x64")
    with pytest.raises(UsageError, match="no kernel 'layer_norm'"):
        a.only("layer_norm")


def test_reports_without_a_common_name_ask_for_the_pair() -> None:
    a = report_of("a", kernel("one"), kernel("two", launch=1))
    answer = compare(a, report_of("b", kernel("three")))
    assert "name each: --kernel NAME_IN_A --kernel NAME_IN_B" in terminal.render(sections_of(answer), 120).plain


def test_waits_that_are_gone_explain_the_time() -> None:
    """A state that no warp is in any more has no cycles, rather than none known."""
    traded = {"memory": 40.0, "dram": 5.0, "l2": 5.0, "issue": 35.0}
    waits = {"barrier": 20.0, "long_scoreboard": 1.0, "selected": 1.0}
    before = kernel(sm=90.0, adu=90.0, duration=90_000.0, stalls=waits, **traded)
    after = kernel(duration=30_000.0, stalls={"long_scoreboard": 2.0, "selected": 1.0}, **traded)
    (pair,) = compare(report_of("a", before), report_of("b", after)).kernels
    assert "waits at barriers per instruction went from 20 to 0" in pair.sentence
