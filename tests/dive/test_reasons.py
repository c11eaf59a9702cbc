"""Each reason on a kernel made by hand, and on its border."""

import json

import pytest
from dive_kernels import COPY, kernel
from hypothesis import given, settings
from hypothesis import strategies as st

from warpline.dive.gains import MIN_UTILISATION
from warpline.dive.kernel_metrics import KernelMetrics
from warpline.dive.model import REASONS as CONTRACT
from warpline.dive.model import Dive
from warpline.dive.reasons import REASONS
from warpline.dive.tree import explain
from warpline.dive.utilisation import utilisation_of
from warpline.reports import terminal
from warpline.reports.dive import report as sections_of
from warpline.sources.ncu.model import KernelReport


def reason(report: KernelReport) -> str:
    return explain(report).reason


def test_every_reason_of_the_contract_has_a_look() -> None:
    assert {one.name for one in REASONS} == set(CONTRACT)


def test_a_copy_with_no_unit_busy_waits() -> None:
    found = explain(kernel(stalls={"long_scoreboard": 9.0, "selected": 1.0}))
    assert (found.reason, found.bound) == ("latency", "latency")
    assert "waiting for global, local or texture memory (90 %)" in found.sentence
    assert found.gain.high == pytest.approx(2.0)  # DRAM at 50 %


def test_a_copy_near_the_peak_is_bandwidth_bound() -> None:
    found = explain(kernel(memory=88.0, dram=88.0))
    assert (found.reason, found.bound, found.limiter) == ("memory_bandwidth", "memory", "DRAM")
    assert found.gain.high == found.cap == pytest.approx(1 / 0.88)


def test_a_gemm_near_the_peak_needs_no_occupancy() -> None:
    found = explain(kernel("gemm", sm=90.37, tensor=90.37, occupancy_possible=18.75, occupancy=14.68))
    assert found.reason == "compute_peak"
    assert found.sentence.startswith("compute-bound, near the peak; low occupancy is no fault (14.68 of 18.75 %)")
    assert found.gain.high <= 1 / 0.9037 + 1e-9


def test_compute_and_memory_close_together_are_healthy() -> None:
    assert reason(kernel(sm=70.0, xu=70.0, memory=62.0, dram=62.0)) == "healthy"
    assert reason(kernel(sm=70.0, xu=70.0, memory=54.0, dram=54.0)) == "instruction_bound"


@pytest.mark.parametrize(("used", "expected"), [(4.0, "uncoalesced"), (24.1, "memory_bandwidth")])
def test_sectors_used_in_part(used: float, expected: str) -> None:
    # The same bytes asked for, in sectors that are used in part: L2 moves the rest for nothing.
    sectors = 8_388_608 * 32 / used
    found = explain(
        kernel(
            memory=85.0,
            dram=10.0,
            l2=85.0,
            load_sectors=sectors,
            store_sectors=sectors,
            load_bytes_per_sector=used,
            store_bytes_per_sector=used,
            l2_read_sectors=sectors,
            l2_write_sectors=sectors,
        )
    )
    assert found.reason == expected
    if expected == "uncoalesced":
        # An eighth of the sectors is asked for: L2 needs 10.6 % of the time, DRAM 10 %, compute 20 %.
        assert found.gain.high == pytest.approx(1 / 0.2)


def test_sectors_used_in_part_do_not_matter_if_nothing_waits_for_them() -> None:
    assert reason(kernel(sm=90.0, fma=90.0, load_bytes_per_sector=8.0, fmul=2000.0)) == "compute_peak"


@pytest.mark.parametrize(("conflicts", "expected"), [(0.9, "bank_conflicts"), (0.1, "memory_bandwidth")])
def test_bank_conflicts(conflicts: float, expected: str) -> None:
    report = kernel(
        memory=95.0,
        dram=5.0,
        l2=5.0,
        shared_wavefronts=1e7,
        shared_conflicts=conflicts * 1e7,
        data_wavefronts=95.0,
        shared_wavefronts_pct=95.0,
    )
    found = explain(report)
    assert found.reason == expected
    if expected == "bank_conflicts":
        assert found.gain.high == pytest.approx(1 / 0.2)  # then compute, at 20 %, is the limit


@pytest.mark.parametrize(("possible", "top", "expected"), [(6.25, 10, "low_occupancy"), (62.5, 10, "latency"),
                                                          (6.25, 70, "memory_bandwidth")])  # fmt: skip
