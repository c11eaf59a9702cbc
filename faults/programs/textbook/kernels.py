"""Cause `kernel`: the GPU is busy, with kernels that do the work the slow way."""

from __future__ import annotations

import math
from typing import Any

from faults.programs.case import Step, planted
from faults.programs.parts import compiled


@planted("kernel", "tf32", also=("bf16",), innocent="pin_memory", trap=True)
def classifier_in_single_precision(torch: Any, fix: str | None) -> Step:
    """A wide classifier is trained in float32 without tensor cores, and gets its labels from pageable memory.

    The copy of the labels is easy to see and 32 kB small; pinning them changes nothing. The matmuls of both
    passes take all of the time, and TF32 takes most of it away.
    """
    nn = torch.nn
    batch, width, depth = 4096, 2048, 4
    model = nn.Sequential(*(nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(depth))).to("cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
    inputs = torch.randn(batch, width, device="cuda")
    labels = torch.randint(0, width, (batch,))
    if fix == "pin_memory":
        labels = labels.pin_memory()

    def step() -> Any:
        torch.backends.cuda.matmul.allow_tf32 = fix == "tf32"
        truth = labels.to("cuda", non_blocking=fix == "pin_memory")
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16, enabled=fix == "bf16"):
            scores = model(inputs)  # planted
        loss = nn.functional.cross_entropy(scores.float(), truth)
        loss.backward()  # planted
        optimizer.step()
        return loss.detach()

    return step


@planted("kernel", "channels_last")
def segmentation_in_the_default_layout(torch: Any, fix: str | None) -> Step:
    """A segmentation network runs in half precision with its images in PyTorch's default layout.

    Tensor cores want the channels last, so every convolution is surrounded by kernels that turn its images around.
    With images and filters in `channels_last` nothing has to be turned.
    """
    nn = torch.nn
    batch, channels, side = 32, 64, 128
    layers: list[Any] = []
    for _ in range(6):
        layers += [nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.ReLU(inplace=True)]
    model = nn.Sequential(*layers, nn.Conv2d(channels, 16, 1, bias=False)).to("cuda", torch.float16).eval()
    images = torch.randn(batch, channels, side, side, device="cuda", dtype=torch.float16)
    if fix:
        model = model.to(memory_format=torch.channels_last)
        images = images.to(memory_format=torch.channels_last)

    def step() -> Any:
        with torch.no_grad():
            return model(images)  # planted

    return step


@planted("kernel", "torch_compile")
def option_prices_in_separate_passes(torch: Any, fix: str | None) -> Step:
    """The Black-Scholes formula is evaluated for 16 million options, one operation after the other.

    Each of some twenty operations reads and writes whole arrays in memory. Compiled into one kernel, the formula
    reads its three inputs once and writes one result.
    """
    count = 16 * 2**20
    spot = torch.rand(count, device="cuda") * 50 + 75
    strike = torch.rand(count, device="cuda") * 50 + 75
    expiry = torch.rand(count, device="cuda") * 2 + 0.1

    def normal(x: Any) -> Any:
        return 0.5 * (1.0 + torch.erf(x * math.sqrt(0.5)))

    def call(spot: Any, strike: Any, expiry: Any) -> Any:
        deviation = 0.2 * torch.sqrt(expiry)
        upper = (torch.log(spot / strike) + 0.05 * expiry) / deviation
        discount = torch.exp(-0.03 * expiry)
        return spot * normal(upper) - strike * discount * normal(upper - deviation)

    price = compiled(torch, call) if fix else call

    def step() -> Any:
        return price(spot, strike, expiry)  # planted

    return step


@planted("kernel", "sdpa")
def cross_attention_spelled_out(torch: Any, fix: str | None) -> Step:
    """A decoder attends to 4096 encoded positions with a matmul, a scale, a softmax and another matmul.

    The scores of every pair go through memory five times. `scaled_dot_product_attention` never writes them.
    """
    batch, heads, queries, keys, size = 2, 16, 1024, 4096, 64
    q = torch.randn(batch, heads, queries, size, device="cuda", dtype=torch.float16)
    memories = [
        torch.randn(2, batch, heads, keys, size, device="cuda", dtype=torch.float16).unbind(0) for _ in range(3)
    ]

    def step() -> Any:
        x = q
        for k, v in memories:
            if fix:
                x = x + torch.nn.functional.scaled_dot_product_attention(x, k, v)
            else:
                scores = (x @ k.transpose(-2, -1)) * size**-0.5  # planted
                x = x + torch.softmax(scores, -1) @ v  # planted
        return x

    return step
