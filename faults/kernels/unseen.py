"""The second set: the same flaws in other guises. It judges the tree, and the tree is not made for it."""

from __future__ import annotations

from typing import Any

from faults.kernels.case import Buffers, Cuda, KernelCase, grid
from faults.kernels.planted import MILLION, SMS, floats, triton, vectors


def structs(torch: Any) -> Buffers:
    whole = floats(torch, 8 * MILLION, 8)
    return {"structs": whole, "field": whole[:, 3].contiguous(), "y": torch.zeros(8 * MILLION, device="cuda")}


def loop_lengths(torch: Any) -> Buffers:
    """One element in sixteen needs 512 rounds, the others 16."""
    values = 8 * MILLION
    x = floats(torch, values)
    rounds = torch.where(torch.rand(values, device="cuda") < 1 / 16, 512, 16).to(torch.int32)
    order = torch.argsort(rounds, stable=True).to(torch.int32)
    return {"x": x, "rounds": rounds, "order": order, "y": torch.zeros(values, device="cuda")}


def sparse_rows(torch: Any) -> Buffers:
    """4096 rows of 16384 values, but three of 64 times that; and the same cut into chunks of 16384."""
    usual, long = 16384, 64
    length = torch.full((4096,), usual, dtype=torch.int64)
    length[torch.tensor([700, 1900, 3300])] = usual * long
    first = torch.zeros(4097, dtype=torch.int64)
    first[1:] = torch.cumsum(length, 0)
    total = int(first[-1])
    owner = torch.repeat_interleave(torch.arange(4096), length // usual)
    chunk = torch.arange(total // usual + 1) * usual
    return {
        "x": floats(torch, total),
        "first": first.to(torch.int32).cuda(),
        "chunk": chunk.to(torch.int32).cuda(),
        "owner": owner.to(torch.int32).cuda(),
        "y": torch.zeros(4096, device="cuda"),
    }


def two_keys(torch: Any) -> Buffers:
    keys = (floats(torch, 16 * MILLION) > 0.5).to(torch.int32)
    return {"key": keys, "bins": torch.zeros(2, device="cuda")}


def row_sums(torch: Any) -> Buffers:
    return {"x": floats(torch, 16, 4 * MILLION), "y": torch.zeros(16, device="cuda")}


def single_matrices(torch: Any) -> Buffers:
    a, b = floats(torch, 2048, 2048) - 0.5, floats(torch, 2048, 2048) - 0.25
    return {"a": a, "b": b, "c": torch.zeros_like(a)}


_TILES = 3072
_TRANSPOSE = Cuda("naive_transpose", grid(256, 256), grid(32, 8), ("x", "y", 8192))
_FIELD = Cuda("struct_field", grid(8 * MILLION // 256), grid(256), ("structs", "field", "y"))
_SLICES = Cuda("private_slices", grid(4096), grid(128), ("x", "y", 16))
_ROOT = Cuda("double_square_root", grid(32 * MILLION // 256), grid(256), ("x", "y", 32 * MILLION))
_LOOPS = Cuda("uneven_loops", grid(8 * MILLION // 256), grid(256), ("x", "rounds", "order", "y"))
_WAVE = ("x", "y", 280 * 32, 256)
_TABLE = Cuda("indexed_array", grid(8192), grid(128), ("x", "y", 128))
_TILE = Cuda("tile_order", grid(_TILES * 8), grid(256), ("x", "y", _TILES))
_BARRIER = Cuda("block_barriers", grid(SMS * 20), grid(1024), ("x", "y", 64))
_BUFFER = Cuda("oversize_buffer", grid(SMS * 32), grid(64), ("x", "y", MILLION))

CASES = (
    KernelCase("naive_transpose", "uncoalesced", vectors(64 * MILLION), ("y",), _TRANSPOSE, _TRANSPOSE),
    KernelCase("struct_field", "uncoalesced", structs, ("y",), _FIELD, _FIELD),
    KernelCase(
        "private_slices",
        "bank_conflicts",
        vectors(16 * MILLION, 4096 * 128),
        ("y",),
        _SLICES,
        _SLICES,
        fixed_reasons=("healthy", "memory_bandwidth", "latency", "instruction_bound", "low_occupancy"),
    ),
    KernelCase("double_square_root", "fp64", vectors(32 * MILLION), ("y",), _ROOT, _ROOT),
    KernelCase("uneven_loops", "divergence", loop_lengths, ("y",), _LOOPS, _LOOPS),
    KernelCase(
        "wave_and_a_bit",
        "tail",
        vectors(280 * 32 * 1024),
        ("y",),
        Cuda("wave_and_a_bit", grid(280), grid(1024), _WAVE),
        Cuda("wave_and_a_bit", grid(2 * SMS), grid(1024), _WAVE),
    ),
    KernelCase(
        "indexed_array",
        "spills",
        vectors(MILLION),
        ("y",),
        _TABLE,
        _TABLE,
        fixed_reasons=("healthy", "memory_bandwidth", "compute_peak", "latency", "instruction_bound"),
    ),
    KernelCase(
        "skewed_rows",
        "imbalance",
        sparse_rows,
        ("y",),
        Cuda("skewed_rows", grid(4096), grid(256), ("x", "first", "owner", "y")),
        Cuda("skewed_rows", grid(4093 + 3 * 64), grid(256), ("x", "chunk", "owner", "y")),
        tolerance=1e-4,
    ),
    KernelCase("tile_order", "l2_misses", vectors(_TILES * 8192, _TILES * 8), ("y",), _TILE, _TILE, tolerance=1e-4),
    KernelCase(
        "block_barriers",
        "latency",
        vectors(SMS * 20 * 1024),
        ("y",),
        _BARRIER,
        _BARRIER,
        fixed_reasons=("healthy", "memory_bandwidth", "compute_peak", "instruction_bound"),
    ),
    KernelCase("oversize_buffer", "low_occupancy", vectors(64 * MILLION), ("y",), _BUFFER, _BUFFER),
    KernelCase(
        "count_keys", "atomics", two_keys, ("bins",), triton("count_keys", "flawed"), triton("count_keys", "fixed")
    ),
    KernelCase(
        "long_rows",
        "small_grid",
        row_sums,
        ("y",),
        triton("long_rows", "flawed"),
        triton("long_rows", "fixed"),
        tolerance=1e-4,
    ),
    KernelCase(
        "wide_index",
        "instruction_bound",
        vectors(32 * MILLION),
        ("y",),
        triton("wide_index", "flawed"),
        triton("wide_index", "fixed"),
    ),
    KernelCase(
        "single_matmul",
        "tensor_cores_unused",
        single_matrices,
        ("c",),
        triton("single_matmul", "ieee"),
        triton("single_matmul", "tf32"),
        fixed_reasons=("healthy", "compute_peak", "latency", "memory_bandwidth", "tail"),
        tolerance=5e-3,
    ),
)
