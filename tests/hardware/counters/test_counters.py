"""The catalogue of metrics: which chip has which, what replaces one elsewhere, and what a name says."""

from __future__ import annotations

import pytest

from warpline.errors import UsageError
from warpline.hardware.counters.explain import explain
from warpline.hardware.counters.names import is_ncu_only, split, suffix_problem
from warpline.hardware.counters.replace import near_names, nvprof_metrics, replacements
from warpline.hardware.counters.table import (
    CHIPS,
    MetricCatalogue,
    catalogue,
    installed_library,
    list_metrics,
    package_catalogue,
    table_of,
    target_of,
)

JUDGED = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")
STALLED = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_miss.sum"
BYTES = "lts__t_bytes_equiv_l1sectormiss_pipe_lsu_mem_global_op_ld.sum"
HMMA = "sm__pipe_tensor_{}_hmma_cycles_active.avg.pct_of_peak_sustained_elapsed"
SEEDS: dict[str, dict[str, str]] = {
    # Each metric of the Nsight workflow, and what replaces it on the chips that lack it.
    "dram__bytes_read.sum": {"sm_120": "dram__bytes_op_read.sum"},
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": {},
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum": {},
    "l1tex__t_bytes_equiv_l1sectormiss_pipe_lsu_mem_global_op_ld.sum": {
        **dict.fromkeys(("sm_75", "sm_80", "sm_86"), BYTES),
        **dict.fromkeys(("sm_89", "sm_90", "sm_100", "sm_120"), SECTORS),
    },
    "launch__occupancy_limit_registers": {},
    "launch__occupancy_limit_shared_mem": {},
    "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_elapsed": {},
    HMMA.format("op"): dict.fromkeys(("sm_100", "sm_120"), HMMA.format("subpipe")),
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": {},
    "sm__warps_active.avg.pct_of_peak_sustained_active": {},
    **{
        f"smsp__warps_issue_stalled_{reason}_per_warp_active.ratio": dict.fromkeys(JUDGED, STALLED.format(reason))
        for reason in ("long_scoreboard", "math_pipe_throttle", "short_scoreboard", "wait")
    },
}


@pytest.mark.parametrize("chip", JUDGED)
@pytest.mark.parametrize("metric", SEEDS)
def test_the_seeds_metrics_on_every_chip(metric: str, chip: str) -> None:
    found = explain(metric, chip, package_catalogue())
    expected = SEEDS[metric].get(chip)
    if expected is None:
        assert found.usable, found
        assert chip not in found.instead
    else:
        assert not found.usable
        assert found.instead[chip][0].name == expected
        assert explain(expected, chip, package_catalogue()).usable


@pytest.mark.parametrize("chip", [chip for chip in CHIPS if chip not in ("sm_70", "sm_72")])
def test_every_name_of_nvprof_leads_to_a_metric_that_exists(chip: str) -> None:
    table = package_catalogue()
    for old, known in nvprof_metrics().items():
        new, parts = known.name, split(known.name)
        found = replacements(old, chip, table)
        if "dram" in old and not table.exists("dram__bytes", chip):
            assert not found, "a chip that shares the CPU's memory has no DRAM counters"
        elif table.exists(parts.base, chip):
            assert found[0].name == new
            assert suffix_problem(parts, table.types[parts.base]) == ""


def test_replacements_that_the_facts_name() -> None:
    table = package_catalogue()
    first = {
        ("sm__inst_executed_pipe_fp16.sum", "sm_90"): "sm__inst_executed_pipe_fma_type_fp16.sum",
        ("sm__ops_path_tensor_src_fp16_dst_fp32.sum", "sm_90"): "sm__ops_path_tensor_src_fp16.sum",
        ("sm__pipe_tensor_op_gmma_cycles_active.avg", "sm_100"): "sm__pipe_tensor_subpipe_hmma_cycles_active.avg",
        ("sm__active_cycles.sum", "sm_80"): "sm__cycles_active.sum",
        ("dram__read_throughput", "sm_90"): "dram__bytes_read.sum.per_second",
        ("gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", "sm_121"): "lts__t_sectors_lookup_miss.sum",
        ("lts__t_sectors_aperture_sysmem.sum", "sm_100"): "syslts__t_sectors.sum",
        ("sm__pipe_tensor_subpipe_hmma_cycles_active.avg", "sm_90"): "sm__pipe_tensor_op_hmma_cycles_active.avg",
    }
    for (name, chip), expected in first.items():
        assert replacements(name, chip, table)[0].name == expected, (name, chip)
    assert replacements("smsp__average_warps_issue_stalled_imc_miss_per_issue_active.ratio", "sm_100", table) == []


