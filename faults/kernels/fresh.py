"""A blind set: each flaw once more, in other programs. It judges the tree, and was written without knowing it."""

from __future__ import annotations

from typing import Any

from faults.kernels.case import Buffers, Call, Cuda, KernelCase, grid
from faults.kernels.planted import MILLION, SMS, floats, triton, vectors

PRIME = 2**31 - 1
HASH_BASE = 1_000_003
CHANNELS = SMS * 30 * 128
GROUPS = SMS * 64 * 256 * 4
"""Groups of four points: 32 for each thread of eight blocks of 256 an SM."""
RODS = 140 * 256
ROWS = SMS * 8
QUADS = SMS * 64 * 128
PARTICLES = SMS * 24 * 256
PIXELS = SMS * 32 * 4096
NODES, COMMUNITY = MILLION, 128
TOKENS, INPUTS, OUTPUTS = 8192, 1024, 2048
OUT_OF_RANGE = 3.836
"""The sum of four values in [0, 1) lies above it once in 33000."""


def points(torch: Any) -> Buffers:
    """Coordinates of both signs, so that no corner of the box is zero."""
    torch.manual_seed(0)
    made: Buffers = {
        axis: torch.randint(-MILLION, MILLION, (4 * GROUPS,), device="cuda", dtype=torch.int32) for axis in "xyz"
    }
    return made | {"corners": torch.zeros(6, device="cuda", dtype=torch.int32)}


def vortices(torch: Any) -> Buffers:
    return {
        "particle": floats(torch, PARTICLES, 2),
        "vortex": floats(torch, 512, 4),
        "velocity": torch.zeros(PARTICLES, 2, device="cuda"),
    }


def norm_rows(torch: Any) -> Buffers:
    x = floats(torch, SMS * 128, 2048)
    return {"x": x, "upstream": x.flip(0).contiguous(), "gradient": torch.zeros(2048, device="cuda")}


def picture(torch: Any) -> Buffers:
    return {"y": torch.zeros(SMS * 32 * 4096, device="cuda", dtype=torch.int32)}