def test_low_occupancy_only_where_it_hurts(possible: float, top: float, expected: str) -> None:
    found = explain(kernel(memory=top, dram=top, sm=5, issue=5, occupancy_possible=possible, limit_shared=1))
    assert found.reason == expected
    if expected == "low_occupancy":
        assert "limited by shared memory" in found.sentence
        assert found.gain.high == pytest.approx(10.0)  # DRAM at 10 %; the warps would allow 16


def test_few_blocks_leave_sms_idle() -> None:
    found = explain(kernel(grid=24, waves=24 / 1056, sm=3, memory=2, dram=2, issue=3, active_avg=36_000))
    assert found.reason == "small_grid"
    assert "24 blocks for 132 SMs" in found.sentence and "108 SMs of 132 stay idle" in found.sentence
    assert found.gain.high == pytest.approx(100 / 3)  # compute at 3 %; the waves would allow 44


def test_a_part_filled_last_wave_is_a_tail_and_an_even_one_is_not() -> None:
    # 140 blocks for 132 places: the SMs are busy for 140 / 264 of the time.
    busy = {"sm": 50.0, "issue": 50.0, "active_avg": 106_000.0, "sms": 132.0, "memory": 30.0, "dram": 30.0, "l2": 20.0}
    tail = explain(kernel(grid=140, waves=140 / 132, **busy))
    assert tail.reason == "tail"
    assert tail.gain.expected == pytest.approx(200 / 106, rel=0.02)
    assert explain(kernel(grid=132, waves=1.0, **busy)).reason == "imbalance"
    assert explain(kernel(grid=140, waves=140 / 132, **(busy | {"active_avg": 195_000.0}))).reason == "latency"


def test_local_memory_that_a_kernel_lives_in() -> None:
    found = explain(
        kernel(
            memory=80,
            l2=80,
            dram=50,
            local_load_instructions=5e6,
            local_store_instructions=4e6,
            local_load_sectors=2e7,
            local_store_sectors=1.6e7,
            local_load_missed=2e7,
            l2_read_sectors=2.1e7,
            l2_write_sectors=1.7e7,
            spill_requests=9e6,
        )
    )
    assert found.reason == "spills" and found.sentence.startswith("Registers spill to local memory (16 registers")
    assert reason(kernel(memory=80, l2=80, local_load_instructions=1e5)) == "memory_bandwidth"


def test_atomics_on_one_address_keep_one_slice_busy() -> None:
    contended = {"reduction_requests": 2_097_152, "sm": 1, "issue": 1, "memory": 2, "dram": 1, "l2": 2, "fma": 1,
                 "alu": 1, "lsu": 1, "load_wavefronts": 1e6, "reduction_wavefronts": 1e7,
                 "reduction_sectors": 1e7}  # fmt: skip
    found = explain(kernel(atomic_unit=0.9, atomic_unit_max=83.0, **contended))
    assert found.reason == "atomics"
    assert found.gain.low < 50 < found.gain.high
    assert reason(kernel(atomic_unit=0.9, atomic_unit_max=1.0, **contended)) == "latency"


def test_double_precision_by_accident_and_on_purpose() -> None:
    double = {"sm": 90.0, "fp64": 90.0, "dfma": 4000.0, "ffma_peak": 33792.0, "dfma_peak": 16896.0}
    found = explain(kernel(**double))
    assert found.reason == "fp64"
    # FP64 at 90 % becomes FP32 at 10 % + 45 %; DRAM stays at 50 %.
    assert found.gain.high == pytest.approx(1 / 0.55)
    assert (
        reason(kernel(**double, global_load_instructions=1_048_576, global_store_instructions=1_048_576))
        == "compute_peak"
    )


@pytest.mark.parametrize(("threads", "expected"), [(8.0, "divergence"), (25.0, "instruction_bound")])
def test_diverging_warps(threads: float, expected: str) -> None:
    found = explain(kernel(sm=95, issue=95, memory=10, dram=10, l2=10, threads_per_instruction=threads))
    assert found.reason == expected
    if expected == "divergence":
        assert found.gain.high == pytest.approx(1 / (0.95 * 8 / 32))


def test_data_read_again_from_dram() -> None:
    accessible = {"profiler__replayer_bytes_mem_accessible.avg": 100e6}
    busy = {"memory": 85.0, "dram": 85.0, "l2": 30.0, "dram_read": 400e6, "dram_write": 0.0}
    found = explain(kernel(raw=accessible, **busy))
    assert found.reason == "l2_misses" and "4.0 times as many bytes" in found.sentence
    assert found.gain.expected == pytest.approx(0.85 / 0.3)  # L2 keeps its work
    assert found.gain.high == pytest.approx(1 / 0.2)  # at best L1 has the data, and the SMs at 20 % are the limit
    assert reason(kernel(raw={"profiler__replayer_bytes_mem_accessible.avg": 800e6}, **busy)) == "memory_bandwidth"
    assert reason(kernel(l2_read_hits=45.0, **busy)) == "l2_misses"


