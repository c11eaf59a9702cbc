"""Which kernels go to Nsight Compute: counted on a timeline whose launches are written down one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kineto_files import Event, annotation, call, kernel, op, write
from small_programs import GEMM_FP32, repeated
from stats_traces import call as nsys_call
from stats_traces import kernel as nsys_kernel
from stats_traces import make_trace, span

from warpline.capture.plan import NCU, Plan
from warpline.capture.tool_commands import FirstKernels, ncu_flags, sections_for, words_of
from warpline.dive.inside_kernels import InsideKernels, inside_kernels
from warpline.dive.metrics import METRICS
from warpline.dive.ncu_plan import MAX_LAUNCHES, by_hand, runs_for
from warpline.findings.judge import judge
from warpline.findings.next_tool import next_tools
from warpline.trace.open import open_trace

H200 = {"deviceProperties": [{"id": 0, "name": "NVIDIA H200", "numSms": 132, "computeMajor": 9, "computeMinor": 0}]}
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor>(int, T)"
MUL = "void at::native::vectorized_elementwise_kernel<4, at::native::MulFunctor>(int, T)"
NORM = "void at::native::(anonymous namespace)::layer_norm_kernel<float>(int, T)"
ROWS = 64 << 20
"""Elements: 256 MiB in fp32, so that an addition moves 768 MiB, in at least 168 µs at 4.8 TB/s."""


class Timeline:
    """Launches one after the other, 1,000 µs apart."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.at = 0.0
        self.number = 0

    def launch(self, name: str, length: float, op_name: str, grid: int = 100, rows: int = ROWS, count: int = 2) -> None:
        self.number += 1
        dims = [[rows]] * count + [[]] * (op_name == "aten::add")
        kinds = ["float"] * count + ["Scalar"] * (op_name == "aten::add")
        self.events += [
            op(op_name, self.at, 50, external=self.number, **{"Input Dims": dims, "Input type": kinds}),
            call("cudaLaunchKernel", self.at + 5, 10, self.number, external=self.number),
            kernel(name, self.at + 20, length, self.number, grid=[grid, 1, 1], block=[128, 1, 1]),
        ]
        self.at += 1000

    def step(self, number: int, *launches: tuple[Any, ...]) -> None:
        begin = self.at
        for one in launches:
            self.launch(*one)
        self.events.append(annotation(f"ProfilerStep#{number}", begin, self.at - begin))


STEP = ((MUL, 500, "aten::mul"), (ADD, 200, "aten::add"), (MUL, 600, "aten::mul"), (NORM, 900, "mine::norm", 7))


def found(tmp_path: Path, *steps: tuple[tuple[Any, ...], ...]) -> InsideKernels:
    timeline = Timeline()
    timeline.launch(MUL, 400, "aten::mul")  # before the first step, where nothing counts
    for number, launches in enumerate(steps):
        timeline.step(number, *launches)
    return inside_kernels(open_trace(write(tmp_path, timeline.events, **H200), cache=False))


def test_kernels_are_ranked_counted_and_explained(tmp_path: Path) -> None:
    kernels = found(tmp_path, STEP, STEP, STEP)
    norm, mul, add = kernels.kernels
    assert [one.function for one in (norm, mul, add)] == ["layer_norm_kernel", *["vectorized_elementwise_kernel"] * 2]
    assert (norm.answer, norm.floor_ns, norm.why) == ("profile", None, "FLOPs and bytes unknown")
    assert (mul.answer, mul.bound, mul.launches) == ("profile", "memory", 6)
    assert mul.roof_share == pytest.approx(168 / 550, abs=0.05)
    assert (add.answer, add.launch_skip) == ("timeline", 1), "84 % of its roofline; one launch of that name before it"
    assert (mul.launch_skip, mul.same_function_per_step, norm.position) == (0, 3, 3)
    assert mul.recoverable_ns == mul.time_ns - (mul.floor_ns or 0)
    assert kernels.chosen(5) == (norm, mul)
    assert mul.to_dict()["recoverable_ns"] > 0


