"""Cause `kernel`: precision, attention, fusion and grids that leave the GPU busy and slow."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted
from faults.programs.parts import compiled, weights


@planted("kernel", "tf32", also=("bf16",), trap=True, innocent="no_empty_cache")
def similarities_in_full_precision(torch: Any, fix: str | None) -> Step:
    """A contrastive loss multiplies images with texts in float32, and then calls `empty_cache` with nothing to free.

    Everything is written into tensors that exist already, so that the call finds no cached block and costs nothing. The
    matmuls run without tensor cores; in TF32 they need a fraction of the time.
    """
    if fix == "tf32":
        torch.backends.cuda.matmul.allow_tf32 = True
    dtype = torch.bfloat16 if fix == "bf16" else torch.float32
    images = torch.nn.functional.normalize(torch.randn(8192, 2048, device="cuda"), dim=-1).to(dtype)
    texts = torch.nn.functional.normalize(torch.randn(8192, 2048, device="cuda"), dim=-1).to(dtype)
    scores = torch.empty(8192, 8192, device="cuda", dtype=dtype)
    best = torch.empty(8192, device="cuda", dtype=dtype)

    def step() -> Any:
        torch.mm(images, texts.t(), out=scores)  # planted
        scores.mul_(20.0)
        torch.amax(scores, 1, out=best)
        if fix != "no_empty_cache":
            torch.cuda.empty_cache()
        return best

    return step


@planted("kernel", "sdpa", steps=4)
def attention_weights_nobody_reads(torch: Any, fix: str | None) -> Step:
    """`MultiheadAttention` is called as it comes, and returns the attention weights that nobody looks at.

    To have them it multiplies, normalises and averages whole matrices of scores in the forward pass and again in the
    backward one. With `need_weights=False` it calls the fused attention.
    """
    nn = torch.nn
    layers = nn.ModuleList(nn.MultiheadAttention(1024, 16, bias=False, batch_first=True) for _ in range(2))
    layers = layers.to("cuda", torch.bfloat16)
    batch = torch.randn(4, 2048, 1024, device="cuda", dtype=torch.bfloat16)

    def step() -> None:
        layers.zero_grad()
        x = batch
        for layer in layers:
            y, _ = layer(x, x, x, need_weights=fix is None)  # planted
            x = x + y
        x.float().square().mean().backward()

    return step


@planted("kernel", "torch_compile")
def rotary_positions_by_hand(torch: Any, fix: str | None) -> Step:
    """Queries and keys are rotated with halves, a sign, a concatenation, two multiplications and a sum.

    Each is a kernel that reads and writes the whole tensor. Compiled, the rotation reads it once and writes it once.
    """
    functional = torch.nn.functional
    heads, tokens, width = 16, 4096, 128
    angles = torch.randn(tokens, width, device="cuda")
    cosine, sine = angles.cos().to(torch.bfloat16), angles.sin().to(torch.bfloat16)
    queries, keys, values = torch.randn(3, 8, heads, tokens, width, device="cuda", dtype=torch.bfloat16).unbind(0)

    def rotated(x: Any) -> Any:
        left, right = x.chunk(2, -1)
        return x * cosine + torch.cat([-right, left], -1) * sine  # planted

    rotate = compiled(torch, rotated) if fix else rotated

    def step() -> Any:
        with torch.no_grad():
            near = functional.scaled_dot_product_attention(
                rotate(queries)[:, :, :512], rotate(keys), values, is_causal=False
            )
            return near + values[:, :, :512]

    return step


@planted("kernel", "even_out")
def one_relation_points_at_a_hub(torch: Any, fix: str | None) -> Step:
    """A graph network adds up the messages of six relations, and one of them has every edge lead to the same node.

    The other five spread their additions over all nodes; those of the sixth queue for one row, and its kernel takes
    many times as long. A sum over the edges gives the hub its row without a queue.
    """
    nodes, edges, width, hub = 65536, 262144, 64, 5
    features = torch.randn(nodes, width, device="cuda")
    mixes = weights(torch, 6, width, width)
    sources = torch.randint(0, nodes, (6, edges), device="cuda").unbind(0)
    targets = list(torch.randint(0, nodes, (6, edges), device="cuda").unbind(0))
    targets[hub] = torch.zeros_like(targets[hub])

    def step() -> Any:
        total = torch.zeros_like(features)
        for relation in range(6):
            messages = (features @ mixes[relation]).index_select(0, sources[relation])
            if fix and relation == hub:
                total[0] += messages.sum(0)
            else:
                total.index_add_(0, targets[relation], messages)  # planted
        return total

    return step


@planted("kernel", "fill_gpu", also=("torch_compile",))
def norm_over_whole_recordings(torch: Any, fix: str | None) -> Step:
    """A speech separator normalises four recordings, each as one group: `GroupNorm(1, channels)`.

    torch gives a group one block to add it up, so that four of the GPU's multiprocessors read everything. Added up by
    channel first and then over the channels, it keeps them all busy.
    """
    functional = torch.nn.functional
    channels, samples = 512, 16000
    (mix,) = weights(torch, 1, channels, channels, torch.bfloat16)
    gain, bias = torch.rand(channels, device="cuda"), torch.rand(channels, device="cuda")
    gain, bias = gain.to(torch.bfloat16), bias.to(torch.bfloat16)
    recordings = torch.randn(4, channels, samples, device="cuda", dtype=torch.bfloat16)

    def by_group(x: Any) -> Any:
        return functional.group_norm(x, 1, gain, bias, 1e-5)  # planted

    def by_channel(x: Any) -> Any:
        spread, mean = torch.var_mean(x.float(), 2, correction=0)
        middle = mean.mean(1, keepdim=True)
        spread = (spread + mean.square()).mean(1, keepdim=True) - middle.square()
        scale = torch.rsqrt(spread + 1e-5) * gain
        shift = bias - middle * scale
        return torch.addcmul(shift.to(x.dtype)[:, :, None], x, scale.to(x.dtype)[:, :, None])

    normalise = by_channel if fix == "fill_gpu" else by_group
    if fix == "torch_compile":
        normalise = compiled(torch, by_group)

    def step() -> Any:
        with torch.no_grad():
            x = recordings
            for _ in range(3):
                x = normalise(functional.relu(mix @ x))
            return x

    return step
