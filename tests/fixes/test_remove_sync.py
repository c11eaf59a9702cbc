"""What goes with a wait that is removed, on hand-made traces and on recorded programs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import kineto_files as files
import pytest
from kineto_files import Event

from warpline.fixes.registry import question_about
from warpline.replay import WhatIf
from warpline.replay.costs.host import DEFAULT_KINETO
from warpline.replay.patterns.waits import awaited_calls
from warpline.trace.open import open_trace

GEMM = "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT"
REDUCE = (
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<{0}, at::native::func_wrapper_t<{0}, Functor<{0}>>>>"
)
ADD = (
    "void at::native::vectorized_elementwise_kernel<2, at::native::CUDAFunctorOnSelf_add<long>, std::array<char*, 2ul>>"
)
COMPARE = "void at::native::vectorized_elementwise_kernel<4, at::native::compare_scalar_kernel<float>, std::array<char*, 2ul>>"
HISTOGRAM = "void at::cuda::kernelHistogram1D<long, long, long, 1, 2, -1>"
SCALARS, VECTORS = [[], [], []], [[384], [], []]


class Loop:
    """A thread and a stream, written down as the profile that they would leave."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.now, self.free, self.number = 0.0, 0.0, 0

    def work(self, event: str, length: float, size: int | None = None, *, grid: int = 1024, stream: int = 7) -> None:
        """A launch of 5 µs, and its kernel, or copy of that size."""
        self.number += 1
        start = max(self.now + 7, self.free)
        self.free = start + length
        if size is None:
            self.events.append(files.call("cudaLaunchKernel", self.now, 5, self.number))
            shape = {"grid": [grid, 1, 1], "block": [128, 1, 1]}
            self.events.append(files.kernel(event, start, length, self.number, stream=stream, **shape))
        else:
            blocked = "Pageable" in event and event.startswith("DtoH")
            held = self.free + 5 - self.now if blocked else 5
            self.events.append(files.call("cudaMemcpyAsync", self.now, held, self.number))
            self.events.append(files.copy(f"Memcpy {event}", start, length, self.number, size))
            self.now += held - 5
        self.now += 5

    def wait(self) -> None:
        self.number += 1
        length = max(self.free - self.now, 0.0) + 3
        self.events.append(files.call("cudaStreamSynchronize", self.now, length, self.number))
        self.now += length

    def op(self, name: str, *kernels: tuple[str, float], cpu: float = 5, grid: int = 1024, **known: object) -> None:
        start = self.now
        self.now += cpu
        for kernel, length in kernels:
            self.work(kernel, length, grid=grid)
        self.end_op(name, start, **known)

    def end_op(self, name: str, start: float, **known: object) -> None:
        self.now += 1
        self.events.append(files.op(name, start, self.now - start, **known))

    def read(self, size: int, kind: str = "DtoH (Device -> Pinned)", length: float = 2, op: str = "aten::item") -> None:
        start = self.now
        self.now += 2
        self.work(kind, length, size)
        self.wait()
        self.end_op(op, start)

    def tensor_of(self, numbers: int, walk: float) -> None:
        """`torch.tensor(list, device="cuda")`: two walks of the list, memory before the second, and a copy."""
        self.now += 1.3 * walk
        self.op("aten::empty", cpu=1)
        self.now += walk
        start = self.now
        self.work("HtoD (Pageable -> Device)", 1, 8 * numbers)
        self.wait()
        self.end_op("aten::to", start)
        self.op("aten::lift_fresh", cpu=0.1)


Body = Callable[[Loop], None]


def asked(folder: Path, body: Body, steps: int = 4) -> tuple[WhatIf, float]:
    """The question about a loop of such steps, and the predicted step in µs."""
    loop = Loop()
    for step in range(steps):
        start = loop.now
        loop.now += 1
        body(loop)
        loop.events.append(files.annotation(f"ProfilerStep#{step}", start, loop.now - start))
    question = question_about(open_trace(files.write(folder, loop.events), cache=False))
    return question, question.ask("remove_sync").new_step_ns.expected / 1e3


@pytest.mark.parametrize("device", ["same", "other"])
def test_kernels_of_other_streams_still_come_after_what_was_waited_for(device: str, tmp_path: Path) -> None:
    """Two kernels of 100 µs a step, each on a stream of its own, with a wait after each: a program without the waits
    orders them by an event, so its steps take no less than 200 µs. On two devices they may run at the same time."""

    def body(loop: Loop) -> None:
        for stream in (7, 8):
            loop.work(GEMM, 100, stream=stream)
            if device == "other":
                loop.events[-1]["args"]["device"] = loop.events[-1]["pid"] = stream - 7
            loop.wait()

    question, step_us = asked(tmp_path, body, steps=6)
    assert question.trial("remove_sync").freed.sum() >= 11
    assert step_us == pytest.approx(200 if device == "same" else 100, rel=0.1)


def gone(question: WhatIf) -> set[str]:
    """The names of the work that goes with the waits."""
    return set(question.labelled.name[question.trial("remove_sync").gone].present())


