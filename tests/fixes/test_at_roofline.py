"""What kernels that gather, scatter and sort can do: hand-made traces, and recorded programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import kineto_files as files
import pytest
from kineto_files import Event

from warpline.fixes.registry import question_about
from warpline.replay import WhatIf
from warpline.trace.open import open_trace

ROWS = 1 << 24
GATHER = "void at::native::vectorized_gather_kernel<16, long>(char*, char*, long*, int, long, long, long, long, bool)"
ADD = "void at::native::indexFuncLargeIndex<float, long, unsigned int, 2, 2, -2, true>()"
SORT = "void at_cuda_detail::cub::detail::radix_sort::DeviceRadixSortOnesweepKernel<>()"
PUT = "void (anonymous namespace)::indexing_backward_kernel<float, 4>(long const*, long const*, float const*, float*)"
BLOCK_PER_ROW, FEW = [ROWS, 1, 1], [1056, 1, 1]
GATHERED = {
    "Input Dims": [[ROWS, 8], [], [ROWS, 8], [], [ROWS, 8]],
    "Input Strides": [[8, 1], [], [1, 0], [], [8, 1]],
    "Input type": ["float", "Scalar", "long int", "Scalar", "float"],
    "Concrete Inputs": ["", "0", "", "False", ""],
}
ADDED = {
    "Input Dims": [[16384, 128], [], [98304], [98304, 128], []],
    "Concrete Inputs": ["", "0", "", "", "1"],
    "Input type": ["float", "Scalar", "long int", "float", "Scalar"],
}
SORTED = {
    "Input Dims": [[ROWS], [], [], []],
    "Input type": ["int", "Scalar", "Scalar", "Scalar"],
    "Concrete Inputs": ["", "False", "-1", "False"],
}
PUT_BACK = {
    "Input Dims": [[2, 1024], [], [8192, 1024], [], []],
    "Input type": ["float", "", "float", "Scalar", "Scalar"],
    "Concrete Inputs": ["", "", "", "True", "True"],
}


def steps_of(folder: Path, op: str, known: dict[str, Any], kernel: str, length_us: float, grid: list[int]) -> WhatIf:
    """Three steps on an H200, each with one op and its kernel, and a wait for it."""
    step, events = length_us + 100, list[Event]()
    for number in range(1, 4):
        base = step * number
        events += [
            files.annotation(f"ProfilerStep#{number}", base, step),
            files.op(op, base + 10, 40, external=number, **known),
            files.call("cudaLaunchKernel", base + 20, 5, number, external=number),
            files.call("cudaDeviceSynchronize", base + 55, length_us, 100 + number),
            files.kernel(kernel, base + 50, length_us, number, grid=grid, block=[128, 1, 1], **{"External id": number}),
        ]
    device = {"id": 0, "name": "NVIDIA H200", "numSms": 132, "computeMajor": 9, "computeMinor": 0}
    return question_about(open_trace(files.write(folder, events, deviceProperties=[device]), cache=False))


@pytest.mark.parametrize(
    ("op", "known", "kernel", "length_us", "grid", "far"),
    [
        # A block for each row of 32 bytes: 16.8 million blocks take 10.07 ms to start.
        ("aten::gather", GATHERED, GATHER, 10_100, BLOCK_PER_ROW, False),
        # 1.21 GB would move in 0.28 ms.
        ("aten::gather", GATHERED, GATHER, 10_100, FEW, True),
        ("aten::gather", GATHERED, GATHER, 1_200, FEW, False),
        # 12.6 million additions in the cache take 88 µs, and five times that 440.
        ("aten::index_add_", ADDED, ADD, 400, FEW, False),
        ("aten::index_add_", ADDED, ADD, 500, FEW, True),
        # Four passes over 4 bytes of key and 8 of place, read and written: 1.61 GB in 378 µs.
        ("aten::sort", SORTED, SORT, 1_800, FEW, False),
        ("aten::sort", SORTED, SORT, 2_000, FEW, True),
    ],
)
def test_a_kernel_near_its_pace_stays_as_it_is(
    tmp_path: Path, op: str, known: dict[str, Any], kernel: str, length_us: float, grid: list[int], far: bool
) -> None:
    question = steps_of(tmp_path, op, known, kernel, length_us, grid)
    assert question.ask("at_roofline").applies == far


def test_the_gradient_of_an_index_takes_four_times_its_bytes_and_some_launches(tmp_path: Path) -> None:
    # Read 33.6 MB, and 8 KB twice: 7.88 µs at 4.26 TB/s. Four times that, and four more kernels, with their launches.
    question = steps_of(tmp_path, "aten::_index_put_impl_", PUT_BACK, PUT, 2_600, [16384, 1, 1])
    saved = question.bare.expected_ns - question.ask("at_roofline").new_step_ns.expected
    passes = 4 * (question.labelled.device.smallest_kernel.expected + question.labelled.host.launched_op.expected)
    assert saved == pytest.approx(2_600_000 - 4 * 7_880 - passes, rel=0.002)