def communities(torch: Any) -> Buffers:
    """A graph whose nodes have eight neighbours in their own community; its labels in that order, and shuffled."""
    feature = floats(torch, NODES, 64)
    node = torch.arange(NODES, device="cuda")
    offset = torch.randint(0, COMMUNITY, (NODES, 8), device="cuda")
    neighbour = (node // COMMUNITY * COMMUNITY)[:, None] + offset
    label = torch.randperm(NODES, device="cuda")
    labelled = torch.argsort(label)
    return {
        "feature": feature,
        "neighbour": neighbour.to(torch.int32),
        "place": node.to(torch.int32),
        "shuffled_feature": feature[labelled].contiguous(),
        "shuffled_neighbour": label[neighbour[labelled]].to(torch.int32).contiguous(),
        "shuffled_place": labelled.to(torch.int32),
        "mean": torch.zeros_like(feature),
    }


def layer(torch: Any) -> Buffers:
    x, w = floats(torch, TOKENS, INPUTS) - 0.5, floats(torch, OUTPUTS, INPUTS) - 0.25
    y = torch.zeros(TOKENS, OUTPUTS, device="cuda", dtype=torch.bfloat16)
    return {"x": x.bfloat16(), "w": w.bfloat16(), "y": y}


def words(torch: Any) -> Buffers:
    torch.manual_seed(0)
    x = torch.randint(0, PRIME, (16, 4 * QUADS), device="cuda", dtype=torch.int32)
    return {"x": x, "y": torch.zeros(4 * QUADS, device="cuda", dtype=torch.int32)}


def gate_streams(torch: Any) -> Buffers:
    gate, up, residual = floats(torch, 3, 32 * MILLION)
    return {"gate": gate, "up": up, "residual": residual, "y": torch.zeros_like(gate)}


def brain_floats(torch: Any) -> Buffers:
    a, b = (floats(torch, 4096, 4096) - 0.5).bfloat16(), (floats(torch, 4096, 14336) - 0.5).bfloat16()
    return {"a": a, "b": b, "c": torch.zeros(4096, 14336, device="cuda", dtype=torch.bfloat16)}


def _linear(torch: Any, buffers: Buffers) -> None:
    torch.matmul(buffers["x"], buffers["w"].t(), out=buffers["y"])


def _matmul(torch: Any, buffers: Buffers) -> None:
    torch.matmul(buffers["a"], buffers["b"], out=buffers["c"])


def _graph(prefix: str) -> Cuda:
    arguments = (f"{prefix}feature", f"{prefix}neighbour", f"{prefix}place", "mean")
    return Cuda("graph_neighbours", grid(NODES // COMMUNITY), grid(1024), arguments)


_CHUNK = Cuda("chunk_a_thread", grid(32 * MILLION // 8192), grid(256), ("x", "y"))
_FILTER = Cuda("recursive_filter", grid(SMS * 30), grid(128), ("x", "y"))
_SOLVER = Cuda("rare_solver", grid(8 * MILLION // 256), grid(256), ("x", "y", OUT_OF_RANGE))
_DELAY = Cuda("delay_line", grid(CHANNELS // 128), grid(128), ("x", "y", CHANNELS, 128))
_BOX = ("x", "y", "z", "corners", GROUPS)
_PAIRS = Cuda("vortex_pairs", grid(PARTICLES // 256), grid(256), ("particle", "vortex", "velocity", 512))
_PIXELS = ("x", "y", 0.875, 1024)
_RODS = ("x", "y", RODS, 64)
_BANDS = Cuda("fractal_bands", grid(SMS), grid(1024), ("y", 4096, SMS * 32, 256))
_HASH = Cuda("rolling_hash", grid(QUADS // 128), grid(128), ("x", "y", QUADS, 16, HASH_BASE, PRIME))

CASES = (
    KernelCase("chunk_a_thread", "uncoalesced", vectors(32 * MILLION), ("y",), _CHUNK, _CHUNK),
    KernelCase(
        "recursive_filter",
        "bank_conflicts",
        vectors(SMS * 30 * 128 * 64),
        ("y",),
        _FILTER,
        _FILTER,
        fixed_reasons=("healthy", "memory_bandwidth", "latency"),
    ),
    KernelCase("rare_solver", "low_occupancy", vectors(32 * MILLION), ("y",), _SOLVER, _SOLVER),
    KernelCase("delay_line", "spills", vectors(128 * CHANNELS), ("y",), _DELAY, _DELAY),
    KernelCase(
        "bounding_box",
        "atomics",
        points,
        ("corners",),
        Cuda("bounding_box", grid(GROUPS // 256), grid(256), _BOX),
        Cuda("bounding_box", grid(SMS * 8), grid(256), _BOX),
    ),
    KernelCase("vortex_pairs", "fp64", vortices, ("velocity",), _PAIRS, _PAIRS, tolerance=1e-4),
    KernelCase(
        "masked_pixels",
        "divergence",
        vectors(PIXELS),
        ("y",),
        Cuda("masked_pixels", grid(PIXELS // 256), grid(256), _PIXELS),
        Cuda("masked_pixels", grid(PIXELS // 4096), grid(256), _PIXELS),
    ),
    KernelCase(
        "weight_gradient",
        "small_grid",
        norm_rows,
        ("gradient",),
        triton("weight_gradient", "flawed"),
        triton("weight_gradient", "fixed"),
        tolerance=1e-4,
    ),
    KernelCase(
        "heated_rods",
        "tail",
        vectors(RODS * 1024),
        ("y",),
        Cuda("heated_rods", grid(RODS // 256), grid(1024), _RODS),
        Cuda("heated_rods", grid(SMS), grid(1024), _RODS),
    ),
    KernelCase("fractal_bands", "imbalance", picture, ("y",), _BANDS, _BANDS),
    KernelCase("graph_neighbours", "l2_misses", communities, ("mean",), _graph("shuffled_"), _graph("")),
    KernelCase(
        "linear_layer",
        "tensor_cores_unused",
        layer,
        ("y",),
        Cuda("linear_layer", grid(OUTPUTS // 128, TOKENS // 128), grid(256), ("x", "w", "y", INPUTS, OUTPUTS)),
        Call(_linear),
        fixed_reasons=("healthy", "compute_peak", "latency", "tail"),
        tolerance=1e-2,
    ),
    KernelCase("rolling_hash", "instruction_bound", words, ("y",), _HASH, _HASH),
    KernelCase(
        "trailing_average",
        "latency",
        vectors(ROWS * 65536),
        ("y",),
        Cuda("trailing_average", grid(ROWS), grid(1024), ("x", "y", 65536)),
        Cuda("trailing_average", grid(ROWS), grid(256), ("x", "y", 65536)),
    ),
)
CONTROLS = (
    KernelCase("fused_gate", "memory_bandwidth", gate_streams, ("y",), triton("fused_gate"), also=("healthy",)),
    KernelCase(
        "phasor_bank",
        "compute_peak",
        vectors(SMS * 64 * 256 * 4),
        ("y",),
        Cuda("phasor_bank", grid(SMS * 64), grid(256), ("x", "y", 0.99995, 0.01, 128)),
        also=("healthy",),
    ),
    KernelCase("torch_brain_matmul", "compute_peak", brain_floats, ("c",), Call(_matmul), also=("healthy",)),
)
