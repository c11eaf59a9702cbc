"""Matrix FLOPs against PyTorch's own FlopCounterMode, op by op; where they differ, the reason is part of the case."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from warpline.trace.open import open_trace
from warpline.work import Argument, OpCall, Tensor, call_from_kineto, work_of

torch = pytest.importorskip("torch")

KINETO_TYPES = {
    "float32": "fp32",
    "float64": "fp64",
    "float16": "fp16",
    "bfloat16": "bf16",
    "int64": "int64",
    "int32": "int32",
    "int8": "int8",
    "float8_e4m3fn": "fp8",
    "bool": "bool",
    "uint8": "uint8",
}


def meta(*shape: int, dtype: str = "bfloat16", grad: bool = False) -> Any:
    tensor = torch.empty(*shape, device="meta", dtype=getattr(torch, dtype))
    return tensor.requires_grad_() if grad else tensor


def as_argument(value: Any) -> Argument:
    """An argument as Kineto records it."""
    if isinstance(value, torch.Tensor):
        tensor = Tensor(
            tuple(value.shape), KINETO_TYPES[str(value.dtype).removeprefix("torch.")], tuple(value.stride())
        )
        return Argument("tensor", tensor)
    if isinstance(value, list | tuple) and value and isinstance(value[0], torch.Tensor):
        return Argument("TensorList", tensors=tuple(as_argument(item).tensor for item in value))
    if value is None:
        return Argument("")
    return Argument("Scalar", text=str(list(value)) if isinstance(value, list | tuple) else str(value))


def recorder(calls: list[OpCall]) -> Any:
    dispatch = import_module("torch.utils._python_dispatch")

    class Recorder(dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            given = dict(kwargs or {})
            values = list(args)
            for argument in func._schema.arguments[len(values) :]:
                if argument.kwarg_only and argument.name not in given:
                    continue
                values.append(given.get(argument.name, argument.default_value))
            calls.append(OpCall(func._schema.name, tuple(as_argument(value) for value in values)))
            return func(*args, **(kwargs or {}))

    return Recorder()


def count(run: Callable[[], Any]) -> tuple[int, int]:
    """FLOPs as torch counts them, and as we do."""
    flop_counter = import_module("torch.utils.flop_counter")
    calls: list[OpCall] = []
    with flop_counter.FlopCounterMode(display=False) as counter, recorder(calls):
        run()
    ours = sum(work.matrix_flops for call in calls if (work := work_of(call)) is not None)
    return counter.get_total_flops(), ours


@dataclass(frozen=True)
class Case:
    name: str
    run: Callable[[], Any]
    ratio: Fraction = Fraction(1)
    """Ours over torch's."""
    why: str = ""


def conv(dims: int, x: tuple[int, ...], w: tuple[int, ...], **options: Any) -> Callable[[], Any]:
    return lambda: getattr(torch.nn.functional, f"conv{dims}d")(meta(*x), meta(*w), **options)


def conv_and_back(dims: int, x: tuple[int, ...], w: tuple[int, ...], **options: Any) -> Callable[[], Any]:
    def run() -> None:
        function = getattr(torch.nn.functional, f"conv{dims}d")
        function(meta(*x, grad=True), meta(*w, grad=True), **options).sum().backward()

    return run


def transposed(x: tuple[int, ...], w: tuple[int, ...], *, back: bool = False, **options: Any) -> Callable[[], Any]:
    def run() -> None:
        out = torch.nn.functional.conv_transpose2d(meta(*x, grad=back), meta(*w, grad=back), **options)
        if back:
            out.sum().backward()

    return run


def attention(kind: str, q: tuple[int, ...], k: tuple[int, ...], *, causal: bool = False) -> Callable[[], Any]:
    def run() -> Any:
        query, key, value = meta(*q), meta(*k), meta(*k)
        if kind == "flash":
            return torch.ops.aten._scaled_dot_product_flash_attention(query, key, value, 0.0, causal)
        if kind == "efficient":
            return torch.ops.aten._scaled_dot_product_efficient_attention(query, key, value, None, True, 0.0, causal)
        return torch.ops.aten._scaled_dot_product_cudnn_attention(query, key, value, None, True, 0.0, causal)

    return run


