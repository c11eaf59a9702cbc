"""The built-in experiments: a few ops whose work is known, from a single launch to attention."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from warpline.bench.matmuls import NAMES, multiplication, operands
from warpline.bench.work import CallWork
from warpline.errors import CannotAnswer, UsageError

SUFFIXES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
SIZES = {"fp64": 8, "fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2, "fp8": 1, "int8": 1}
OUT_SIZES = {"fp8": 2, "int8": 4}
"""Matmuls whose result type differs from the operands: bf16 and int32."""
FLOATS = ("fp32", "bf16", "fp16")


@dataclass(frozen=True, slots=True)
class Prepared:
    """An experiment ready to be timed."""

    name: str
    function: Callable[..., object]
    args: tuple[Any, ...]
    work: CallWork


Shape = tuple[int, ...]
Prepare = Callable[[Any, Shape, str, str], Prepared]


@dataclass(frozen=True, slots=True)
class Experiment:
    """One experiment."""

    name: str
    summary: str
    dimensions: str
    """What the numbers of a shape mean."""
    shape: Shape
    """The default shape."""
    dtypes: tuple[str, ...]
    """The data types; the first is the default."""
    prepare: Prepare
    library: str = ""
    """The library that the first call loads, for the cold-start table."""
    others: Callable[[Any, Prepared], list[Prepared]] | None = None
    """Other ways to do the same work, which are timed too."""


def _matmul(torch: Any, shape: Shape, dtype: str, device: str) -> Prepared:
    rows, columns, depth = shape
    pair = operands(torch, dtype, (rows, columns, depth), device, transposed=False)
    moved = SIZES[dtype] * (rows * depth + depth * columns) + OUT_SIZES.get(dtype, SIZES[dtype]) * rows * columns
    work = CallWork(2.0 * rows * columns * depth, moved, dtype)
    return Prepared("matmul", multiplication(torch, dtype, device), pair, work)


def _tiles(torch: Any, library: Prepared) -> list[Prepared]:
    """The same matmul in Triton, tile by tile."""
    try:
        from warpline.bench.tiles import tile_calls  # noqa: PLC0415 - needs Triton
    except ImportError as error:
        raise CannotAnswer("no-triton", "tiles are tried in Triton, which is not installed", "bench matmul") from error
    if not library.args[0].is_cuda:
        raise CannotAnswer("no-gpu", "tiles are tried on a CUDA device, and torch finds none", "bench matmul")
    return [Prepared(name, call, library.args, library.work) for name, call in tile_calls(torch, *library.args)]


def _copy(torch: Any, shape: Shape, dtype: str, device: str) -> Prepared:
    source = _random(torch, shape, dtype, device)
    target = torch.empty_like(source)
    moved = CallWork(0.0, 2.0 * SIZES[dtype] * math.prod(shape), dtype)
    return Prepared("copy", torch.Tensor.copy_, (target, source), moved)


def _add(torch: Any, shape: Shape, dtype: str, device: str) -> Prepared:
    pair = (_random(torch, shape, dtype, device), _random(torch, shape, dtype, device))
    return Prepared("add", torch.add, pair, CallWork(0.0, 3.0 * SIZES[dtype] * math.prod(shape), dtype))


def _softmax(torch: Any, shape: Shape, dtype: str, device: str) -> Prepared:
    values = _random(torch, shape, dtype, device)
    moved = CallWork(0.0, 2.0 * SIZES[dtype] * math.prod(shape), dtype)
    return Prepared("softmax", lambda x: torch.softmax(x, -1), (values,), moved)


def _layernorm(torch: Any, shape: Shape, dtype: str, device: str) -> Prepared:
    values, columns = _random(torch, shape, dtype, device), shape[-1:]
    weight, bias = _random(torch, columns, dtype, device), _random(torch, columns, dtype, device)
    moved = SIZES[dtype] * (2.0 * math.prod(shape) + 2 * columns[0])
    norm = torch.nn.functional.layer_norm
    return Prepared("layernorm", lambda x: norm(x, columns, weight, bias), (values,), CallWork(0.0, moved, dtype))


def _attention(torch: Any, shape: Shape, dtype: str, device: str) -> Prepared:
    batch, heads, length, width = shape
    triple = tuple(_random(torch, shape, dtype, device) for _ in range(3))
    work = CallWork(4.0 * batch * heads * length**2 * width, 4.0 * SIZES[dtype] * math.prod(shape), dtype)
    return Prepared("attention", torch.nn.functional.scaled_dot_product_attention, triple, work)


def _launch(torch: Any, shape: Shape, dtype: str, device: str) -> Prepared:
    value = _random(torch, shape, dtype, device)
    return Prepared(
        "launch", torch.Tensor.add_, (value, 1), CallWork(0.0, 2.0 * SIZES[dtype] * math.prod(shape), dtype)
    )


EXPERIMENTS = {
    experiment.name: experiment
    for experiment in (
        Experiment(
            "matmul",
            "a matmul (cuBLAS)",
            "M x N x K",
            (4096, 4096, 4096),
            ("fp32", "tf32", "bf16", "fp16", "fp64", "fp8", "int8"),
            _matmul,
            library="cuBLAS",
        ),
        Experiment(
            "tiles",
            "a matmul by cuBLAS, and in Triton by several tiles",
            "M x N x K",
            (4096, 4096, 4096),
            ("bf16", "fp16"),
            _matmul,
            library="cuBLAS",
            others=_tiles,
        ),
        Experiment(
            "attention",
            "scaled dot-product attention, not causal",
            "batch x heads x length x head dimension",
            (4, 16, 2048, 128),
            ("bf16", "fp16"),
            _attention,
        ),
        Experiment("softmax", "softmax over rows", "rows x columns", (8192, 8192), FLOATS, _softmax),
        Experiment("layernorm", "layer norm over rows", "rows x columns", (8192, 8192), FLOATS, _layernorm),
        Experiment("add", "sum of two vectors", "elements", (64 << 20,), FLOATS, _add),
        Experiment("copy", "copy within the device", "elements", (256 << 20,), FLOATS, _copy),
        Experiment("launch", "the smallest kernel: the cost of a launch", "elements", (1,), FLOATS, _launch),
    )
}


def listed() -> dict[str, Any]:
    """The experiments as a document of schema `warpline.experiments/1`."""
    rows = [
        {
            "name": experiment.name,
            "summary": experiment.summary,
            "dimensions": experiment.dimensions,
            "shape": list(experiment.shape),
            "dtypes": list(experiment.dtypes),
        }
        for experiment in EXPERIMENTS.values()
    ]
    return {"schema": "warpline.experiments/1", "experiments": rows}


def forms(experiment: Experiment, torch: Any, shape: Shape, dtype: str, device: str) -> list[Prepared]:
    """Every way to do the experiment's work; most have one."""
    first = prepare(experiment, torch, shape, dtype, device)
    if experiment.others is None:
        return [first]
    return [replace(first, name=f"{experiment.library}, {first.name}"), *experiment.others(torch, first)]


