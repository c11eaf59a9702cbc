"""Cause `kernel`, by fusion: many kernels that read and write what one could keep on the chip."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted
from faults.programs.parts import compiled


@planted("kernel", "sdpa")
def unfused_attention(torch: Any, fix: str | None) -> Step:
    """Attention written as matmul, scale, softmax and matmul.

    The scores of every pair of tokens go to memory and back three times; a fused kernel never writes them.
    """
    query, key, value = torch.randn(3, 4, 16, 2048, 64, device="cuda", dtype=torch.bfloat16).unbind(0)

    def step() -> Any:
        if fix:
            return torch.nn.functional.scaled_dot_product_attention(query, key, value)
        scores = query @ key.transpose(-1, -2)  # planted
        return torch.softmax(scores * 64**-0.5, -1) @ value  # planted

    return step


@planted("kernel", "sdpa")
def causal_attention_with_mask(torch: Any, fix: str | None) -> Step:
    """Causal attention by filling the upper half of the scores with minus infinity.

    Half of the matmuls are computed to be thrown away, and the mask is one more pass over the scores.
    """
    query, key, value = torch.randn(3, 2, 16, 2048, 128, device="cuda", dtype=torch.bfloat16).unbind(0)
    future = torch.ones(2048, 2048, device="cuda", dtype=torch.bool).triu(1)

    def step() -> Any:
        if fix:
            return torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        scores = (query @ key.transpose(-1, -2)) * 128**-0.5  # planted
        return torch.softmax(scores.masked_fill(future, float("-inf")), -1) @ value  # planted

    return step


@planted("kernel", "torch_compile")
def gelu_by_hand(torch: Any, fix: str | None) -> Step:
    """The GELU activation written out as nine pointwise operations on a large tensor.

    Each reads and writes the whole tensor; compiled, it is read once and written once.
    """
    x = torch.randn(16384, 4096, device="cuda", dtype=torch.bfloat16)
    tanh = torch.tanh

    def gelu(x: Any) -> Any:
        return 0.5 * x * (1.0 + tanh(0.7978845608 * (x + 0.044715 * x * x * x)))  # planted

    function = compiled(torch, gelu) if fix else gelu

    def step() -> Any:
        return function(x)

    return step


@planted("kernel", "torch_compile")
def norm_by_hand(torch: Any, fix: str | None) -> Step:
    """A layer norm written as mean, difference, variance, root and scale.

    Nine passes over the tensor where one would do.
    """
    x = torch.randn(16384, 4096, device="cuda")
    gain, bias = torch.randn(2, 4096, device="cuda").unbind(0)
    rsqrt = torch.rsqrt

    def norm(x: Any, gain: Any, bias: Any) -> Any:
        centred = x - x.mean(-1, keepdim=True)  # planted
        variance = (centred * centred).mean(-1, keepdim=True)  # planted
        return centred * rsqrt(variance + 1e-5) * gain + bias  # planted

    function = compiled(torch, norm) if fix else norm

    def step() -> Any:
        return function(x, gain, bias)

    return step


@planted("kernel", "fused_optimizer")
def adam_on_large_parameters(torch: Any, fix: str | None) -> Step:
    """Adam one parameter and one operation at a time, on parameters of 64 MiB.

    The GPU is busy throughout, moving moments and gradients in and out for each of seven operations; the fused
    kernel moves each of them once.
    """
    parameters = [torch.nn.Parameter(torch.randn(4096, 4096, device="cuda")) for _ in range(4)]
    for parameter in parameters:
        parameter.grad = torch.randn_like(parameter)
    optimizer = torch.optim.Adam(parameters, lr=1e-4, fused=bool(fix), foreach=False)

    def step() -> None:
        optimizer.step()  # planted

    return step