@pytest.mark.parametrize(
    ("ops", "size", "expected"),
    [
        ([("aten::max", REDUCE.format("long"), [])], 8, {REDUCE.format("long")}),
        ([("aten::max", REDUCE.format("float"), [])], 4, set()),
        ([("aten::max", REDUCE.format("float"), [])], 8, set()),
        ([("aten::sum", REDUCE.format("long"), [])], 8, set()),
        ([("aten::argmax", REDUCE.format("long"), [])], 8, set()),
        ([("aten::eq", COMPARE, []), ("aten::all", REDUCE.format("bool"), [])], 1, {COMPARE, REDUCE.format("bool")}),
        (
            [("aten::bitwise_or", COMPARE, []), ("aten::any", REDUCE.format("bool"), [])],
            1,
            {COMPARE, REDUCE.format("bool")},
        ),
        ([("aten::mul", COMPARE, []), ("aten::all", REDUCE.format("bool"), [])], 1, {REDUCE.format("bool")}),
        ([("aten::max", REDUCE.format("long"), []), ("aten::add", ADD, SCALARS)], 8, {ADD, REDUCE.format("long")}),
        ([("aten::add_", ADD, VECTORS)], 8, set()),
        # Who looks for an accident wants to know.
        ([("aten::isnan", COMPARE, []), ("aten::any", REDUCE.format("bool"), [])], 1, set()),
        (
            [
                ("aten::isfinite", COMPARE, []),
                ("aten::all", REDUCE.format("bool"), []),
                ("aten::logical_not", COMPARE, []),
            ],
            1,
            set(),
        ),
    ],
)
def test_what_only_told_the_cpu_a_number_goes_with_the_wait(
    ops: list[tuple[str, str, list[list[int]]]], size: int, expected: set[str], tmp_path: Path
) -> None:
    """A bound of whole numbers, a flag and the arithmetic on a number are for the CPU; sums and values are results."""

    def body(loop: Loop) -> None:
        loop.op("aten::mm", (GEMM, 300))
        for name, kernel, shapes in ops:
            loop.op(name, (kernel, 20), grid=1, **({"Input Dims": shapes} if shapes else {}))
        loop.read(size)

    question, step_us = asked(tmp_path, body)
    assert gone(question) == expected | {"Memcpy DtoH (Device -> Pinned)"}
    # The GPU sets the pace: 300 µs, and 20 µs for each kernel that stays.
    assert step_us == pytest.approx(300 + 20 * (len(ops) - len(expected)), rel=0.02)


@pytest.mark.parametrize("name", ["aten::_unique2", "aten::unique_dim", "aten::unique_consecutive", "aten::nonzero"])
def test_what_only_the_size_of_a_result_is_waited_for_goes_with_the_wait(name: str, tmp_path: Path) -> None:
    def body(loop: Loop) -> None:
        loop.op("aten::mm", (GEMM, 300))
        start = loop.now
        loop.work("DeviceScanKernel", 20)
        loop.read(8)
        loop.end_op(name, start)

    question, step_us = asked(tmp_path, body)
    assert "DeviceScanKernel" in gone(question)
    assert step_us == pytest.approx(300, rel=0.02)


def test_ops_within_an_op_that_stays_take_no_time_once_their_work_is_gone(tmp_path: Path) -> None:
    """`bincount` looks for the largest number and reads it: what is left is its own kernel, however long that took."""

    def body(length: float) -> Body:
        def program(loop: Loop) -> None:
            loop.op("aten::mm", (GEMM, 5), cpu=300)
            start = loop.now
            loop.op("aten::max", (REDUCE.format("long"), 5), cpu=length)
            loop.read(8)
            loop.work(HISTOGRAM, 5)
            loop.end_op("aten::bincount", start)

        return program

    (question, quick), (_, slow) = (asked(tmp_path, body(length)) for length in (10, 200))
    assert REDUCE.format("long") in gone(question)
    assert HISTOGRAM not in gone(question)
    assert slow == pytest.approx(quick, abs=12)


def test_a_tensor_made_from_the_same_list_again_is_made_once(tmp_path: Path) -> None:
    """Each takes 2.3 walks of the list, of which two are taken out: the first of a step stays, for it may be new."""

    def body(walk: float) -> Body:
        def program(loop: Loop) -> None:
            loop.op("aten::mm", (GEMM, 5), cpu=300)
            for _ in range(3):
                loop.tensor_of(384, walk)
                loop.op("aten::index", (GEMM, 5), cpu=30)

        return program

    (question, quick), (_, slow) = (asked(tmp_path, body(walk)) for walk in (20, 120))
    copies = question.labelled.is_copy
    assert question.trial("remove_sync").gone[copies].sum() == 2 * copies.sum() / 3
    assert slow - quick == pytest.approx(290, rel=0.1)


def test_tensors_of_different_lists_all_stay(tmp_path: Path) -> None:
    def body(loop: Loop) -> None:
        for numbers in (16, 32, 64):
            loop.tensor_of(numbers, 10)
            loop.op("aten::index", (GEMM, 5), cpu=30)

    question, _ = asked(tmp_path, body)
    assert not question.trial("remove_sync").gone.any()