def test_a_roofline_without_tensor_cores_is_said_to_be_that(tmp_path: Path) -> None:
    """A product of 2048 x 2048 x 2048 in FP32: 17.2 GFLOP, which the CUDA cores of an H200 do in about 0.33 ms."""
    trace = open_trace(
        write(
            tmp_path,
            repeated(
                lambda program: program.op("aten::mm", (GEMM_FP32, 340), shapes=[[2048, 2048]] * 2, dtype="float")
            ).events,
            **H200,
        ),
        cache=False,
    )
    (product,) = inside_kernels(trace).kernels
    assert product.answer == "timeline"
    assert "of its roofline without tensor cores (compute): only less work makes it faster" in product.why
    (tool,) = next_tools(trace, judge(trace))
    assert tool.why.endswith("of its roofline without tensor cores: tf32 gives it another one")


def test_one_run_reaches_kernels_that_lie_close(tmp_path: Path) -> None:
    kernels = found(tmp_path, STEP, STEP)
    (run,) = runs_for(kernels, 2)
    assert run.focus.functions == ("layer_norm_kernel", "vectorized_elementwise_kernel")
    assert (run.focus.skip, run.focus.count) == (0, 4)
    assert run.passes == (80, 152)
    (alone,) = runs_for(kernels, 1)
    assert (alone.focus.functions, alone.focus.skip, alone.focus.count) == (("layer_norm_kernel",), 0, 1)


def test_kernels_far_apart_get_a_run_each(tmp_path: Path) -> None:
    kernels = found(tmp_path, (STEP[0], *[STEP[1]] * MAX_LAUNCHES, (NORM, 5000, "mine::norm", 7)))
    first, second = runs_for(kernels, 2)
    assert [run.focus.count for run in (first, second)] == [1, 1]
    assert "ComputeWorkloadAnalysis" in first.focus.sections, "nothing is known about it"
    assert "ComputeWorkloadAnalysis" not in second.focus.sections, "memory bounds it"


def test_a_command_by_hand_skips_steps(tmp_path: Path) -> None:
    kernels = found(tmp_path, STEP, STEP)
    line = by_hand(kernels, kernels.chosen(2)[1], "python train.py")
    assert "--kernel-name vectorized_elementwise_kernel --launch-skip 9 --launch-count 1" in line
    assert "--target-processes all --clock-control none" in line


def test_short_kernels_and_collectives_are_not_for_ncu(tmp_path: Path) -> None:
    comm = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
    kernels = found(tmp_path, ((ADD, 3.9, "aten::add", 1, 64), (comm, 300, "c10d::allreduce_")))
    assert [one.answer for one in kernels.kernels] == ["timeline", "timeline"]
    assert runs_for(kernels, 3) == ()


def test_an_nvtx_range_narrows_the_count() -> None:
    calls = [nsys_call("cudaLaunchKernel", 0, at, at + 5, number) for number, at in enumerate((10, 30, 50, 70))]
    rows = [nsys_kernel("mine", at, at + 10_000, number, (8, 1, 1)) for number, at in enumerate((15, 35, 55, 75))]
    ranges = [span("block", "pushpop", 0, 25, 60), span("a/b*", "pushpop", 0, 45, 58)]
    trace = make_trace("nsys", api=calls, gpu=rows, ranges=ranges)
    (one,) = inside_kernels(trace, {}).kernels
    assert (one.nvtx, one.launch_skip) == ("", 0), "the first launch is outside"
    later = make_trace(
        "nsys", api=calls[1:], gpu=[{**row, "api_id": row["api_id"] - 1} for row in rows[1:]], ranges=ranges
    )
    (one,) = inside_kernels(later, {}).kernels
    assert (one.nvtx, one.launch_skip, one.same_function_per_step) == ("block", 0, 2)


def test_a_trace_without_kernels_has_nothing_to_choose() -> None:
    assert inside_kernels(make_trace("nsys")).kernels == ()


def test_a_run_under_ncu_records_what_the_tree_reads() -> None:
    """`run --with ncu` and `dive TRACE -- PROGRAM` end in the same answer."""
    words = words_of(ncu_flags("ncu", Plan(folder="x", tool=NCU), True, FirstKernels()))
    asked = {words[at + 1] for at, word in enumerate(words) if word == "--section"}
    assert asked == set(sections_for(["compute", "memory"]))
    assert {metric.section for metric in METRICS.values()} - asked <= {"SpeedOfLight_RooflineChart"}  # FP64 FLOPs
