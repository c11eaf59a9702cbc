"""What looks like a flaw and costs little: it is not the reason, and the range says how sure a gain is."""

import pytest
from dive_kernels import kernel

from warpline.dive.tree import explain

ACCESSIBLE = "profiler__replayer_bytes_mem_accessible.avg"


def test_a_value_that_all_lanes_share_needs_its_sector() -> None:
    # Four of 32 bytes of each sector are used. One lane in eight has a sector of its own, or all lanes share one.
    shared = {"memory": 85.0, "l2": 85.0, "dram": 10.0, "load_bytes_per_sector": 4.0, "store_bytes_per_sector": 4.0}
    scattered = explain(kernel(**shared, sectors_theoretical=16e6, sectors_ideal=2e6))
    assert scattered.reason == "uncoalesced"
    broadcast = explain(kernel(**shared, sectors_theoretical=16e6, sectors_ideal=16e6))
    assert broadcast.reason == "memory_bandwidth"
    (node,) = (node for node in broadcast.nodes if node.question == "Are accesses coalesced?")
    assert (node.value, node.answer) == (12.5, "yes: values that many lanes share")


def test_conflicts_with_copies_are_not_those_of_addresses() -> None:
    busy = {"memory": 90.0, "dram": 5.0, "l2": 5.0, "shared_wavefronts": 1e6, "shared_conflicts": 8e5,
            "data_wavefronts": 90.0, "shared_wavefronts_pct": 90.0}  # fmt: skip
    counted = explain(kernel(**busy))
    half = explain(kernel(**busy, shared_needed=6e5, shared_ideal=2e5))
    none = explain(kernel(**busy, shared_needed=2e5, shared_ideal=2e5))
    assert (counted.reason, half.reason, none.reason) == ("bank_conflicts", "bank_conflicts", "memory_bandwidth")
    assert "40 % of its wavefronts" in half.sentence and half.gain.high < counted.gain.high


def test_the_fix_of_a_waiting_kernel_gains_what_the_unit_has_less_to_do() -> None:
    # L1 is 45 % busy, and 19 % of its wavefronts are conflicts, or 47.5 %. The other units wait.
    elapsed = ".avg.pct_of_peak_sustained_elapsed"
    waits = {"memory": 45.0, "dram": 20.0, "l2": 15.0, "shared_wavefronts": 1e6, "shared_conflicts": 2e5,
             "data_wavefronts": 45.0, "shared_wavefronts_pct": 42.75}  # fmt: skip
    found = explain(kernel(raw={"l1tex__data_pipe_lsu_wavefronts" + elapsed: 45.0}, **waits))
    assert (found.reason, [one.reason for one in found.also]) == ("latency", ["bank_conflicts"])
    assert found.also[0].gain.expected == pytest.approx(1 / 0.81)
    more = explain(
        kernel(raw={"l1tex__data_pipe_lsu_wavefronts" + elapsed: 45.0}, **(waits | {"shared_conflicts": 5e5}))
    )
    assert more.reason == "bank_conflicts"
    assert (more.gain.low, more.gain.expected) == (1.0, pytest.approx(1 / 0.525))


def test_waiting_comes_before_a_tail_that_costs_less() -> None:
    # DRAM at 44 % of the time, 50 % while the SMs are active: without the waits 1.26 times as fast, without the tail 1.14.
    tail = {"grid": 4285.0, "waves": 4.06, "active_avg": 175_000.0, "memory": 44.0, "dram": 44.0}
    found = explain(kernel(**tail))
    assert (found.reason, [one.reason for one in found.also]) == ("latency", ["tail"])
    busy = explain(kernel(**(tail | {"sm": 50.0, "issue": 50.0, "memory": 58.0, "dram": 58.0})))
    assert busy.reason == "tail"


def test_sms_that_end_early_leave_their_bandwidth_to_the_others() -> None:
    tail = {"grid": 4285.0, "waves": 4.06, "active_avg": 170_000.0}
    assert explain(kernel(**tail, memory=62.0, dram=62.0)).reason == "tail"
    found = explain(kernel(**tail, memory=75.0, dram=75.0))
    assert found.reason == "memory_bandwidth"
    assert found.sentence.endswith("Seen too, but worth less than 1.1×, which is no fault: tail.")


def test_first_reads_miss_the_cache_and_that_is_no_fault() -> None:
    # A stencil: each value is read three times, twice of them from L2, and a result of the same size is written.
    busy = {"memory": 85.0, "dram": 85.0, "l2_read_hits": 66.7, "dram_read": 268e6, "dram_write": 250e6}
    assert explain(kernel(raw={ACCESSIBLE: 540e6}, **busy)).reason == "memory_bandwidth"
    assert explain(kernel(raw={ACCESSIBLE: 300e6}, **busy)).reason == "l2_misses"  # 50 MB that are not written
    assert explain(kernel(raw={ACCESSIBLE: 60e9}, **busy)).reason == "l2_misses"  # other data: nobody knows
    assert explain(kernel(**busy)).reason == "l2_misses"


def test_a_fix_that_only_takes_work_away_ends_in_waiting_at_worst() -> None:
    busy = {"memory": 95.0, "dram": 5.0, "l2": 5.0, "sm": 10.0, "issue": 10.0, "shared_wavefronts": 1e6,
            "shared_conflicts": 9.5e5, "data_wavefronts": 95.0, "shared_wavefronts_pct": 95.0}  # fmt: skip
    found = explain(kernel(**busy))
    # A tenth of the issue slots is left, of which a kernel that waits uses 40 %.
    assert (found.gain.low, found.gain.high) == (pytest.approx(4.0, rel=0.01), pytest.approx(10.0))
    diverging = explain(kernel(sm=95, issue=95, memory=10, dram=10, l2=10, threads_per_instruction=3.2))
    assert diverging.gain.low == pytest.approx(9.5 ** (1 / 3), rel=0.01)  # sorting costs


def test_blocks_that_live_for_a_moment_leave_places_empty() -> None:
    half = {"occupancy": 30.0, "memory": 20.0, "dram": 20.0, "l2": 10.0}
    assert explain(kernel(**half)).reason == "imbalance"  # 8 places · 30 % · 198,000 cycles · 132 SMs / 8,192 blocks
    assert explain(kernel(**half, grid=65_536.0, waves=62.0)).reason == "latency"


def test_atomics_run_in_shared_memory_at_worst() -> None:
    few = {"reduction_requests": 20_625.0, "load_requests": 20_625.0, "store_requests": 0.0, "sm": 0.5, "issue": 0.5,
           "memory": 0.5, "dram": 0.5, "l2": 0.5, "fma": 0.0, "alu": 0.0, "lsu": 0.2}  # fmt: skip
    found = explain(kernel(atomic_unit=0.9, atomic_unit_max=83.0, **few))
    # 32 · 20,625 wavefronts over 132 SMs and 200,000 cycles: 2.5 %, of which a kernel that waits uses 40 %.
    assert (found.reason, found.gain.low) == ("atomics", pytest.approx(0.4 / 0.025))


def test_peaks_of_a_damaged_report_divide_by_nothing() -> None:
    assert explain(kernel(fp64=50.0, sm=50.0, ffma_peak=1e-300, dfma_peak=1e23)).gain.high >= 1.0
