"""Limits: the step with each resource free, on programs whose answer was worked out on paper."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import kineto_files as files
import pytest
from msgspec.structs import replace
from paths import ROOT
from small_programs import ALL_REDUCE, DIRECT_COPY, GEMM_FP32, MUL, Body, Program, judged

from warpline.estimate import Estimate
from warpline.findings.judge import judge
from warpline.findings.limits import MIN_GAIN, Limit, Limits, both_or_first, well_known
from warpline.replay.resources import Resource
from warpline.trace.open import open_trace

PAGEABLE = "Memcpy HtoD (Pageable -> Device)"


def launches(program: Program) -> None:
    """40 kernels of 10 µs with 60 µs of CPU time before each: the GPU works 0.4 of about 2.6 ms."""
    for _ in range(40):
        program.op("aten::mul", (MUL, 10), cpu=60, shapes=[[64, 64]], dtype="float")
    program.wait()


def waits(program: Program) -> None:
    """Ten products of 200 µs that the CPU waits for, and 150 µs of Python after each."""
    for _ in range(10):
        program.large_product(200)
        program.wait()
        program.python(150)


def copies(program: Program) -> None:
    """A copy of 3 ms from pageable memory, and a kernel of 1 ms."""
    program.copy("HtoD (Pageable -> Device)", 3000, 40_000_000)
    program.large_product()


def staged_results(program: Program) -> None:
    """A kernel of 0.2 ms, and its result: a copy of 0.6 ms to pageable memory, which the CPU stages for 1.2 ms more."""
    program.large_product(200)
    program.copy("DtoH (Device -> Pageable)", 600, 3_000_000, staging=1200)


def copies_without_their_operation(program: Program) -> None:
    """The call of a copy takes 3 ms, and what the device did is not recorded; then a kernel of 1 ms."""
    program.call("cudaMemcpy", 3000)
    program.large_product()


def results_behind_kernels(program: Program) -> None:
    """Kernels of 2 ms, a copy of 0.6 ms behind them to pageable memory, and 2 ms of Python with an idle GPU."""
    program.large_product(2000)
    program.copy("DtoH (Device -> Pageable)", 600, 3_000_000)
    program.python(2000)


def collectives(program: Program) -> None:
    """A kernel of 1 ms and a collective of 2 ms behind it."""
    program.large_product()
    program.op("nccl:all_reduce", (ALL_REDUCE, 2000))
    program.wait()


def busy(program: Program) -> None:
    """Five products of 1 ms, launched long before the GPU comes to them."""
    for _ in range(5):
        program.large_product()


def slow_kernels(program: Program) -> None:
    """Five products in FP32 on the CUDA cores, which TF32 makes several times faster."""
    for _ in range(5):
        program.op("aten::mm", (GEMM_FP32, 1500), shapes=[[2048, 2048], [2048, 2048]], dtype="float")


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        (launches, "dispatch"),
        (copies, "transfer"),
        (staged_results, "transfer"),
        (copies_without_their_operation, "transfer"),
        (collectives, "comm"),
        (slow_kernels, "kernel"),
        (busy, "healthy"),
    ],
)
def test_the_cause_is_what_gives_most_back(tmp_path: Path, body: Body, cause: str) -> None:
    judgement = judged(tmp_path, body)
    assert judgement.verdict.cause == cause
    if cause != "healthy":
        assert judgement.limits.rows[0].cause == cause
        assert judgement.limits.rows[0].gain.expected >= MIN_GAIN


def test_a_copy_that_waits_for_kernels_reads_a_result(tmp_path: Path) -> None:
    limits = judged(tmp_path, results_behind_kernels).limits
    assert limits.row("sync").gain.expected > limits.row("transfer").gain.expected


def test_a_step_that_waits_drain_is_of_waits_and_launches(tmp_path: Path) -> None:
    verdict = judged(tmp_path, waits).verdict
    assert {verdict.cause, verdict.also} <= {"sync", "dispatch", None}


def test_launches_that_cost_nothing_leave_what_the_gpu_does(tmp_path: Path) -> None:
    dispatch = judged(tmp_path, launches).limits.row("dispatch")
    assert 390_000 <= dispatch.step_ns.expected <= 600_000


def test_kernels_that_a_fix_removes_leave_no_gaps() -> None:
    """12 transposes a step, with 2 µs before each next kernel: all go with channels_last, the only fix of kernels."""
    judgement = judge(open_trace(ROOT / "faults" / "recordings" / "planted" / "channels_first_convolution.json.gz"))
    assert [finding.fix for finding in judgement.findings if finding.cause == "kernel"] == ["channels_last"]
    fixed = judgement.findings[0].new_step_ns.expected
    assert judgement.limits.row("kernel").step_ns.expected == pytest.approx(fixed, rel=1e-4)


@pytest.mark.parametrize("body", [launches, waits, copies, collectives, busy])
def test_every_limit_is_the_present_step_over_its_gain_and_the_path_is_all_of_the_step(
    tmp_path: Path, body: Body
) -> None:
    judgement = judged(tmp_path, body)
    step_ns = judgement.evidence.step_ns
    for row in judgement.limits.rows:
        assert row.gain.low >= 1.0
        assert row.gain.low <= row.gain.expected <= row.gain.high
        assert row.step_ns.expected * row.gain.expected == pytest.approx(step_ns)
    assert sum(row.now_ns for row in judgement.limits.rows) == pytest.approx(step_ns, rel=0.01)
    assert {row.cause for row in judgement.limits.rows} == {resource.name.lower() for resource in Resource}


def test_a_copy_without_a_launch_is_not_to_blame_for_its_late_start(tmp_path: Path) -> None:
    """Twenty copies of 10 µs, a millisecond apart."""
    moments = range(1_000, 21_000, 1_000)
    sent = [files.copy(PAGEABLE, moment, 10, 9 + moment, 1 << 20) for moment in moments]
    found = judge(open_trace(files.write(tmp_path, [*files.launched("first", 0, 10, 5, 1), *sent]), cache=False))
    assert found.limits.row("transfer").gain.expected < 1.05
    assert found.limits.named == ("unknown",)
    assert [one.gain.expected for one in found.findings if one.fix == "pin_memory" and one.gain.expected > 1.05] == []


@pytest.mark.parametrize(("name", "cause"), [("pt_autograd_0", "kernel"), ("worker", "memory")])
def test_copies_that_autograd_makes_are_no_moves_of_the_program(tmp_path: Path, name: str, cause: str) -> None:
    """Without ops, the name of the thread that launches ten copies of 1 ms tells whose they are."""
    events: list[files.Event] = [
        {
            "ph": "M",
            "name": "thread_name",
            "pid": files.PROCESS,
            "tid": files.AUTOGRAD,
            "args": {"name": f"thread 2 ({name})"},
        },
        *files.launched("first", 0, 10, 1000, 1),
    ]
    for number in range(10):
        begin = 1100 + 1000 * number
        events += [files.call("cudaLaunchKernel", 20 + 10 * number, 5, 2 + number, thread=files.AUTOGRAD)]
        events += [files.kernel(DIRECT_COPY, begin, 1000, 2 + number)]
    limits = judge(open_trace(files.write(tmp_path, events), cache=False)).limits
    now_ns = {row.cause: row.now_ns for row in limits.rows}
    assert max(now_ns, key=lambda cause: now_ns[cause]) == cause


def limit(cause: str, *gains: float) -> Limit:
    """A limit with these gains in three graphs, of a step of 1 ms."""
    low, expected, high = sorted(gains)
    return Limit(cause, Estimate(1e6 / high, 1e6 / expected, 1e6 / low), Estimate(low, expected, high), 0, gains)


def named(*rows: Limit, sure: bool = False) -> tuple[str, ...]:
    ordered = sorted(rows, key=lambda row: -row.gain.expected)
    return Limits(tuple(ordered), 2.0, sure).named


def test_of_rows_that_are_one_answer_the_one_with_more_time_comes_first() -> None:
    copies, launches = limit("transfer", 1.9, 2.0, 2.1), replace(limit("dispatch", 1.8, 1.9, 2.0), now_ns=1000)
    assert named(copies, launches) == ("dispatch", "transfer")


def test_of_kernels_only_what_fixes_save_counts() -> None:
    """Kernels fill 0.9 of a step of 1 ms, but their fixes save 0.2 ms of it; the delays take 0.25 ms and may be gone."""
    kernels, delays = limit("kernel", 1.25, 1.25, 1.25), limit("unknown", 1.33, 1.33, 1.33)
    rows = replace(kernels, now_ns=900_000), replace(delays, now_ns=250_000)
    assert named(*rows, sure=True) == ("unknown", "kernel")


def test_kernels_that_only_a_fast_host_makes_faster_hang_on_the_host() -> None:
    assert Limits((limit("kernel", 1.78, 1.17, 1.02),), 1.05, False).hangs_on_host
    assert not Limits((limit("kernel", 1.3, 1.3, 1.3),), 1.05, False).hangs_on_host, "the fix itself is in doubt"
    assert not Limits((limit("kernel", 1.03, 1.02, 1.01),), 1.05, False).hangs_on_host, "there is nothing to gain"


def test_rows_within_a_tenth_or_that_change_places_are_named_together() -> None:
    assert named(limit("sync", 1.9, 2.0, 2.1), limit("dispatch", 1.3, 1.4, 1.5)) == ("sync",)
    assert named(limit("sync", 1.9, 2.0, 2.1), limit("dispatch", 1.8, 1.85, 1.9)) == ("sync", "dispatch")
    assert named(limit("sync", 1.9, 2.0, 2.1), limit("dispatch", 1.2, 1.5, 2.5)) == ("sync", "dispatch")
    # The one that is first in another graph, and not the second one, which is first in none.
    dispatch, data, copies = (
        limit("dispatch", 1.2, 1.5, 2.1),
        limit("input", 1.3, 1.25, 1.1),
        limit("transfer", 1.4, 1.2, 1.1),
    )
    assert named(dispatch, data, copies) == ("dispatch", "transfer")


def test_three_rows_within_a_tenth_are_all_named_by_their_time_in_the_step() -> None:
    data, copies = (replace(limit(cause, 1.11, 1.14, 1.16), now_ns=5) for cause in ("input", "transfer"))
    launches = replace(limit("dispatch", 1.04, 1.13, 1.15), now_ns=20)
    assert named(data, copies, launches) == ("dispatch", "input", "transfer")


def test_the_order_of_rows_does_not_change_what_is_named() -> None:
    rows = (
        replace(limit("dispatch", 1.2, 1.3, 1.5), now_ns=9),
        limit("sync", 1.4, 1.45, 1.4),
        limit("input", 1.1, 1.2, 1.1),
    )
    assert {Limits(tuple(order), 2.0, False).named for order in permutations(rows)} == {("dispatch", "sync")}


def test_less_than_a_tenth_is_no_cause_and_kernels_only_with_a_sure_fix() -> None:
    assert named(limit("input", 1.02, 1.05, 1.09)) == ()
    assert named(limit("kernel", 1.4, 1.5, 1.6)) == ()
    assert named(limit("kernel", 1.4, 1.5, 1.6), sure=True) == ("kernel",)


def of_a_slow_host(**calm: float) -> Limits:
    """Limits of a recording on a slow host: dispatch is first there, the gains on a calm host are given."""
    step, gain = Estimate(10, 10, 10), Estimate(1.5, 1.5, 1.5)
    rows = [Limit(cause, step, gain, 5, (1.5, 1.5, 1.5, on_calm_host)) for cause, on_calm_host in calm.items()]
    return Limits(tuple(rows), together=2.0, kernels_can_be_faster=False)


def test_on_a_calm_host_another_cause_may_be_first() -> None:
    limits = of_a_slow_host(dispatch=1.05, input=1.2, transfer=1.3)
    first = limits.first_on_calm_host
    assert limits.is_of_slow_host
    assert first is not None
    assert first.cause == "transfer"


def test_on_a_calm_host_nothing_may_give_a_tenth() -> None:
    assert of_a_slow_host(dispatch=1.05, transfer=1.09).first_on_calm_host is None


def test_a_pair_is_two_that_both_give_something() -> None:
    assert both_or_first(("dispatch", "input"), 1.12, alone=1.06) == (("dispatch", "input"), 1.12)
    assert both_or_first(("dispatch", "memory"), 1.102, alone=1.099) == (("dispatch",), 1.099)


def test_only_fixes_whose_effect_is_well_known_show_that_kernels_can_be_faster(tmp_path: Path) -> None:
    # The range of TF32 reaches below 1 where the host may be slow; that of torch.compile does on any host.
    findings = judged(tmp_path, slow_kernels).findings
    some = [replace(findings[0], fix=fix) for fix in ("tf32", "sdpa", "torch_compile", "bf16", "channels_last")]
    assert [finding.fix for finding in well_known(some)] == ["tf32", "sdpa"]
