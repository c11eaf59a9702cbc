"""The first set: every reason of the contract at least once. Sizes suit an H200 (132 SMs), over 50 µs a launch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from faults.kernels.case import Buffers, Call, Cuda, KernelCase, grid

SMS = 132
"""Streaming multiprocessors of an H200."""
ONE_BLOCK_BYTES = 120 << 10
"""Dynamic shared memory of which only one fits on an SM."""
MILLION = 1 << 20
SUMS_IN_ANOTHER_ORDER = 0.2
"""Partial sums of 4096 random values differ between the orders by a few percent; a wrong kernel by all of it."""
ONE_VALUE_A_THREAD = ("healthy", "memory_bandwidth", "latency")
"""A copy of four bytes a thread reaches 54 % of an H200's DRAM peak, one of sixteen bytes 88 %: it waits, truly."""


def triton(name: str, *arguments: object) -> Call:
    """A launcher of `triton_kernels`, imported when it runs. With arguments, the launcher is made with them."""

    def run(torch: Any, buffers: Buffers) -> object:
        from faults.kernels import triton_kernels  # noqa: PLC0415

        made = getattr(triton_kernels, name)
        return (made(*arguments) if arguments else made)(torch, buffers)

    return Call(run)


def floats(torch: Any, *shape: int) -> Any:
    """Random values in [0, 1), the same in each run."""
    torch.manual_seed(0)
    return torch.rand(shape, device="cuda")


def vectors(values: int, results: int | None = None) -> Callable[[Any], Buffers]:
    """One input and one output of floats."""

    def make(torch: Any) -> Buffers:
        return {"x": floats(torch, values), "y": torch.zeros(results or values, device="cuda")}

    return make


def histogram_keys(torch: Any) -> Buffers:
    torch.manual_seed(0)
    keys = torch.randint(0, 16, (16 * MILLION,), device="cuda", dtype=torch.int32)
    return {"key": keys, "bins": torch.zeros(16, device="cuda", dtype=torch.int32)}


def counter_values(torch: Any) -> Buffers:
    return {"x": (floats(torch, 8 * MILLION) > 0.5).float(), "total": torch.zeros(2, device="cuda")}


def gathered_rows(torch: Any) -> Buffers:
    """Four million reads of a million rows, in random order and sorted."""
    table = floats(torch, MILLION, 128)
    row = torch.randint(0, MILLION, (4 * MILLION,), device="cuda", dtype=torch.int32)
    ordered, place = torch.sort(row)
    identity = torch.arange(row.numel(), device="cuda", dtype=torch.int32)
    return {
        "table": table,
        "row": row,
        "identity": identity,
        "ordered": ordered,
        "place": place.to(torch.int32),
        "y": torch.zeros(row.numel(), device="cuda"),
    }