def test_a_product_on_the_fp32_units() -> None:
    # 0.5 fused multiply-adds an instruction, 8 of them for each load from shared memory.
    product = {"sm": 85.0, "fma": 85.0, "ffma": 1600.0, "memory": 40.0, "dram": 2.0, "l2": 10.0,
               "shared_load_instructions": 1_250_000.0, "dram_read": 16e6, "dram_write": 8e6,
               "global_load_instructions": 1e5}  # fmt: skip
    found = explain(kernel("tile_product", **product))
    assert found.reason == "tensor_cores_unused"
    assert reason(kernel("tile_product", **(product | {"tensor": 60.0}))) != "tensor_cores_unused"
    assert reason(kernel("polynomial", **(product | {"shared_load_instructions": 0.0}))) == "compute_peak"


@given(
    st.fixed_dictionaries(
        dict.fromkeys(COPY, st.one_of(st.floats(0, 100), st.floats(), st.floats(0, 1e12)))
        | dict.fromkeys(("sm", "memory", "dram", "l2", "tensor", "fma", "fp64", "issue"), st.floats(0, 100))
        | dict.fromkeys(("grid", "block"), st.integers(1, 100_000).map(float))
    )
)
@settings(max_examples=60)
def test_no_gain_is_above_the_cap_and_ranges_are_in_order(values: dict[str, float]) -> None:
    report = kernel(**values)
    found = explain(report)
    answer = Dive("report", (found,))
    json.dumps(answer.to_dict()["kernels"][0]["gain"], allow_nan=False)
    assert terminal.render(sections_of(answer, verbose=True), 100).plain
    assert 1.0 <= found.gain.low <= found.gain.expected <= found.gain.high <= found.cap + 1e-9
    if found.reason in {
        "healthy",
        "latency",
        "memory_bandwidth",
        "compute_peak",
        "low_occupancy",
        "small_grid",
        "tail",
        "imbalance",
    }:
        assert found.gain.high <= 1 / max(utilisation_of(KernelMetrics(report)).top, MIN_UTILISATION) + 1e-9


def test_a_short_kernel_promises_nothing_and_cannot_be_shorter_than_a_launch() -> None:
    tiny = {"grid": 1, "waves": 1 / 1056, "sm": 1, "memory": 1, "dram": 1, "issue": 1}
    found = explain(kernel(duration=4_000, **tiny))
    assert (found.reason, found.gain.low) == ("small_grid", 1.0)
    assert found.gain.high == found.cap == pytest.approx(4.0)  # the smallest kernel takes 1 µs
    assert "CUDA graph" in found.how


def test_atomics_on_shared_memory_are_no_bank_conflicts() -> None:
    busy = {"memory": 95.0, "dram": 5.0, "l2": 5.0, "shared_wavefronts": 1e7, "shared_conflicts": 9e6,
            "data_wavefronts": 95.0, "shared_wavefronts_pct": 95.0}  # fmt: skip
    assert reason(kernel(shared_atomic_conflicts=8e6, **busy)) == "atomics"
    assert reason(kernel(shared_atomic_conflicts=1e6, **busy)) == "bank_conflicts"


def test_warps_of_unequal_length_keep_places_empty() -> None:
    found = explain(kernel(occupancy=15.0))
    assert found.reason == "imbalance" and "15 % of an SM's warps are active, where 100 % fit" in found.sentence
    assert reason(kernel(occupancy=60.0)) == "latency"
    assert reason(kernel(occupancy=15.0, waves=0.7)) == "latency"


def test_integers_on_the_multiply_pipe_are_no_flops() -> None:
    busy = {"sm": 75.0, "fma": 75.0, "issue": 74.0, "memory": 15.0, "dram": 15.0, "l2": 15.0}
    assert reason(kernel("hash_rows", **busy)) == "instruction_bound"
    assert reason(kernel("hash_rows", ffma=2000.0, **busy)) == "compute_peak"