def test_a_name_is_taken_apart() -> None:
    parts = split("breakdown:sm__throughput.avg.pct_of_peak_sustained_elapsed")
    assert (parts.before, parts.base, parts.suffix) == (
        "breakdown",
        "sm__throughput",
        "avg.pct_of_peak_sustained_elapsed",
    )
    assert parts.unit == "sm"
    assert split("TPC.TriageCompute.sm__cycles_active.avg").before == "pmsampling"
    own = ("launch__grid_size", "smsp__pcsamp_sample_count", "group:memory__chart", "inst_executed", "derived__x")
    assert all(is_ncu_only(split(name)) for name in own)
    assert not is_ncu_only(split("sm__inst_executed.sum"))


@pytest.mark.parametrize(
    ("metric", "kind", "wrong"),
    [
        ("sm__cycles_active.avg", "counter", ""),
        ("sm__cycles_active", "counter", ""),
        ("sm__cycles_active.sum.per_second", "counter", ""),
        ("sm__cycles_active.ratio", "counter", "takes .sum"),
        ("sm__cycles_active.sum.per_hour", "counter", "no suffix .per_hour"),
        ("l1tex__t_sector_hit_rate.pct", "ratio", ""),
        ("l1tex__t_sector_hit_rate.avg", "ratio", "takes .ratio"),
        ("sm__throughput.avg", "throughput", "takes .avg.pct_of_peak_sustained_elapsed"),
    ],
)
def test_a_suffix_fits_the_type(metric: str, kind: str, wrong: str) -> None:
    problem = suffix_problem(split(metric), kind)
    assert wrong in problem if wrong else problem == ""


def test_an_unknown_name_is_called_unknown_with_near_ones() -> None:
    found = explain("sm__warp_active.avg.per_cycle_active", "sm_90", package_catalogue())
    assert (found.state, found.usable) == ("unknown", False)
    assert "sm__warps_active" in found.near
    assert "sm__throughput" in near_names("sm__thrughput", "sm_90", package_catalogue())
    assert explain("foo", None, package_catalogue()).to_dict()["state"] == "unknown"


def test_one_metric_in_words() -> None:
    found = explain("l1tex__t_requests_pipe_lsu_mem_global_op_st.sum", None, package_catalogue())
    assert found.what == "requests on the lsu pipe by stores of global memory, in the L1 cache"
    assert found.suffix == "summed over all instances of the unit"
    assert len(found.chips) == len(CHIPS)


@pytest.mark.parametrize("text", ["sm_90", "90", "9.0", "GH100", "sm90", "sm_90a"])
def test_a_chip_has_many_names(text: str) -> None:
    assert target_of(text) == "sm_90"


def test_an_unknown_chip_is_refused() -> None:
    with pytest.raises(UsageError):
        target_of("sm_11")


def test_the_table_is_what_the_libraries_list() -> None:
    listed = [
        {"chip": "GH100", "counter": ["a__b", "a__c"], "ratio": ["a__r"], "throughput": []},
        {"chip": "GB100", "counter": ["a__b"], "ratio": [], "throughput": ["a__t"]},
        {"chip": "XX1", "counter": ["a__z"], "ratio": [], "throughput": []},
    ]
    assert table_of(listed, "here").splitlines() == [
        "# here",
        "name\ttype\tchips",
        "a__b\tcounter\tsm_90 sm_100",
        "a__c\tcounter\tsm_90",
        "a__r\tratio\tsm_90",
        "a__t\tthroughput\tsm_100",
    ]


def test_an_installed_library_agrees_with_the_table() -> None:
    library = installed_library()
    if library is None:
        pytest.skip("neither nvidia-cuda-cupti nor ncu-report is installed")
    (listed,) = list_metrics(library, ["GH100"])
    known = package_catalogue().names("sm_90")
    assert len(set(listed["counter"]) & set(known)) > 3000
    assert isinstance(catalogue("sm_90"), MetricCatalogue)
