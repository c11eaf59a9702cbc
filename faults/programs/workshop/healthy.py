"""Healthy steps, in which something looks guilty."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted
from faults.programs.parts import compiled, graphed, weights


@planted("healthy", None, innocent="cuda_graph", trap=True)
def critic_with_a_trail_of_statistics(torch: Any, fix: str | None) -> Step:
    """A wide critic is trained in bfloat16, and eight rounds of tiny kernels keep statistics of its returns.

    Nearly all the time goes into matmuls at the speed of the tensor cores. The tiny kernels are launched while those
    run, so that a CUDA graph does not help.
    """
    nn = torch.nn
    width, atoms, batch = 8192, 64, 8192
    model = nn.Sequential(
        nn.Linear(width, width, bias=False),
        nn.ReLU(inplace=True),
        nn.Linear(width, width, bias=False),
        nn.ReLU(inplace=True),
        nn.Linear(width, atoms, bias=False),
    ).to("cuda", torch.bfloat16)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5, fused=True)
    states = torch.randn(batch, width, device="cuda", dtype=torch.bfloat16)
    wanted = torch.randn(batch, atoms, device="cuda").softmax(-1)
    returns = torch.randn(batch, device="cuda")
    mean, spread = torch.zeros((), device="cuda"), torch.ones((), device="cuda")

    def statistics() -> None:
        for _ in range(8):
            mean.lerp_(returns.mean(), 0.01)
            spread.lerp_((returns - mean).square().mean(), 0.01)

    keep = graphed(torch, statistics) if fix else statistics

    def step() -> Any:
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(model(states).float(), wanted)
        loss.backward()
        optimizer.step()
        keep()
        return loss.detach()

    return step


@planted("healthy", None, innocent="remove_sync", trap=True)
def next_words_scored_and_counted(torch: Any, fix: str | None) -> Step:
    """An evaluation guesses 8192 next words out of 32768 in bfloat16, and reads the number of hits with `.item()`.

    The CPU waits for the GPU, not the other way round: after the read it needs some microseconds to have the GPU busy
    again for milliseconds.
    """
    words, width, vocabulary = 8192, 4096, 32768
    layers = weights(torch, 4, width, width, torch.bfloat16)
    (head,) = weights(torch, 1, width, vocabulary, torch.bfloat16)
    hidden = torch.randn(words, width, device="cuda", dtype=torch.bfloat16)
    truth = torch.randint(0, vocabulary, (words,), device="cuda")

    def step() -> Any:
        x = hidden
        for weight in layers:
            x = (x @ weight).relu_()
        hits = ((x @ head).argmax(-1) == truth).sum()
        return hits if fix else hits.item()

    return step


@planted("healthy", None, innocent="torch_compile")
def targets_that_trail_their_critics(torch: Any, fix: str | None) -> Step:
    """Two target networks of 256 million parameters each follow their critics by an exponential average.

    The parameters of a network lie in one tensor, and the average reads and writes it at the memory's bandwidth. A
    compiler can write no kernel that moves fewer bytes.
    """
    size = 256 * 1024 * 1024
    pairs = [(torch.randn(size, device="cuda"), torch.randn(size, device="cuda")) for _ in range(2)]

    def follow(target: Any, critic: Any) -> None:
        target.lerp_(critic, 0.005)

    move = compiled(torch, follow) if fix else follow

    def step() -> Any:
        for target, critic in pairs:
            move(target, critic)

    return step