def attention_back(kind: str, q: tuple[int, ...], k: tuple[int, ...], *, causal: bool = False) -> Callable[[], Any]:
    def run() -> Any:
        query, key, value, out = meta(*q), meta(*k), meta(*k), meta(*q)
        statistics = meta(*q[:3], dtype="float32")
        number = meta(1, dtype="int64")
        if kind == "flash":
            return torch.ops.aten._scaled_dot_product_flash_attention_backward(
                out, query, key, value, out, statistics, None, None, q[2], k[2], 0.0, causal, number, number
            )
        return torch.ops.aten._scaled_dot_product_efficient_attention_backward(
            out, query, key, value, None, out, statistics, number, number, 0.0, [True, True, True, False], causal
        )

    return run


def linear_and_back() -> None:
    torch.nn.functional.linear(meta(8, 128, 512, grad=True), meta(256, 512, grad=True), meta(256)).sum().backward()


def half(size: int) -> Fraction:
    """Pairs under a causal mask, over all pairs."""
    return Fraction(size + 1, 2 * size)


MASKED = "torch counts the pairs that a causal mask hides"
GROUPED = "torch counts a grouped convolution's weight gradient as if it had one group"
CASES = [
    Case("mm", lambda: torch.mm(meta(64, 32), meta(32, 16))),
    Case("mm, one row", lambda: torch.mm(meta(1, 4096), meta(4096, 11008))),
    Case("mm, transposed", lambda: torch.mm(meta(64, 32), meta(16, 32).t())),
    Case("mm, fp32", lambda: torch.mm(meta(8, 8, dtype="float32"), meta(8, 8, dtype="float32"))),
    Case("mm, empty", lambda: torch.mm(meta(0, 8), meta(8, 4))),
    Case("addmm", lambda: torch.addmm(meta(16), meta(64, 32), meta(32, 16))),
    Case("addmm, full addend", lambda: torch.addmm(meta(64, 16), meta(64, 32), meta(32, 16), beta=0.5)),
    Case("bmm", lambda: torch.bmm(meta(4, 64, 32), meta(4, 32, 16))),
    Case("bmm, expanded", lambda: torch.bmm(meta(4, 64, 32), meta(1, 32, 16).expand(4, 32, 16))),
    Case("baddbmm", lambda: torch.baddbmm(meta(4, 64, 16), meta(4, 64, 32), meta(4, 32, 16))),
    Case("linear", lambda: torch.nn.functional.linear(meta(8, 128, 512), meta(256, 512), meta(256))),
    Case("linear and gradients", linear_and_back),
    Case("matmul, 4-D", lambda: meta(2, 3, 16, 8) @ meta(2, 3, 8, 4)),
    Case("matmul, broadcast", lambda: meta(2, 3, 16, 8) @ meta(8, 4)),
    Case("einsum", lambda: torch.einsum("bij,bjk->bik", meta(4, 8, 16), meta(4, 16, 8))),
    Case("einsum, attention scores", lambda: torch.einsum("bhqd,bhkd->bhqk", meta(2, 4, 8, 16), meta(2, 4, 8, 16))),
    Case("einsum, one matrix", lambda: torch.einsum("bsi,ij->bsj", meta(4, 8, 16), meta(16, 32))),
    Case(
        "_scaled_mm, fp8",
        lambda: torch._scaled_mm(
            meta(64, 32, dtype="float8_e4m3fn"),
            meta(16, 32, dtype="float8_e4m3fn").t(),
            meta(1, dtype="float32"),
            meta(1, dtype="float32"),
            out_dtype=torch.bfloat16,
        ),
    ),
    Case("conv1d", conv(1, (4, 8, 100), (16, 8, 5))),
    Case("conv2d", conv(2, (4, 8, 32, 32), (16, 8, 3, 3))),
    Case("conv2d, padding", conv(2, (4, 8, 32, 32), (16, 8, 3, 3), padding=1)),
    Case("conv2d, stride", conv(2, (4, 3, 224, 224), (64, 3, 7, 7), stride=2, padding=3)),
    Case("conv2d, dilation", conv(2, (4, 8, 32, 32), (16, 8, 3, 3), dilation=2)),
    Case("conv2d, groups", conv(2, (4, 8, 32, 32), (16, 2, 3, 3), groups=4)),
    Case("conv2d, depthwise", conv(2, (4, 8, 32, 32), (8, 1, 3, 3), groups=8, padding=1)),
    Case("conv2d, patches", conv(2, (1, 3, 1008, 1008), (1024, 3, 14, 14), stride=14)),
    Case("conv2d, uneven", conv(2, (2, 4, 31, 17), (8, 4, 5, 3), stride=(2, 1), padding=(2, 0))),
    Case("conv3d", conv(3, (2, 4, 8, 16, 16), (8, 4, 3, 3, 3), padding=1)),
    Case("conv2d and gradients", conv_and_back(2, (4, 8, 32, 32), (16, 8, 3, 3))),
    Case("conv2d and gradients, stride", conv_and_back(2, (4, 8, 32, 32), (16, 8, 3, 3), stride=2, padding=1)),
    Case("conv1d and gradients", conv_and_back(1, (4, 8, 64), (16, 8, 3), padding=1)),
    Case(
        "conv2d and gradients, groups",
        conv_and_back(2, (4, 8, 32, 32), (16, 2, 3, 3), groups=4),
        Fraction(3, 2 + 4),
        GROUPED,
    ),
    Case("conv_transpose2d", transposed((4, 16, 16, 16), (16, 8, 3, 3))),
    Case("conv_transpose2d, stride", transposed((4, 16, 16, 16), (16, 8, 4, 4), stride=2, padding=1)),
    Case("conv_transpose2d and gradients", transposed((4, 16, 16, 16), (16, 8, 3, 3), back=True, stride=2)),
    Case("flash", attention("flash", (2, 8, 128, 64), (2, 8, 128, 64))),
    Case("flash, longer keys", attention("flash", (2, 8, 1, 64), (2, 8, 512, 64))),
    Case("flash, grouped heads", attention("flash", (2, 8, 128, 64), (2, 2, 128, 64))),
    Case("flash, causal", attention("flash", (2, 8, 128, 64), (2, 8, 128, 64), causal=True), half(128), MASKED),
    Case("efficient", attention("efficient", (2, 8, 128, 64), (2, 8, 128, 64))),
    Case("efficient, causal", attention("efficient", (1, 4, 64, 32), (1, 4, 64, 32), causal=True), half(64), MASKED),
    Case("cudnn", attention("cudnn", (2, 8, 128, 64), (2, 8, 128, 64))),
    Case("cudnn, causal", attention("cudnn", (2, 8, 1024, 64), (2, 8, 1024, 64), causal=True), half(1024), MASKED),
    Case("flash backward", attention_back("flash", (2, 8, 128, 64), (2, 8, 128, 64))),
    Case(
        "flash backward, causal",
        attention_back("flash", (2, 8, 128, 64), (2, 8, 128, 64), causal=True),
        half(128),
        MASKED,
    ),
    Case("efficient backward", attention_back("efficient", (2, 8, 128, 64), (2, 8, 128, 64))),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_matrix_flops_are_those_of_flop_counter_mode(case: Case) -> None:
    theirs, ours = count(case.run)
    assert theirs > 0 or "empty" in case.name
    assert Fraction(ours) == case.ratio * theirs, case.why
    assert (case.ratio == 1) == (not case.why)


def test_the_table_has_at_least_forty_cases() -> None:
    assert len(CASES) >= 40


def test_what_the_profiler_records_gives_the_same(tmp_path: Path) -> None:
    profiler, flop_counter = import_module("torch.profiler"), import_module("torch.utils.flop_counter")
    layer = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.Linear(128, 64, bias=False))
    with flop_counter.FlopCounterMode(display=False) as counter:
        layer(torch.randn(32, 64)).sum().backward()
    with profiler.profile(activities=[profiler.ProfilerActivity.CPU], record_shapes=True) as profile:
        layer(torch.randn(32, 64)).sum().backward()
    path = tmp_path / "trace.json"
    profile.export_chrome_trace(str(path))
    columns = ("name", "shapes", "dtypes", "strides", "concrete")
    ops = open_trace(path).ops.stored.select(pl.col(column).cast(pl.String) for column in columns)
    inner = [call_from_kineto(*row) for row in ops.iter_rows() if row[0] in {"aten::mm", "aten::addmm", "aten::bmm"}]
    works = [work_of(op) for op in inner]
    assert all(work is not None for work in works)
    assert sum(work.matrix_flops for work in works if work is not None) == counter.get_total_flops()