@pytest.mark.parametrize(
    ("size", "length", "beside"), [(32 << 10, 2, True), (512 << 10, 20, True), (512 << 10, 200, False)]
)
def test_results_handled_in_python_are_handled_beside_the_gpu(
    size: int, length: float, beside: bool, tmp_path: Path
) -> None:
    """A kernel of 400 µs, its result, 300 µs of Python: together 400 µs, unless it is the copy that takes the time."""

    def body(loop: Loop) -> None:
        loop.op("aten::mm", (GEMM, 400))
        loop.read(size, "DtoH (Device -> Pageable)", length, "aten::to")
        loop.now += 300

    _, step_us = asked(tmp_path, body)
    # Waiting, the three follow each other: 900 µs less what the profiler takes for itself.
    assert step_us == pytest.approx(400 if beside else 900 - DEFAULT_KINETO.step.expected / 1e3, rel=0.05)


def synchronised(steps: set[int], *, frames: tuple[str, ...] = ()) -> list[Event]:
    """Five steps of a kernel of 1 ms; some wait for the device, within frames of these names, one in the other."""
    events: list[Event] = []
    for step in range(5):
        begin = 2_000.0 * step
        events.append(files.annotation(f"ProfilerStep#{step}", begin, 1_900))
        events.append(files.call("cudaLaunchKernel", begin + 10, 5, 10 * step + 1))
        events.append(files.kernel("gemm", begin + 20, 1_000, 10 * step + 1))
        if step in steps:
            events.append(files.call("cudaDeviceSynchronize", begin + 50, 1_000, 10 * step + 2))
            for number, name in enumerate(frames, 10 * step + 1):
                within = None if number == 10 * step + 1 else number - 1
                events.append(files.frame(name, begin + 40, 1_100, number, within))
    return events


PROFILER_FRAMES = ("torch/profiler/profiler.py(700): step", "torch/cuda/__init__.py(900): synchronize")


@pytest.mark.parametrize(
    ("steps", "frames", "waits"),
    [
        pytest.param({0, 1, 2, 3, 4}, (), 5, id="in every step"),
        pytest.param({4}, (), 0, id="once in five steps"),
        pytest.param({0, 1, 2, 3, 4}, PROFILER_FRAMES, 0, id="the profiler's"),
        pytest.param({0, 1, 2, 3, 4}, ("train.py(3): step", PROFILER_FRAMES[1]), 5, id="the program's"),
    ],
)
def test_waits_of_the_harness_stay(tmp_path: Path, steps: set[int], frames: tuple[str, ...], waits: int) -> None:
    trace = open_trace(files.write(tmp_path, synchronised(steps, frames=frames)), cache=False)
    assert question_about(trace).trial("remove_sync").changed == (waits,)


@pytest.mark.parametrize(
    ("size", "copies", "with_op", "remain"),
    [
        (1 << 20, 1, True, 0),  # a batch: pinned memory ends its wait
        (1 << 20, 1, False, 0),  # the same in a trace without ops: the next call
        (64, 1, True, 1),  # a few numbers are no batch
        (64, 8, True, 0),  # many of them are one copy
    ],
)
def test_a_wait_for_a_copy_to_the_device_belongs_to_the_copy(
    size: int, copies: int, with_op: bool, remain: int, tmp_path: Path
) -> None:
    def body(loop: Loop) -> None:
        for _ in range(copies):
            start = loop.now
            loop.work("HtoD (Pageable -> Device)", 4, size)
            loop.wait()
            if with_op:
                loop.end_op("aten::to", start)
        loop.op("aten::mm", (GEMM, 20))
        loop.op("aten::mm", (GEMM, 20))

    question, _ = asked(tmp_path, body)
    waits = awaited_calls(question.labelled)
    assert len(waits) == 4 * remain  # four steps


@pytest.mark.parametrize("late", [False, True])
def test_a_wait_behind_kernels_that_start_late_has_a_gain_that_is_to_be_measured(tmp_path: Path, late: bool) -> None:
    """Four times a step a kernel of 10 µs is awaited and 30 µs of Python follow. The kernel begins at once, or 365 µs
    late for no recorded reason: if its stream was held, it is held without the wait, too."""
    delay, events = 365.0 if late else 0.0, list[Event]()
    length = 55.0 + delay
    for step in range(6):
        begin = 4 * length * step
        events.append(files.annotation(f"ProfilerStep#{step}", begin, 4 * length))
        for turn in range(4):
            at, number = begin + turn * length, 2 * (4 * step + turn) + 1
            events.append(files.call("cudaLaunchKernel", at, 5, number))
            events.append(files.kernel("kernel", at + 7 + delay, 10, number))
            events.append(files.call("cudaDeviceSynchronize", at + 6, 14 + delay, number + 1))
    question = question_about(open_trace(files.write(tmp_path, events), cache=False))
    assert question.ask("remove_sync").gain.is_wide == late
