"""The audit: every kind of contradiction is found, and no answer that is shown contains one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from contradictions import below_device_work, contradictions
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kineto_files import write
from msgspec.structs import replace
from paths import SHARED
from small_programs import ALL_REDUCE, GEMM_FP32, H200, MUL, SIDE_STREAM, SOFTMAX, Program, judged, repeated

from warpline.analyses.breakdown import device_times
from warpline.analyses.idle.gaps import idle_gaps
from warpline.errors import WarplineError
from warpline.estimate import Estimate
from warpline.findings.audit import audit_accounting, audit_coverage, audit_finding, held_by_steps
from warpline.findings.diagnosis import diagnose
from warpline.findings.fix_table import whatif
from warpline.findings.judge import Judgement
from warpline.findings.model import Finding
from warpline.findings.plan import PlanStep, audit_plan
from warpline.findings.state import covered_share, state_of
from warpline.replay.bounds import DeviceWork
from warpline.trace.open import open_trace


def launches(program: Program) -> None:
    """40 kernels of 10 µs, with 60 µs of CPU time before each: the step takes about 2.6 ms, the device works 0.4."""
    for _ in range(40):
        program.op("aten::mul", (MUL, 10), cpu=60, shapes=[[64, 64]], dtype="float")
    program.wait()


@pytest.fixture
def judgement(tmp_path: Path) -> Judgement:
    return judged(tmp_path, launches)


def graph_of(judgement: Judgement) -> Finding:
    return next(finding for finding in judgement.findings if finding.fix == "cuda_graph")


def audited(judgement: Judgement, finding: Finding) -> tuple[list[Finding], list[str]]:
    work = DeviceWork(judgement.evidence.question)
    kept, objections = audit_finding(finding, judgement.evidence, work)
    return [kept] if kept else [], [objection.code for objection in objections]


def test_a_sound_finding_stays_as_it_is(judgement: Judgement) -> None:
    graph = graph_of(judgement)
    assert audited(judgement, graph) == ([graph], [])
    assert judgement.audit == []


def test_a_step_shorter_than_the_device_s_work_is_withdrawn(judgement: Judgement) -> None:
    impossible = replace(
        graph_of(judgement), new_step_ns=Estimate(1, 1, 1), gain=Estimate(1.0, 6_492_225.0, 6_492_225.0)
    )
    assert audited(judgement, impossible) == ([], ["below-device-work"])


def test_a_step_a_little_shorter_than_that_is_capped_and_less_certain(judgement: Judgement) -> None:
    graph = graph_of(judgement)
    assert graph.confidence == "high"
    step = judgement.evidence.step_ns
    short = replace(graph, new_step_ns=Estimate(300_000, 350_000, 500_000), gain=Estimate(5.0, step / 350_000, 9.0))
    (kept,), codes = audited(judgement, short)
    assert codes == ["below-device-work"]
    assert kept.confidence == "medium"
    assert kept.new_step_ns.expected >= 400_000
    assert kept.gain.expected == pytest.approx(step / kept.new_step_ns.expected, rel=0.001)
    assert kept.lost_ns == pytest.approx(step - kept.new_step_ns.expected, abs=1)


def test_the_low_end_of_a_range_is_cut_at_the_device_s_work(judgement: Judgement) -> None:
    graph = graph_of(judgement)
    wide = replace(graph, new_step_ns=Estimate(100_000, graph.new_step_ns.expected, graph.new_step_ns.high))
    (kept,), codes = audited(judgement, wide)
    assert codes == ["range-below-device-work"]
    assert kept.new_step_ns.low >= 0.9 * 400_000
    assert kept.confidence == graph.confidence


def test_a_gain_is_the_old_step_over_the_new_one(judgement: Judgement) -> None:
    graph = graph_of(judgement)
    wrong = replace(graph, gain=Estimate(graph.gain.low, 2 * graph.gain.expected, 2 * graph.gain.high))
    (kept,), codes = audited(judgement, wrong)
    assert codes == ["gain-not-old-over-new"]
    assert kept.gain.expected == pytest.approx(graph.gain.expected, rel=0.001)
    assert kept.confidence == "medium"


def test_a_range_holds_what_is_expected(judgement: Judgement) -> None:
    graph = graph_of(judgement)
    wrong = replace(graph, gain=Estimate(graph.gain.high, graph.gain.expected, graph.gain.low))
    (kept,), codes = audited(judgement, wrong)
    assert codes == (["range-out-of-order"] if graph.gain.low != graph.gain.high else [])
    assert kept.gain.low <= kept.gain.expected <= kept.gain.high


def test_a_plan_ends_where_a_step_gains_nothing() -> None:
    def step(fix: str, time_ns: int) -> PlanStep:
        return PlanStep(fix, "", Estimate(time_ns, time_ns, time_ns), Estimate(1.0, 1.0, 1.0))

    kept, objections = audit_plan([step("tf32", 5), step("cuda_graph", 5), step("sdpa", 3)])
    assert [one.fix for one in kept] == ["tf32"]
    assert [one.code for one in objections] == ["plan-without-gain"]
    assert audit_plan(kept) == (kept, [])


def test_times_that_do_not_sum_are_reported(tmp_path: Path) -> None:
    trace = open_trace(write(tmp_path, repeated(launches).events, **H200), cache=False)
    devices, gaps = device_times(trace), idle_gaps(trace)
    assert audit_accounting(devices, gaps) == []
    wrong = replace(devices[0], busy_ns=devices[0].busy_ns + 1)
    assert {one.code for one in audit_accounting([wrong], gaps)} == {"sums-disagree"}


def test_steps_beside_most_of_the_work_give_no_plan(tmp_path: Path) -> None:
    """Four marked steps of 2.6 ms follow one kernel of 50 ms."""
    program = Program()
    program.large_product(50_000)
    program.wait()
    for _ in range(4):
        with program.step():
            launches(program)
    trace = open_trace(write(tmp_path, program.events, **H200), cache=False)
    assert covered_share(trace) == pytest.approx(1.6 / 51.6, rel=0.05)
    found = diagnose(trace, why=True)
    assert found.plan == []
    assert found.verdict is not None
    assert (found.verdict.cause, found.verdict.fix) == ("unclear", None)
    assert "steps-hold-little-work" in [one.code for one in found.audit]
    assert {finding.confidence for finding in found.findings} == {"low"}
    chosen = open_trace(write(tmp_path, repeated(launches).events, **H200), cache=False)
    assert covered_share(chosen) == 1.0


def test_a_loop_that_only_launches_holds_its_work(tmp_path: Path) -> None:
    """The CPU leaves each step long before its 2 ms of work is done; the work was launched in the step all the same."""
    trace = open_trace(write(tmp_path, repeated(lambda one: one.large_product(2000)).events, **H200), cache=False)
    assert covered_share(trace) == 1.0


def test_a_verdict_says_the_step_that_whatif_says(tmp_path: Path) -> None:
    path = write(tmp_path, repeated(launches).events, **H200)
    verdict = diagnose(open_trace(path, cache=False), why=True).verdict
    assert verdict is not None
    assert verdict.fix is not None
    assert verdict.new_step_ns is not None
    asked = whatif(open_trace(path, cache=False), [verdict.fix])
    assert asked.new_step_ns.expected == pytest.approx(verdict.new_step_ns.expected, rel=1e-3)


Part = Callable[[Program], None]
LENGTHS = st.sampled_from([1.0, 3.0, 20.0, 150.0, 2000.0])
CPU = st.sampled_from([2.0, 10.0, 60.0, 500.0])


def part(kind: str, length: float, cpu: float) -> Part:
    return {
        "product": lambda program: program.op(
            "aten::mm", (GEMM_FP32, length), cpu=cpu, shapes=[[1024, 1024], [1024, 1024]], dtype="float"
        ),
        "pointwise": lambda program: program.op(
            "aten::mul", (MUL, length), cpu=cpu, shapes=[[1024, 64]], dtype="float"
        ),
        "softmax": lambda program: program.op("aten::_softmax", (SOFTMAX, length), cpu=cpu, shapes=[[512, 512]]),
        "beside": lambda program: program.op(
            "aten::mul", (MUL, length), cpu=cpu, stream=SIDE_STREAM, shapes=[[1024, 64]], dtype="float"
        ),
        "collective": lambda program: program.op("c10d::allreduce_", (ALL_REDUCE, length), cpu=cpu),
        "pageable": lambda program: program.copy("HtoD (Pageable -> Device)", length, 4_000_000),
        "pinned": lambda program: program.copy("HtoD (Pinned -> Device)", length, 4_000_000),
        "result": lambda program: program.copy("DtoH (Device -> Pageable)", 2, 4),
        "wait": lambda program: program.wait(),
        "python": lambda program: program.python(cpu * 10),
    }[kind]


KINDS = ("product", "pointwise", "softmax", "beside", "collective", "pageable", "pinned", "result", "wait", "python")
PARTS = st.builds(part, st.sampled_from(KINDS), LENGTHS, CPU)


@given(parts=st.lists(PARTS, min_size=1, max_size=12), times=st.integers(1, 6))
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_no_answer_about_a_random_program_contradicts_itself(tmp_path: Path, parts: list[Part], times: int) -> None:
    def body(program: Program) -> None:
        program.op("aten::mul", (MUL, 5), shapes=[[64, 64]])
        for _ in range(times):
            for one in parts:
                one(program)

    found = diagnose(open_trace(write(tmp_path, repeated(body).events, **H200), cache=False), why=True)
    answer = json.loads(json.dumps(found.to_dict()))
    assert contradictions(answer) == []
    assert list(below_device_work(found)) == []


PROFILES = sorted(
    path
    for path in SHARED.rglob("*.gz")
    if {"kineto", "nsys", "wild", "programs"} & set(path.parts) and path.name.endswith((".json.gz", ".sqlite.gz"))
)


@pytest.mark.shared
@pytest.mark.parametrize("path", PROFILES, ids=lambda path: path.name)
def test_no_answer_about_a_shared_profile_contradicts_itself(path: Path) -> None:
    try:
        found = diagnose(open_trace(path))
    except WarplineError:
        pytest.skip("it cannot be read")
    assert contradictions(json.loads(json.dumps(found.to_dict()))) == []
    assert list(below_device_work(found)) == []


def test_a_covered_trace_keeps_its_findings(tmp_path: Path, judgement: Judgement) -> None:
    trace = judgement.evidence.trace
    state = state_of(trace, judgement.evidence, DeviceWork(judgement.evidence.question))
    assert list(audit_coverage(state)) == []
    assert [held_by_steps(finding, state) for finding in judgement.findings] == judgement.findings
