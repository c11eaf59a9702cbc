"""Cause `kernel`: tensors that lie in memory as the kernels do not like them."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted
from faults.programs.parts import weights


@planted("kernel", "pad")
def mixing_over_an_odd_number_of_tokens(torch: Any, fix: str | None) -> Step:
    """A mixer multiplies over its tokens, and with a class token there are 785 of them.

    Rows of an odd number of bfloat16 start at addresses that the fast kernels cannot load from. Seven tokens of zeros
    more, and they can.
    """
    functional = torch.nn.functional
    tokens, hidden, channels = 785, 3072, 32768
    (up,), (down,) = (
        weights(torch, 1, tokens, hidden, torch.bfloat16),
        weights(torch, 1, hidden, tokens, torch.bfloat16),
    )
    x = torch.randn(channels, tokens, device="cuda", dtype=torch.bfloat16)
    if fix:
        x, down = functional.pad(x, (0, 7)), functional.pad(down, (0, 7))
        up = functional.pad(up, (0, 0, 0, 7))

    def step() -> Any:
        return x + functional.gelu(x @ up) @ down  # planted

    return step


@planted("kernel", "channels_last")
def denoiser_channels_first(torch: Any, fix: str | None) -> Step:
    """An image denoiser is a chain of six convolutions at full resolution, with the channels first.

    cuDNN's kernels for tensor cores want the channels last, and turn every input and every output round. With images
    and filters kept that way nothing has to be turned.
    """
    functional = torch.nn.functional
    order = torch.channels_last if fix else torch.contiguous_format
    filters = [
        (torch.randn(64, 64, 3, 3, device="cuda") * 0.05).to(torch.bfloat16, memory_format=order) for _ in range(6)
    ]
    noisy = torch.randn(16, 64, 256, 256, device="cuda", dtype=torch.bfloat16).to(memory_format=order)

    def step() -> Any:
        with torch.no_grad():
            x = noisy
            for kernel in filters:
                x = functional.relu_(functional.conv2d(x, kernel, padding=1))  # planted
            return noisy - x

    return step
