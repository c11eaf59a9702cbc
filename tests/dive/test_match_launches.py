"""A report's kernels found in a timeline, however either tool spells them."""

from __future__ import annotations

from pathlib import Path

from kineto_files import Event, call, kernel, op, write

from warpline.dive.match_launches import match_launches
from warpline.sources.ncu.model import KernelReport, NcuReport
from warpline.trace.open import open_trace

SILU = "void at::native::vectorized_elementwise_kernel<8, at::native::(anonymous namespace)::silu_kernel(at::TensorIteratorBase&)::{lambda()#1}::operator()() const::{lambda(c10::Half)#1}, std::array<char*, 2ul> >(int, T2, T3)"
MUL = "void at::native::vectorized_elementwise_kernel<8, at::native::BinaryFunctor<c10::Half, at::native::MulFunctor<float> >, std::array<char*, 3ul> >(int, T2, T3)"
AS_NCU = {
    "silu": "void at::vectorized_elementwise_kernel<8, at::<unnamed>::silu_kernel(at::TensorIteratorBase &)::[lambda() (instance 1)]::operator ()() const::[lambda(c10::Half) (instance 1)], std::array<char *, 2>>(int, T2, T3)",
    "mul": "void at::native::vectorized_elementwise_kernel<(int)8, at::native::BinaryFunctor<c10::Half, at::native::MulFunctor<float>>, std::array<char *, (unsigned long)3>>(int, T2, T3)",
}


def reported(name: str, grid: int, duration_us: float, block: int = 128, launch: int = 0) -> KernelReport:
    return KernelReport(name, "f", launch, "", "sm_90", (grid, 1, 1), (block, 1, 1), duration_us * 1e3, {})


def launches(*rows: tuple[str, int, float, list[int]]) -> list[Event]:
    events: list[Event] = []
    for number, (name, grid, length, shape) in enumerate(rows, 1):
        at = 1000.0 * number
        events += [
            op("aten::x", at, 50, external=number, **{"Input Dims": [shape], "Input type": ["c10::Half"]}),
            call("cudaLaunchKernel", at + 5, 10, number, external=number),
            kernel(name, at + 20, length, number, grid=[grid, 1, 1], block=[128, 1, 1]),
        ]
    return events


def test_names_geometry_shapes_and_order(tmp_path: Path) -> None:
    timeline = launches(
        (SILU, 10, 20, [5]),
        (MUL, 10, 30, [5]),
        (SILU, 10, 22, [5]),
        (MUL, 99, 300, [50]),
        ("gemm", 2, 90, [1]),
        ("gemm", 2, 270, [3]),
    )
    trace = open_trace(write(tmp_path, timeline), cache=False)
    kernels = (
        reported(AS_NCU["silu"], 10, 24),
        reported(AS_NCU["mul"], 10, 24),
        reported(AS_NCU["silu"], 10, 24, launch=2),
        reported(AS_NCU["mul"], 77, 31),
        reported("gemm", 2, 280),
        reported("gemm", 2, 280, block=256),
        reported("absent", 2, 280),
    )
    found = match_launches(NcuReport(Path("r"), "csv-raw", "", kernels), trace)
    silu, mul, second, other_grid, gemm, other_block, absent = found
    assert silu is not None and mul is not None and second is not None and other_grid is not None and gemm is not None
    assert (silu.name, silu.rows, silu.row, silu.time_ns, silu.how) == (SILU, (0, 2), 0, 42_000, "name, grid and block")
    assert (mul.name, mul.rows) == (MUL, (1,)), "the words of its arguments decide"
    assert second.row == 2, "the second launch of the report is the second of the timeline"
    assert (other_grid.name, other_grid.rows, other_grid.how) == (MUL, (1,), "name and block"), "the nearest duration"
    assert gemm.rows == (5,), "one grid for two shapes: the duration decides"
    assert other_block is None
    assert absent is None
