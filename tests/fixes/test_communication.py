"""Communication that nothing hides: counted on its own device, and waited for by the CPU or not."""

from __future__ import annotations

from pathlib import Path

import pytest
from kineto_files import Event, annotation, call, kernel, write
from small_programs import ALL_REDUCE, FUSED_ADAM, GEMM_BF16, H200, STEPS, Program

from warpline.findings.judge import judge
from warpline.trace.open import open_trace


def on_two_devices() -> list[Event]:
    """Steps of 2 ms: on each device a GEMM of 1 ms and a collective of 0.8 ms, the one's while the other computes."""
    events, number = [], 0
    for step in range(STEPS):
        begin = 2_000.0 * step
        events.append(annotation(f"ProfilerStep#{step}", begin, 1_990))
        for device, order in ((0, (GEMM_BF16, ALL_REDUCE)), (1, (ALL_REDUCE, GEMM_BF16))):
            moment = begin + 20
            for name in order:
                length = 1_000 if name == GEMM_BF16 else 800
                number += 1
                events.append(call("cudaLaunchKernel", begin + number % 4 * 4, 3, number))
                events.append(kernel(name, moment, length, number, device=device))
                moment += length
        events.append(call("cudaDeviceSynchronize", begin + 30, 1_950, 1_000 + step))
    return events


def test_kernels_of_another_device_hide_nothing(tmp_path: Path) -> None:
    judgement = judge(open_trace(write(tmp_path, on_two_devices(), **H200), cache=False))
    evidence = judgement.evidence
    collectives = evidence.labelled.kernels("comm")
    assert evidence.exposed_per_step(collectives) == 1_600_000
    (finding,) = [finding for finding in judgement.findings if finding.rule == "exposed_collective"]
    assert "1.60 ms with no other kernel running on their device, on 2 devices together" in finding.claim


def waiting(program: Program, *, silent: bool) -> None:
    """The CPU does nothing recorded until a collective of 5 ms ends, or works as long in an op; then 5 ms of work follow
    that could run beside the collective."""
    program.large_product(500)
    program.op("c10d::allreduce_", (ALL_REDUCE, 5_000))
    until = program.free[7] + 50 - program.now
    if silent:
        program.python(until)
    else:
        with program.within("aten::sort"):
            program.python(until)
    program.large_product(5_000)
    program.wait()


@pytest.mark.parametrize(("silent", "saved_us"), [(True, range(4_000, 5_500)), (False, range(-500, 600))])
def test_a_gap_of_the_cpu_that_ends_with_a_collective_was_a_wait_for_it(
    tmp_path: Path, silent: bool, saved_us: range
) -> None:
    program = Program()
    for _ in range(STEPS):
        with program.step():
            waiting(program, silent=silent)
    question = program.asked(tmp_path)
    saved = question.bare.expected_ns - question.ask("overlap_comm").new_step_ns.expected
    assert round(saved / 1_000) in saved_us


def test_exposed_communication_is_said_although_the_cpu_is_the_slower(tmp_path: Path) -> None:
    """A collective of 2 ms in a step of 12 ms, in which the CPU is busy with an op all the time."""
    program = Program()
    for _ in range(STEPS):
        with program.step():
            program.op("c10d::allreduce_", (ALL_REDUCE, 2_000))
            with program.within("aten::sort"):
                program.python(12_000)
            program.large_product(100)
    (finding,) = [one for one in program.judged(tmp_path).findings if one.rule == "exposed_collective"]
    assert finding.gain.expected == pytest.approx(1.0, abs=0.01)
    assert "2.00 ms" in finding.claim


LIST_COPY = "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::TensorListMetadata<2>, at::native::(anonymous namespace)::UnaryOpFunctor<long, 2, 1, 1>, at::native::Copy<long, long>>"


@pytest.mark.parametrize("trains", [False, True])
def test_a_copy_of_a_list_of_tensors_is_no_update_of_parameters(tmp_path: Path, trains: bool) -> None:
    """Inference, too, copies lists with multi_tensor_apply; only a program that trains has a backward pass to overlap
    collectives with."""
    program = Program()
    for _ in range(STEPS):
        with program.step():
            program.op("c10d::allreduce_", (ALL_REDUCE, 5_000))
            program.large_product(5_000)
            program.op("aten::_foreach_copy_", (LIST_COPY, 5))
            if trains:
                with program.range("Optimizer.step#Adam.step"):
                    program.op("aten::_fused_adam_", (FUSED_ADAM, 500))
            program.wait()
    (finding,) = [one for one in program.judged(tmp_path).findings if one.rule == "exposed_collective"]
    assert ("There is no backward pass" in finding.how) != trains
