"""Cause `dispatch`: the CPU launches kernels more slowly than the GPU runs them."""

from __future__ import annotations

import itertools
from typing import Any

from faults.programs.case import Step, planted
from faults.programs.sealed.parts import graphed, hugging_face, sizes


@planted("dispatch", "cuda_graph", steps=2)
def state_space_model_scanned_in_a_loop(torch: Any, fix: str | None) -> Step:
    """A small Mamba in plain PyTorch reads four texts, and a loop over the tokens updates the state of each layer.

    A token is a few kernels on a state of a quarter of a megabyte, and each of them is done sooner than the next one is
    launched. Neither shapes nor addresses change, so that the whole forward pass can be one CUDA graph.
    """
    nn, functional = torch.nn, torch.nn.functional
    width, states, rank, layers, vocabulary, batch, length = sizes(
        (512, 16, 32, 3, 4096, 4, 128), (16, 4, 2, 1, 50, 2, 6)
    )
    inner = 2 * width

    class Mixer(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.LayerNorm(width)
            self.enter = nn.Linear(width, 2 * inner, bias=False)
            self.blur = nn.Conv1d(inner, inner, 4, groups=inner, padding=3)
            self.choose = nn.Linear(inner, rank + 2 * states, bias=False)
            self.pace = nn.Linear(rank, inner)
            self.decay = nn.Parameter(torch.arange(1.0, states + 1).log().repeat(inner, 1))
            self.skip = nn.Parameter(torch.ones(inner))
            self.leave = nn.Linear(inner, width, bias=False)

        def forward(self, x: Any) -> Any:
            value, gate = self.enter(self.norm(x)).chunk(2, -1)
            value = functional.silu(self.blur(value.transpose(1, 2))[..., : x.shape[1]].transpose(1, 2))
            pace, write, read = self.choose(value).split((rank, states, states), -1)
            pace = functional.softplus(self.pace(pace))
            return x + self.leave((self.scan(value, pace, write, read) + value * self.skip) * functional.silu(gate))

        def scan(self, value: Any, pace: Any, write: Any, read: Any) -> Any:
            keep = (pace.unsqueeze(-1) * -self.decay.exp()).exp()
            add = (pace * value).unsqueeze(-1) * write.unsqueeze(2)
            state, outputs = torch.zeros_like(keep[:, 0]), []
            for token in range(value.shape[1]):
                state = keep[:, token] * state + add[:, token]  # planted
                outputs.append((state @ read[:, token].unsqueeze(-1)).squeeze(-1))  # planted
            return torch.stack(outputs, 1)

    model = nn.Sequential(
        nn.Embedding(vocabulary, width),
        *(Mixer() for _ in range(layers)),
        nn.LayerNorm(width),
        nn.Linear(width, vocabulary, bias=False),
    )
    model = model.to("cuda").requires_grad_(False)
    torch.backends.cuda.matmul.allow_tf32 = True
    texts = torch.randint(0, vocabulary, (batch, length), device="cuda")
    surprise = torch.zeros(batch, length - 1, device="cuda")

    def read_texts() -> None:
        logits = model(texts)[:, :-1].transpose(1, 2)
        surprise.copy_(functional.cross_entropy(logits, texts[:, 1:], reduction="none"))

    with torch.inference_mode():
        run = graphed(torch, read_texts) if fix else read_texts

    def step() -> Any:
        with torch.inference_mode():
            run()
            return surprise.mean(1).tolist()

    return step


@planted("dispatch", "batch", also=("cuda_graph",), steps=2)
def tracker_that_looks_at_person_by_person(torch: Any, fix: str | None) -> Step:
    """A tracker recognises the 16 people of a frame by a small network, which it calls for each person's crop.

    One crop gives the GPU a few microseconds of work for each kernel, and there are some fifty kernels for each crop.
    All crops are scaled to the same size anyway, so that one batch holds the whole frame.
    """
    nn, functional = torch.nn, torch.nn.functional
    widths, people, height, breadth, known = sizes(((32, 64, 128, 256), 16, 256, 128, 500), ((4, 8), 3, 32, 16, 5))

    class Bottleneck(torch.nn.Module):  # type: ignore[misc]
        def __init__(self, before: int, after: int) -> None:
            super().__init__()
            middle = 2 * before
            self.squeeze = nn.Sequential(
                nn.Conv2d(before, middle, 1, bias=False),
                nn.BatchNorm2d(middle),
                nn.ReLU(),
                nn.Conv2d(middle, middle, 3, stride=2, padding=1, groups=middle, bias=False),
                nn.BatchNorm2d(middle),
                nn.ReLU(),
                nn.Conv2d(middle, after, 1, bias=False),
                nn.BatchNorm2d(after),
            )
            self.short = nn.Sequential(nn.AvgPool2d(2), nn.Conv2d(before, after, 1, bias=False), nn.BatchNorm2d(after))

        def forward(self, x: Any) -> Any:
            return functional.relu(self.squeeze(x) + self.short(x))

    stem = [nn.Conv2d(3, widths[0], 7, stride=2, padding=3, bias=False), nn.BatchNorm2d(widths[0]), nn.ReLU()]
    stages = [Bottleneck(*pair) for pair in itertools.pairwise(widths)]
    network = nn.Sequential(*stem, *stages, nn.AdaptiveAvgPool2d(1), nn.Flatten()).eval().requires_grad_(False)
    network = network.to("cuda", torch.float16, memory_format=torch.channels_last)
    frame = torch.rand(3, 8 * height, 8 * breadth, device="cuda", dtype=torch.float16)
    corners = [(37 * person % (6 * height), 53 * person % (6 * breadth)) for person in range(people)]
    gallery = functional.normalize(torch.randn(known, widths[-1], device="cuda", dtype=torch.float16), dim=-1)
    likeness = torch.zeros(people, known, device="cuda", dtype=torch.float16)

    def crop(place: int) -> Any:
        top, left = corners[place]
        piece = frame[:, top : top + height + 8 * place, left : left + breadth + 4 * place].unsqueeze(0)
        return functional.interpolate(piece, (height, breadth), mode="bilinear")

    def look() -> None:
        crops = [crop(place).contiguous(memory_format=torch.channels_last) for place in range(people)]
        groups = [torch.cat(crops)] if fix == "batch" else crops
        vectors = torch.cat([network(group) for group in groups])  # planted
        likeness.copy_(functional.normalize(vectors, dim=-1) @ gallery.T)

    with torch.inference_mode():
        run = graphed(torch, look) if fix == "cuda_graph" else look

    def step() -> Any:
        with torch.inference_mode():
            run()
            return likeness.max(-1).values.tolist()

    return step


@planted("dispatch", "fused_optimizer", steps=2)
def electra_trained_with_lion_from_its_paper(torch: Any, fix: str | None) -> Step:
    """An ELECTRA finds replaced words, and is trained with Lion as its paper prints it: a loop over the parameters.

    Each of some hundred and thirty small parameters takes six kernels of a few microseconds. The same arithmetic on
    lists of tensors, `torch._foreach_*`, takes six calls for all of them.
    """
    transformers = hugging_face()
    width, layers, heads, vocabulary, batch, length = sizes((256, 8, 4, 8192, 32, 128), (16, 1, 2, 50, 2, 8))
    config = transformers.ElectraConfig(
        vocab_size=vocabulary,
        embedding_size=width // 2,
        hidden_size=width,
        intermediate_size=4 * width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        max_position_embeddings=length,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    model = transformers.ElectraForPreTraining(config).to("cuda", torch.bfloat16).train()
    texts = torch.randint(0, vocabulary, (batch, length), device="cuda")
    replaced = (torch.rand(batch, length, device="cuda") < 0.15).long()
    rate, decay, (quick, slow) = 1e-4, 0.01, (0.9, 0.99)
    parameters = list(model.parameters())
    momenta = [torch.zeros_like(parameter) for parameter in parameters]

    def lion() -> None:
        for parameter, momentum in zip(parameters, momenta, strict=True):
            if parameter.grad is None:
                continue
            parameter.mul_(1 - rate * decay)
            update = momentum * quick + parameter.grad * (1 - quick)  # planted
            parameter.add_(update.sign_(), alpha=-rate)  # planted
            momentum.mul_(slow).add_(parameter.grad, alpha=1 - slow)  # planted

    def lion_on_lists() -> None:
        known = [place for place, parameter in enumerate(parameters) if parameter.grad is not None]
        weights, past = [parameters[place] for place in known], [momenta[place] for place in known]
        gradients = [parameters[place].grad for place in known]
        torch._foreach_mul_(weights, 1 - rate * decay)
        updates = torch._foreach_mul(past, quick)
        torch._foreach_add_(updates, gradients, alpha=1 - quick)
        torch._foreach_sign_(updates)
        torch._foreach_add_(weights, updates, alpha=-rate)
        torch._foreach_mul_(past, slow)
        torch._foreach_add_(past, gradients, alpha=1 - slow)

    def step() -> Any:
        loss = model(input_ids=texts, labels=replaced).loss
        loss.backward()
        with torch.no_grad():
            if fix:
                lion_on_lists()
            else:
                lion()
        model.zero_grad(set_to_none=True)
        return loss.detach()

    return step
