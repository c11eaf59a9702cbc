"""A transformer layer in bfloat16 in four forms that compute the same: eager, CUDA graph, fused, compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from faults.programs.parts import compiled, graphed

EPSILON = 1e-6
Form = Callable[[], object]


def layer_forms(torch: Any, tiny: bool) -> dict[str, Callable[[], Form]]:
    """A builder of each form. The tiny ones run on the CPU, without a graph and without a compiler."""
    functional = torch.nn.functional
    width, inner, rows, heads = (64, 128, 16, 4) if tiny else (4096, 11008, 2048, 32)
    device = "cpu" if tiny else "cuda"

    def matrix(columns: int, lines: int) -> Any:
        return (torch.randn(columns, lines, device=device) * lines**-0.5).to(torch.bfloat16)

    torch.manual_seed(0)
    project, out = matrix(3 * width, width), matrix(width, width)
    gate, up, down = matrix(inner, width), matrix(inner, width), matrix(width, inner)
    scale = torch.ones(width, device=device, dtype=torch.bfloat16)
    x = torch.randn(1, rows, width, device=device).to(torch.bfloat16)

    def norm(x: Any) -> Any:
        wide = x.float()
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + EPSILON)).to(x.dtype) * scale

    def fused_norm(x: Any) -> Any:
        return functional.rms_norm(x, (width,), scale, EPSILON)

    def gated(gate: Any, up: Any) -> Any:
        return functional.silu(gate) * up

    def forward(norm: Callable[[Any], Any], gated: Callable[[Any, Any], Any]) -> Any:
        y = functional.linear(norm(x), project).unflatten(-1, (3, heads, -1)).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(y[0], y[1], y[2], is_causal=True)
        z = x + functional.linear(mixed.transpose(1, 2).flatten(2), out)
        n = norm(z)
        return z + functional.linear(gated(functional.linear(n, gate), functional.linear(n, up)), down)

    def eager() -> Any:
        return forward(norm, gated)

    def fused() -> Form:
        quick = gated if tiny else compiled(torch, gated)
        return without_gradients(torch, lambda: forward(fused_norm, quick))

    builders: dict[str, Callable[[], Form]] = {
        "eager": lambda: without_gradients(torch, eager),
        "graph": lambda: without_gradients(torch, eager if tiny else graphed(torch, eager)),
        "fused": fused,
        "compiled": lambda: without_gradients(torch, eager if tiny else compiled(torch, eager)),
    }
    return builders


def without_gradients(torch: Any, function: Form) -> Form:
    """The function as it runs for inference."""

    def run() -> object:
        with torch.no_grad():
            return function()

    return run
