"""No cause: steps that are as fast as they can be, one plainly and two behind something that looks guilty."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted
from faults.programs.parts import batches, graphed, weights


@planted("healthy", None, innocent="cuda_graph")
def convolution_on_a_dense_graph(torch: Any, fix: str | None) -> Step:
    """A network on a dense graph of 16,384 nodes is trained: matmuls with the adjacency matrix, and little else.

    Nothing is wrong: they keep the tensor cores busy for milliseconds, and a CUDA graph does not help.
    """
    nodes, width = 16384, 1024
    (adjacency,) = weights(torch, 1, nodes, nodes, torch.bfloat16)
    layers = [weight.requires_grad_() for weight in weights(torch, 3, width, width, torch.bfloat16)]
    features = torch.randn(nodes, width, device="cuda", dtype=torch.bfloat16)

    def step() -> Any:
        for weight in layers:
            weight.grad = None
        x = features
        for weight in layers:
            x = adjacency @ (x @ weight)
        loss = x.square().mean()
        loss.backward()
        return loss.detach()

    return graphed(torch, step) if fix else step


@planted("healthy", None, innocent="remove_sync", trap=True, steps=3)
def scaler_that_looks_for_infinities(torch: Any, fix: str | None) -> Step:
    """Half-precision training reads both losses back, and its gradient scaler whether there was an infinity.

    Nothing is wrong: three times a step the CPU waits, each time for milliseconds of matmuls, and is back at
    work at once. A fused optimiser would look for infinities by itself, and gains next to nothing.
    """
    nn = torch.nn
    tokens, width = 8192, 8192
    layers = [nn.Linear(width, width, bias=False, device="cuda") for _ in range(2)]
    model = nn.Sequential(layers[0], nn.ReLU(), layers[1], nn.Linear(width, 64, bias=False, device="cuda"))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True if fix else None)
    scaler = torch.amp.GradScaler("cuda", init_scale=1024.0)
    texts = torch.randn(2, tokens, width, device="cuda", dtype=torch.float16).unbind(0)

    def step() -> Any:
        losses = []
        for text in texts:
            with torch.autocast("cuda", torch.float16):
                loss = model(text).float().square().mean() / 2
            scaler.scale(loss).backward()
            losses.append(loss.detach() if fix else loss.item())
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        return losses

    return step


@planted("healthy", None, innocent="prefetch", trap=True)
def documents_packed_between_steps(torch: Any, fix: str | None) -> Step:
    """Documents are packed into sequences by Python in the training loop, without workers, for some milliseconds.

    Nothing is wrong: the CPU is that far ahead, for the step before keeps the GPU busy for longer. Workers would
    pack just as well, and no step would be shorter.
    """
    tokens, width, words = 8192, 4096, 8192
    table = torch.randn(words, width, device="cuda", dtype=torch.bfloat16)
    layers = [weight.requires_grad_() for weight in weights(torch, 8, width, width, torch.bfloat16)]
    document = [(31 * i) % words for i in range(tokens)]

    def pack(index: int) -> Any:
        begun = index % 1024
        text = [(word + index) % words for word in document]
        text = text[begun:] + text[:begun]
        places = [(i + begun) % 512 for i in range(tokens)]
        kept = [word for word, place in zip(text, places, strict=True) if place != 511]
        filled = kept + [0] * (tokens - len(kept))
        return torch.tensor([word if word else place for word, place in zip(filled, places, strict=True)])

    source = batches(torch, pack, workers=4 if fix else 0)

    def step() -> Any:
        for weight in layers:
            weight.grad = None
        x = table.index_select(0, next(source).pin_memory().to("cuda", non_blocking=True))
        for weight in layers:
            x = x @ weight
        loss = x.square().mean()
        loss.backward()
        return loss.detach()

    return step
