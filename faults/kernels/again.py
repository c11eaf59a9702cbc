"""The fixed forms of the second set that the tree did not clear, fixed again of what it says of them.

They judge whether it was right: the measured gain must lie in the predicted range.
"""

from __future__ import annotations

from typing import Any

from faults.kernels.case import Buffers, Cuda, KernelCase, grid
from faults.kernels.planted import MILLION, triton, vectors
from faults.kernels.unseen import loop_lengths, single_matrices, sparse_rows, structs

REAL = ("healthy", "memory_bandwidth", "compute_peak", "instruction_bound", "latency")


def field(torch: Any) -> Buffers:
    made = structs(torch)
    return {name: made[name] for name in ("field", "y")}


def ordered_lengths(torch: Any) -> Buffers:
    """The same loops, and the inputs once more in the order of the list."""
    made = loop_lengths(torch)
    order = made["order"].long()
    return made | {"sorted_x": made["x"][order].contiguous(), "sorted_rounds": made["rounds"][order].contiguous()}


def transposed_matrices(torch: Any) -> Buffers:
    made = single_matrices(torch)
    return made | {"transposed": made["b"].t().contiguous()}


_BLOCKS = 8 * MILLION // 256
_STENCIL = ("x", "y", 32 * MILLION)
_CHUNKS = 4093 + 3 * 64

CASES = (
    KernelCase(
        "field_again",
        "latency",
        field,
        ("y",),
        Cuda("field_again", grid(_BLOCKS), grid(256), ("field", "y")),
        Cuda("field_again", grid(_BLOCKS // 4), grid(256), ("field", "y")),
        fixed_reasons=REAL,
    ),
    KernelCase(
        "root_again",
        "latency",
        vectors(32 * MILLION),
        ("y",),
        Cuda("root_again", grid(32 * MILLION // 256), grid(256), _STENCIL),
        Cuda("root_again", grid(8 * MILLION // 256), grid(256), _STENCIL),
        fixed_reasons=REAL,
    ),
    KernelCase(
        "loops_again",
        "uncoalesced",
        ordered_lengths,
        ("y",),
        Cuda("loops_again", grid(_BLOCKS), grid(256), ("x", "rounds", "order", "y")),
        Cuda("loops_again", grid(_BLOCKS), grid(256), ("sorted_x", "sorted_rounds", "order", "y")),
        fixed_reasons=REAL,
    ),
    KernelCase(
        "rows_again",
        "latency",
        sparse_rows,
        ("y",),
        Cuda("rows_again", grid(_CHUNKS), grid(256), ("x", "chunk", "owner", "y")),
        Cuda("rows_again", grid(_CHUNKS), grid(256), ("x", "chunk", "owner", "y")),
        also=("tail",),
        fixed_reasons=(*REAL, "tail"),
        tolerance=1e-4,
    ),
    KernelCase(
        "matmul_again",
        "bank_conflicts",
        transposed_matrices,
        ("c",),
        triton("single_matmul", "tf32"),
        triton("transposed_matmul"),
        fixed_reasons=(*REAL, "tail", "low_occupancy"),
        tolerance=5e-3,
    ),
)
