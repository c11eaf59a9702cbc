"""Cause `dispatch`: the CPU cannot launch fast enough, and the GPU waits for it between small kernels."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted
from faults.programs.parts import compiled, graphed, weights


@planted("dispatch", "cuda_graph")
def small_mlp_training(torch: Any, fix: str | None) -> Step:
    """A training step of a small MLP, launched kernel by kernel.

    Forward, backward and SGD are about thirty launches of kernels of two microseconds each; nothing in the step
    depends on the CPU, so one graph launch can replace them all.
    """
    nn = torch.nn
    model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    images, labels = torch.randn(64, 256, device="cuda"), torch.randint(0, 10, (64,), device="cuda")

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(model(images), labels)  # planted
        loss.backward()  # planted
        optimizer.step()  # planted

    return graphed(torch, step) if fix == "cuda_graph" else step


@planted("dispatch", "cuda_graph", steps=4)
def token_decode(torch: Any, fix: str | None) -> Step:
    """Two layers of a small transformer make one token, launched kernel by kernel.

    At one token of batch 4 every kernel is a few microseconds and the CPU takes longer to launch it. Shapes and
    addresses stay the same from token to token, so a graph is safe.
    """
    hidden, heads, context = 512, 8, 128
    attention = torch.nn.functional.scaled_dot_product_attention
    layers = [
        (*weights(torch, 1, hidden, 3 * hidden), *weights(torch, 1, hidden, hidden), *weights(torch, 1, hidden, 2048))
        for _ in range(2)
    ]
    downs = weights(torch, 2, 2048, hidden)
    keys = torch.randn(2, 4, heads, context, hidden // heads, device="cuda")
    values = torch.randn_like(keys)
    state = torch.randn(4, hidden, device="cuda")

    def normed(x: Any) -> Any:
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6)

    def step() -> None:
        x = state
        for index, (qkv, out, up) in enumerate(layers):
            query, key, value = (normed(x) @ qkv).view(4, 3, heads, 1, hidden // heads).unbind(1)  # planted
            keys[index, :, :, -1:].copy_(key)  # planted
            values[index, :, :, -1:].copy_(value)  # planted
            x = x + attention(query, keys[index], values[index]).reshape(4, hidden) @ out  # planted
            x = x + torch.relu(normed(x) @ up) @ downs[index]  # planted
        state.copy_(normed(x))

    return graphed(torch, step) if fix == "cuda_graph" else step


@planted("dispatch", "batch", also=("cuda_graph",))
def samples_one_by_one(torch: Any, fix: str | None) -> Step:
    """Sixteen samples go through an MLP one after the other instead of as one batch.

    The same four kernels are launched sixteen times; a batch of sixteen costs the GPU what one sample does.
    """
    first, second = weights(torch, 2, 512, 512)
    samples = torch.randn(16, 512, device="cuda")

    def one_by_one() -> Any:
        return [torch.relu(torch.relu(sample @ first) @ second) for sample in samples.split(1)]  # planted

    def batched() -> Any:
        return torch.relu(torch.relu(samples @ first) @ second)

    if fix == "cuda_graph":
        return graphed(torch, one_by_one)
    return batched if fix == "batch" else one_by_one


@planted("dispatch", "batch", also=("cuda_graph",))
def heads_in_a_loop(torch: Any, fix: str | None) -> Step:
    """Attention written as a loop over twelve small heads.

    Every head launches its own two matmuls and its softmax; the batched matmul does all heads at once.
    """
    query, key, value = torch.randn(3, 12, 128, 64, device="cuda").unbind(0)

    def looped() -> Any:
        results = []
        for head in range(12):
            scores = query[head] @ key[head].t()  # planted
            results.append(torch.softmax(scores, -1) @ value[head])  # planted
        return torch.stack(results)

    def batched() -> Any:
        return torch.softmax(query @ key.transpose(1, 2), -1) @ value

    if fix == "cuda_graph":
        return graphed(torch, looped)
    return batched if fix == "batch" else looped


@planted("dispatch", "torch_compile", also=("cuda_graph",))
def small_pointwise_chain(torch: Any, fix: str | None) -> Step:
    """Forty pointwise operations on a tensor so small that each costs the GPU nearly nothing.

    Compiled, the chain is one kernel and one launch.
    """
    x = torch.randn(128, 256, device="cuda")
    relu, tanh = torch.relu, torch.tanh

    def chain(x: Any) -> Any:
        for _ in range(8):
            y = relu(x * 1.1 + 0.1)  # planted
            x = tanh(y - x)  # planted
        return x

    fused = compiled(torch, chain) if fix == "torch_compile" else chain

    def step() -> Any:
        return fused(x)

    return graphed(torch, step) if fix == "cuda_graph" else step


@planted("dispatch", "fused_optimizer", steps=4)
def adam_on_small_parameters(torch: Any, fix: str | None) -> Step:
    """Adam walks over eight small parameters one by one, seven launches each.

    The fused implementation does the same arithmetic for all of them in one or two kernels.
    """
    parameters = [torch.nn.Parameter(torch.randn(128, 128, device="cuda")) for _ in range(8)]
    for parameter in parameters:
        parameter.grad = torch.randn_like(parameter)
    fused = fix == "fused_optimizer"
    optimizer = torch.optim.Adam(parameters, lr=1e-4, fused=fused, foreach=False)

    def step() -> None:
        optimizer.step()  # planted

    return step


@planted("dispatch", "cuda_graph", steps=4)
def unrolled_recurrence(torch: Any, fix: str | None) -> Step:
    """A recurrent cell unrolled over twenty-four time steps in Python.

    Each time step needs the last one, so the kernels cannot be batched; but they can be launched together.
    """
    (recurrent,) = weights(torch, 1, 256, 256)
    inputs = torch.randn(24, 32, 256, device="cuda")

    def step() -> Any:
        hidden = inputs[0]
        for now in inputs.unbind(0):
            hidden = torch.tanh(now + hidden @ recurrent)  # planted
        return hidden

    return graphed(torch, step) if fix == "cuda_graph" else step


@planted("dispatch", "cuda_graph")
def python_between_launches(torch: Any, fix: str | None) -> Step:
    """Every layer's settings are written out as text before its kernels are launched, as for a log or a cache key.

    The time goes to Python between the operations, not to the operations. Replaying a graph runs none of it.
    """
    layers = weights(torch, 10, 512, 512)
    x = torch.randn(64, 512, device="cuda")
    settings = {f"model.block.{index}": (index, index / 7, f"option {index}") for index in range(150)}

    def step() -> Any:
        hidden = x
        for weight in layers:
            repr(settings)  # planted
            hidden = torch.relu(hidden @ weight)
        return hidden

    return graphed(torch, step) if fix == "cuda_graph" else step
