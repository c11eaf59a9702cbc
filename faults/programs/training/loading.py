"""Cause `input`: neighbourhoods that Python draws while the GPU waits."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted
from faults.programs.parts import batches

NODES, DEGREE, WIDTH = 20_000, 16, 128
SEEDS, FANOUT = 256, 10


@planted("input", "prefetch")
def neighbours_drawn_in_the_loop(torch: Any, fix: str | None) -> Step:
    """A graph network is trained on two rings of ten neighbours around 256 nodes, drawn by Python in the loop.

    Twenty-eight thousand look-ups in lists take longer than the training step. A loader's workers can draw the next
    batches meanwhile.
    """
    functional = torch.nn.functional
    torch.backends.cuda.matmul.allow_tf32 = True
    edges = torch.randint(0, NODES, (NODES, DEGREE)).tolist()
    choices = range(FANOUT)

    def sample(index: int) -> Any:
        first = [(index * SEEDS + i) % NODES for i in range(SEEDS)]
        second = [edges[node][(node + 7 * index + 3 * i) % DEGREE] for node in first for i in choices]  # planted
        third = [edges[node][(node + 5 * index + 3 * i) % DEGREE] for node in second for i in choices]  # planted
        return torch.tensor(first + second + third)

    source = batches(torch, sample, workers=8 if fix else 0)
    features = torch.randn(NODES, WIDTH, device="cuda")
    labels = torch.randint(0, 16, (NODES,), device="cuda")
    inner, outer = (torch.nn.Linear(WIDTH, WIDTH, device="cuda") for _ in range(2))
    head = torch.nn.Linear(WIDTH, 16, device="cuda")
    parameters = [parameter for layer in (inner, outer, head) for parameter in layer.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.01, fused=True)

    def step() -> Any:
        nodes = next(source).to("cuda", non_blocking=True)  # planted
        first, second, third = nodes.split((SEEDS, SEEDS * FANOUT, SEEDS * FANOUT**2))
        far = features.index_select(0, third).view(-1, FANOUT, WIDTH).mean(1)
        near = (inner(far) + features.index_select(0, second)).relu().view(-1, FANOUT, WIDTH).mean(1)
        scores = head((outer(near) + features.index_select(0, first)).relu())
        loss = functional.cross_entropy(scores, labels.index_select(0, first))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step
