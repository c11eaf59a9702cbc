"""A transformer layer without its attention, as one of the guides profiles it: two norms, five matmuls, SiLU and mul.

Every form computes the same, so that only the way in which it runs differs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from warpline.errors import CannotAnswer
from warpline.lab.workbench import Step, Workbench

Mlp = Callable[["Layer", Any], Any]


@dataclass(frozen=True, slots=True)
class Layer:
    """The weights."""

    torch: Any
    hidden: int
    wide: int
    norm: Any
    norm_bias: Any
    qkv: Any
    out: Any
    gate: Any
    up: Any
    gate_up: Any
    """Gate and up in one matrix."""
    down: Any

    def __call__(self, x: Any, mlp: Mlp) -> Any:
        """One pass; `mlp` is the form of the part between the second norm and the down projection."""
        functional = self.torch.nn.functional
        h = functional.layer_norm(x, (self.hidden,), self.norm, self.norm_bias)
        qkv = functional.linear(h, self.qkv)
        h = x + functional.linear(qkv[..., : self.hidden], self.out)
        n = functional.layer_norm(h, (self.hidden,), self.norm, self.norm_bias)
        return h + functional.linear(mlp(self, n), self.down)

    @property
    def weights(self) -> tuple[Any, ...]:
        """All tensors that stay where they are from pass to pass."""
        return self.norm, self.norm_bias, self.qkv, self.out, self.gate, self.up, self.gate_up, self.down

    def flops(self, tokens: int) -> float:
        """Of one pass."""
        return 2.0 * tokens * self.hidden * (4 * self.hidden + 3 * self.wide)

    def weight_bytes(self) -> float:
        """Of the matrices, which every pass reads."""
        return float(self.qkv.element_size()) * self.hidden * (4 * self.hidden + 3 * self.wide)


def make_layer(lab: Workbench) -> Layer:
    """The layer with the guide's sizes: hidden 4,096, FFN 11,008."""
    hidden, wide = lab.sized(4096, 256), lab.sized(11008, 688)

    def weight(rows: int, columns: int) -> Any:
        return lab.random(rows, columns, dtype="float16", scale=columns**-0.5)

    gate_up = weight(2 * wide, hidden)
    norm = lab.random(hidden, dtype="float16"), lab.random(hidden, dtype="float16")
    square, gate, up = weight(hidden, hidden), gate_up[:wide].clone(), gate_up[wide:].clone()
    return Layer(
        lab.torch, hidden, wide, *norm, weight(3 * hidden, hidden), square, gate, up, gate_up, weight(hidden, wide)
    )


def plain(layer: Layer, n: Any) -> Any:
    """Two matmuls, SiLU, mul: four kernels."""
    functional = layer.torch.nn.functional
    return functional.silu(functional.linear(n, layer.gate)) * functional.linear(n, layer.up)


def fused(layer: Layer, n: Any) -> Any:
    """SiLU and mul in one Triton kernel."""
    functional = layer.torch.nn.functional
    return _silu_mul()(functional.linear(n, layer.gate), functional.linear(n, layer.up))


def one_matmul(layer: Layer, n: Any) -> Any:
    """Gate and up as one matmul, then SiLU and mul in plain torch."""
    functional = layer.torch.nn.functional
    gate, up = functional.linear(n, layer.gate_up).chunk(2, dim=-1)
    return functional.silu(gate) * up


def one_matmul_fused(layer: Layer, n: Any) -> Any:
    """Gate and up as one matmul, then SiLU and mul in one Triton kernel."""
    return _silu_mul()(*layer.torch.nn.functional.linear(n, layer.gate_up).chunk(2, dim=-1))


def two_streams(side: Any) -> Mlp:
    """Gate and up side by side on two streams, then SiLU and mul in one Triton kernel."""

    def mlp(layer: Layer, n: Any) -> Any:
        torch, functional = layer.torch, layer.torch.nn.functional
        here = torch.cuda.current_stream()
        side.wait_stream(here)
        with torch.cuda.stream(side):
            up = functional.linear(n, layer.up)
        gate = functional.linear(n, layer.gate)
        here.wait_stream(side)
        return _silu_mul()(gate, up)

    return mlp


def as_graph(lab: Workbench, step: Step) -> Step:
    """The step captured in a CUDA graph."""
    torch = lab.torch
    if not lab.has_gpu:
        raise CannotAnswer("no-gpu", "a CUDA graph needs a GPU")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def _silu_mul() -> Callable[[Any, Any], Any]:
    try:
        from warpline.lab.kernels.silu_mul import run  # noqa: PLC0415 - needs Triton
    except ImportError as error:
        raise CannotAnswer("no-triton", "the fused kernel needs Triton, which is not installed") from error
    return run
