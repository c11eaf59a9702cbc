"""Cause `kernel`: number formats, layouts, alignment and passes over memory, in models of several kinds."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted
from faults.programs.parts import compiled, weights


@planted("kernel", "tf32", also=("bf16",))
def double_from_numpy(torch: Any, fix: str | None) -> Step:
    """Means and deviations that came from NumPy are float64, and so is everything that they touch.

    The model was made float64 too, because matmuls refuse mixed types. Nothing in it needs more than float32.
    """
    torch.backends.cuda.matmul.allow_tf32 = fix == "tf32"
    dtype = {None: torch.float64, "tf32": torch.float32, "bf16": torch.bfloat16}[fix]
    (up,), (down,) = weights(torch, 1, 2048, 4096, dtype), weights(torch, 1, 4096, 2048, dtype)
    x = torch.randn(4096, 2048, device="cuda")
    means, deviations = (torch.rand(2, 2048, device="cuda") + 0.5).to(dtype).unbind(0)

    def step() -> Any:
        y = ((x - means) / deviations).to(dtype)  # planted
        return torch.relu(y @ up) @ down  # planted

    return step


@planted("kernel", "sdpa")
def attention_with_a_bias(torch: Any, fix: str | None) -> Step:
    """Cross attention with a bias for each pair of positions: matmul, scale, bias, softmax, matmul.

    The fused kernel takes the bias as a mask and never writes the scores.
    """
    heads, asked, kept = 16, 2048, 1024
    query = torch.randn(4, heads, asked, 64, device="cuda", dtype=torch.bfloat16)
    key, value = torch.randn(2, 4, heads, kept, 64, device="cuda", dtype=torch.bfloat16).unbind(0)
    places = torch.arange(asked, device="cuda") * (kept / asked)
    distance = (places[:, None] - torch.arange(kept, device="cuda")).abs()
    slopes = torch.logspace(-4, -11, heads, base=2.0, device="cuda")
    bias = (-slopes[:, None, None] * distance).to(torch.bfloat16).unsqueeze(0)

    def step() -> Any:
        if fix:
            return torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=bias)
        scores = (query @ key.transpose(-1, -2)) * 0.125 + bias  # planted
        return torch.softmax(scores, -1) @ value  # planted

    return step


@planted("kernel", "torch_compile")
def smoothed_loss_by_hand(torch: Any, fix: str | None) -> Step:
    """A cross entropy with smoothed labels, written out over 512 MiB of logits.

    Largest, difference, exponential, sum, logarithm and mean each pass over all of them; compiled, two passes do.
    """
    logits = torch.randn(4096, 32768, device="cuda")
    labels = torch.randint(0, 32768, (4096, 1), device="cuda")

    def loss(logits: Any, labels: Any) -> Any:
        shifted = logits - logits.amax(-1, keepdim=True)  # planted
        chances = shifted - shifted.exp().sum(-1, keepdim=True).log()  # planted
        return (-0.9 * chances.gather(1, labels).squeeze(1) - 0.1 * chances.mean(-1)).mean()  # planted

    function = compiled(torch, loss) if fix else loss

    def step() -> Any:
        return function(logits, labels)

    return step


@planted("kernel", "channels_last", steps=4)
def residual_network_channels_first(torch: Any, fix: str | None) -> Step:
    """Forward and backward through three residual blocks with batch norm, in bfloat16, laid out channels first.

    Every convolution turns its input, its output and both gradients around for the tensor cores.
    """
    nn = torch.nn
    layout = torch.channels_last if fix else torch.contiguous_format

    def branch() -> Any:
        layers = (nn.Conv2d(128, 128, 3, padding=1, bias=False), nn.BatchNorm2d(128), nn.ReLU())
        return nn.Sequential(*layers, nn.Conv2d(128, 128, 3, padding=1, bias=False), nn.BatchNorm2d(128))

    branches = [branch().to("cuda", torch.bfloat16, memory_format=layout) for _ in range(3)]
    parameters = [parameter for branch in branches for parameter in branch.parameters()]
    images = torch.randn(128, 128, 28, 28, device="cuda", dtype=torch.bfloat16).to(memory_format=layout)
    towards = torch.randn_like(images)

    def step() -> None:
        for parameter in parameters:
            parameter.grad = None
        y = images
        for branch in branches:
            y = torch.relu(y + branch(y))  # planted
        y.backward(towards)  # planted

    return step


@planted("kernel", "pad")
def features_of_an_odd_width(torch: Any, fix: str | None) -> Step:
    """A recommender joins 13 numbers and an embedding of 416 into rows of 429, in bfloat16.

    Rows of an odd length cannot be read in wide loads, so the first matmul gets a slow kernel. Three columns of
    zeros make them 432.
    """
    rows, items, width = 65536, 100_000, 416
    zeros = 3 if fix else 0
    table = torch.randn(items, width, device="cuda", dtype=torch.bfloat16)
    picks = torch.randint(0, items, (rows,), device="cuda")
    numbers = torch.randn(rows, 13, device="cuda", dtype=torch.bfloat16)
    padding = torch.zeros(rows, zeros, device="cuda", dtype=torch.bfloat16)
    (first,), (second,) = (
        weights(torch, 1, 13 + width, 1024, torch.bfloat16),
        weights(torch, 1, 1024, 256, torch.bfloat16),
    )
    first = torch.nn.functional.pad(first, (0, 0, 0, zeros))

    def step() -> Any:
        found = torch.nn.functional.embedding(picks, table)
        features = torch.cat((numbers, found, padding), 1)
        return torch.relu(features @ first) @ second  # planted

    return step


@planted("kernel", "tf32", also=("bf16",), innocent="fused_optimizer", trap=True, steps=4)
def optimizer_behind_slow_products(torch: Any, fix: str | None) -> Step:
    """AdamW walks over its parameters one by one, after a backward pass in float32 without tensor cores.

    The launches look guilty, but the CPU makes them while the GPU is still busy with matmuls: the matmuls are the
    step.
    """
    nn = torch.nn
    torch.backends.cuda.matmul.allow_tf32 = fix == "tf32"
    dtype = torch.bfloat16 if fix == "bf16" else torch.float32
    layers = [layer for _ in range(4) for layer in (nn.Linear(2048, 2048, bias=False), nn.ReLU())]
    model = nn.Sequential(*layers).to("cuda", dtype)
    fused = {"fused": True} if fix == "fused_optimizer" else {"foreach": False}
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, **fused)
    x = torch.randn(8192, 2048, device="cuda", dtype=dtype)
    towards = torch.randn_like(x)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        model(x).backward(towards)  # planted
        optimizer.step()

    return step