def row_totals(torch: Any) -> Buffers:
    """The same reads as `gathered_rows`, for partial sums of 32 rows each."""
    made = gathered_rows(torch)
    return {name: made[name] for name in ("table", "row", "ordered")} | {"total": made["y"][: 4 * MILLION // 32]}


def half_matrices(torch: Any) -> Buffers:
    a, b = (floats(torch, 2048, 2048) - 0.5).half(), (floats(torch, 2048, 2048) - 0.25).half()
    return {"a": a, "b": b, "c": torch.zeros_like(a)}


def permuted(torch: Any) -> Buffers:
    sizes = torch.tensor([16, 32, 32, 32, 8, 8], device="cuda", dtype=torch.int64)
    return {"x": floats(torch, 32 * MILLION), "y": torch.zeros(32 * MILLION, device="cuda"), "size": sizes}


def node_chains(torch: Any) -> Buffers:
    """Two million nodes of 128 bytes, each naming the next, and the chain of each of 8448 warps."""
    torch.manual_seed(0)
    nodes, warps, steps = 2 * MILLION, SMS * 64, 256
    node = torch.randint(0, 1000, (nodes, 32), device="cuda", dtype=torch.int32)
    after = torch.randperm(nodes, device="cuda")
    node[:, 31] = after.to(torch.int32)
    chain = [torch.randperm(nodes, device="cuda")[:warps]]
    for _ in range(steps - 1):
        chain.append(after[chain[-1]])
    names = torch.stack(chain, dim=1).to(torch.int32).contiguous()
    return {"node": node, "list": names, "y": torch.zeros(warps * 32, device="cuda", dtype=torch.int32)}


def streams(torch: Any) -> Buffers:
    values = 32 * MILLION
    return {"x": floats(torch, values), "y": floats(torch, values), "z": torch.zeros(values, device="cuda")}


def doubles(torch: Any) -> Buffers:
    x = floats(torch, 8448 * 256).double()
    return {"x": x, "y": torch.zeros_like(x)}


def matrix(rows: int, columns: int) -> Callable[[Any], Buffers]:
    """A matrix of floats and one like it."""

    def make(torch: Any) -> Buffers:
        x = floats(torch, rows, columns)
        return {"x": x, "y": torch.zeros_like(x)}

    return make


def _walk() -> Cuda:
    return Cuda("column_walk", grid(64 * MILLION // 256), grid(256), ("x", "y", 2.0, 8192, 8192))


def _rows(row: str, place: str) -> Cuda:
    return Cuda("gather_rows", grid(4 * MILLION // 8), grid(256), ("table", row, place, "y"))


_WAVE = ("x", "y", 2240, 500)
_NODES = Cuda("linked_nodes", grid(SMS * 8), grid(256), ("node", "list", "y", 2 * MILLION, 256))
_BANKS = Cuda("shared_columns", grid(16384), grid(256), ("x", "y", 128))
_MIX = Cuda("register_cap", grid(1056), grid(512), ("x", "y", MILLION, 100))
_BINS = Cuda("histogram", grid(SMS * 8), grid(256), ("key", "bins", 16 * MILLION))
_SUM = Cuda("one_counter", grid(SMS * 8), grid(256), ("x", "total", 8 * MILLION))
_LITERAL = Cuda("double_literal", grid(65536), grid(256), ("x", "y", 16 * MILLION, 64))
_KINDS = Cuda("lane_kinds", grid(32768), grid(256), ("x", "y", 128))
_ROWS = Cuda("growing_rows", grid(SMS), grid(1024), ("x", "y", 2 * SMS, 20), ONE_BLOCK_BYTES)
_DIVISION = Cuda("index_division", grid(131072), grid(256), ("x", "y", "size", 32 * MILLION))
_SCALE = ("x", "y", 2.0, 64 * MILLION)

CASES = (
    KernelCase(
        "column_walk", "uncoalesced", vectors(64 * MILLION), ("y",), _walk(), _walk(), fixed_reasons=ONE_VALUE_A_THREAD
    ),
    KernelCase("shared_columns", "bank_conflicts", vectors(16 * MILLION, 4 * MILLION), ("y",), _BANKS, _BANKS),
    KernelCase(
        "reserved_shared",
        "low_occupancy",
        vectors(64 * MILLION),
        ("y",),
        Cuda("reserved_shared", grid(SMS * 32), grid(64), _SCALE, 100 << 10),
        Cuda("reserved_shared", grid(SMS * 32), grid(64), _SCALE),
    ),
    KernelCase("register_cap", "spills", vectors(MILLION), ("y",), _MIX, _MIX, tolerance=1e-4),
    KernelCase("histogram", "atomics", histogram_keys, ("bins",), _BINS, _BINS),
    KernelCase("one_counter", "atomics", counter_values, ("total",), _SUM, _SUM),
    KernelCase("double_literal", "fp64", vectors(16 * MILLION), ("y",), _LITERAL, _LITERAL),
    KernelCase("lane_kinds", "divergence", vectors(8 * MILLION), ("y",), _KINDS, _KINDS),
    KernelCase(
        "few_blocks",
        "small_grid",
        vectors(32 * MILLION),
        ("y",),
        Cuda("few_blocks", grid(24), grid(256), ("x", "y", 32 * MILLION)),
        Cuda("few_blocks", grid(SMS * 8), grid(256), ("x", "y", 32 * MILLION)),
    ),
    KernelCase(
        "last_wave",
        "tail",
        vectors(2240 * 1024),
        ("y",),
        Cuda("last_wave", grid(140), grid(1024), _WAVE, ONE_BLOCK_BYTES),
        Cuda("last_wave", grid(SMS), grid(1024), _WAVE, ONE_BLOCK_BYTES),
    ),
    KernelCase("growing_rows", "imbalance", vectors(2 * SMS * 1024), ("y",), _ROWS, _ROWS),
    KernelCase(
        "gather_rows",
        "l2_misses",
        gathered_rows,
        ("y",),
        _rows("row", "identity"),
        _rows("ordered", "place"),
        fixed_reasons=("healthy", "memory_bandwidth", "instruction_bound", "latency"),
    ),
    KernelCase(
        "gather_sum",
        "l2_misses",
        row_totals,
        ("total",),
        Cuda("gather_sum", grid(4 * MILLION // 32 // 8), grid(256), ("table", "row", "total")),
        Cuda("gather_sum", grid(4 * MILLION // 32 // 8), grid(256), ("table", "ordered", "total")),
        tolerance=SUMS_IN_ANOTHER_ORDER,
    ),
    KernelCase(
        "simt_matmul",
        "tensor_cores_unused",
        half_matrices,
        ("c",),
        Cuda("simt_matmul", grid(32, 32), grid(256), ("a", "b", "c", 2048)),
        triton("half_matmul"),
        fixed_reasons=("healthy", "compute_peak", "latency", "tail"),
        tolerance=2e-3,
    ),
    KernelCase(
        "index_division",
        "instruction_bound",
        permuted,
        ("y",),
        _DIVISION,
        _DIVISION,
        fixed_reasons=ONE_VALUE_A_THREAD,
    ),
    KernelCase("linked_nodes", "latency", node_chains, ("y",), _NODES, _NODES),
    KernelCase(
        "stream_sum",
        "memory_bandwidth",
        streams,
        ("z",),
        Cuda("stream_sum", grid(8 * MILLION // 256), grid(256), ("x", "y", "z", 2.0)),
        also=("healthy",),
    ),
    KernelCase(
        "multiply_add",
        "compute_peak",
        vectors(8448 * 256),
        ("y",),
        Cuda("multiply_add", grid(8448), grid(256), ("x", "y", 512)),
        also=("healthy",),
    ),
    KernelCase(
        "balanced",
        "healthy",
        vectors(64 * MILLION),
        ("y",),
        Cuda("balanced", grid(65536), grid(256), ("x", "y")),
        also=("memory_bandwidth", "compute_peak"),
    ),
    KernelCase(
        "true_double",
        "compute_peak",
        doubles,
        ("y",),
        Cuda("true_double", grid(8448), grid(256), ("x", "y", 256)),
        also=("healthy",),
    ),
    KernelCase(
        "scale_strided",
        "uncoalesced",
        matrix(8192, 4096),
        ("y",),
        triton("scale_strided", "flawed"),
        triton("scale_strided", "fixed"),
    ),
    KernelCase(
        "row_norm",
        "spills",
        matrix(8192, 8192),
        ("y",),
        triton("row_norm", "flawed"),
        triton("row_norm", "fixed"),
        fixed_reasons=("healthy", "memory_bandwidth", "latency"),
        tolerance=1e-4,
    ),
)
"""The flawed and the fixed form of one entry differ in the entry point, where they do not differ in the launch."""