def prepare(experiment: Experiment, torch: Any, shape: Shape, dtype: str, device: str) -> Prepared:
    """The experiment with random inputs, because zeros run faster; its name includes their shape and type."""
    if dtype not in experiment.dtypes:
        known = ", ".join(experiment.dtypes)
        raise UsageError("bad-dtype", f"{experiment.name} is not done in {dtype!r}", f"one of {known}")
    ready = experiment.prepare(torch, shape, dtype, device)
    name = f"{experiment.name} {'x'.join(map(str, shape))} {dtype}"
    return Prepared(name, ready.function, ready.args, ready.work)


def shape_of(experiment: Experiment, text: str | None) -> Shape:
    """Parse a shape such as 4096, 4096x4096x11008 or 64M; one number sets all dimensions."""
    if text is None:
        return experiment.shape
    wanted = len(experiment.shape)
    parts = re.split(r"[x×,]", text.strip(), flags=re.IGNORECASE)
    sizes = [_size(part) for part in parts]
    if len(sizes) == 1 and experiment.name != "attention":
        sizes *= wanted
    if len(sizes) != wanted or any(size is None or size < 1 for size in sizes):
        message = f"{text!r} is not a valid shape for {experiment.name} ({experiment.dimensions})"
        raise UsageError("bad-shape", message, f"as {'x'.join(map(str, experiment.shape))}")
    return tuple(size for size in sizes if size is not None)


@contextlib.contextmanager
def precision(torch: Any, dtype: str) -> Iterator[None]:
    """Run fp32 matmuls in fp32, or in TF32 if requested, whatever the program's setting."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if dtype == "tf32" else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def _random(torch: Any, shape: Sequence[int], dtype: str, device: str) -> Any:
    return torch.randn(*shape, device=device, dtype=getattr(torch, NAMES[dtype]))


def _size(text: str) -> int | None:
    match = re.fullmatch(r"(\d+)([KMG]?)", text.strip().upper())
    return int(match[1]) * SUFFIXES[match[2]] if match else None