def test_fills_of_the_cache_go_with_the_misses_that_cause_them() -> None:
    # 400 MB read of 100 MB that exist. L2: 12.5 million sectors asked for, as many filled, as many again over its fabric.
    elapsed = ".avg.pct_of_peak_sustained_elapsed"
    asked = 12_500_000.0
    raw = {
        "profiler__replayer_bytes_mem_accessible.avg": 100e6,
        "lts__d_sectors_fill_device" + elapsed: 85.0,
        "lts__d_sectors" + elapsed: 75.0,
        "lts__lts2xbar_cycles_active" + elapsed: 40.0,
    }
    busy = {"memory": 90.0, "dram": 90.0, "dram_read": 400e6, "dram_write": 0.0}
    sectors = {"l2_sectors": 2 * asked, "l2_read_sectors": asked, "l2_write_sectors": 0.0}
    found = explain(kernel(raw=raw, **busy, **sectors))
    assert found.reason == "l2_misses"
    # A quarter of the misses is left: fills 85 → 21 %, data 75 → 75 · (1 + 2/4) / 3 = 37.5 %, replies 40 → 25 %.
    assert found.gain.expected == pytest.approx(0.9 / 0.375)


def test_warps_at_block_barriers_wait_though_a_pipe_is_busy() -> None:
    waits = {"barrier": 5.0, "short_scoreboard": 4.0, "selected": 1.0}
    traded = {"shared_load_instructions": 4e6, "shared_store_instructions": 4e6, "data_wavefronts": 40.0,
              "shared_wavefronts_pct": 40.0, "memory": 40.0, "dram": 5.0, "l2": 5.0, "issue": 35.0}  # fmt: skip
    found = explain(kernel(sm=90.0, adu=90.0, stalls=waits, **traded))
    assert (
        found.reason == "latency" and "block barriers 50 % of their time" in found.sentence and "shuffles" in found.how
    )
    # With no value traded through shared memory, three fifths of the instructions are left.
    assert found.gain.high == pytest.approx(1 / (0.35 * 0.6))
    assert reason(kernel(sm=90.0, adu=90.0, stalls=waits | {"barrier": 3.0}, **traded)) == "instruction_bound"


def test_issue_slots_limit_where_no_arithmetic_pipe_is_as_busy() -> None:
    # 2000 of 3200 instructions of the threads a cycle multiply.
    assert reason(kernel(sm=78.0, issue=78.0, fma=42.0, fmul=2000.0)) == "instruction_bound"
    assert reason(kernel(sm=78.0, issue=78.0, fma=67.0, fmul=2000.0)) == "compute_peak"


def test_bytes_of_asynchronous_copies_are_unknown_and_not_wasted() -> None:
    busy = {"memory": 85.0, "dram": 10.0, "l2": 85.0, "load_bytes_per_sector": 0.0}
    found = explain(kernel(**busy, without=("store_sectors", "store_bytes_per_sector")))
    assert found.reason == "memory_bandwidth"
    half = {"async_sectors": 4_194_304.0, "load_bytes_per_sector": 8.0, "store_bytes_per_sector": 8.0}
    metrics = KernelMetrics(kernel(**half))
    # A quarter of each sector of 12.6 million is used, and 4.2 million are copied.
    assert metrics.sector_use == pytest.approx((12 / 4 + 4) / 16)


def test_a_product_keeps_its_operands_traffic_at_worst() -> None:
    product = {"sm": 77.0, "fma": 67.0, "issue": 77.0, "ffma": 1600.0, "memory": 70.0, "l2": 25.0, "dram": 2.0,
               "shared_load_instructions": 1_250_000.0, "dram_read": 16e6, "dram_write": 8e6}  # fmt: skip
    found = explain(kernel("tile_product", **product))
    assert found.reason == "tensor_cores_unused"
    assert found.gain.low == pytest.approx((77 / 70) ** (1 / 3), rel=0.01)


def test_shapes_of_a_trace_tell_whether_data_is_read_again() -> None:
    # A mask that fits L2 beside a stream: a third of the reads hit, and nothing is read again.
    stream = kernel(memory=70.0, dram=70.0, l2=30.0, l2_read_hits=33.0, dram_read=300e6, dram_write=200e6)
    assert explain(stream).reason == "l2_misses"
    assert explain(stream, 500e6).reason == "memory_bandwidth"
    again = explain(stream, 250e6)
    assert again.reason == "l2_misses" and "2.0 times the bytes that its op needs" in again.sentence
    # Of 300 MB read 50 are left, beside 200 MB written: DRAM needs half of the time, so 35 %.
    assert again.gain.high == pytest.approx(1 / 0.35)
