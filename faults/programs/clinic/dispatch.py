"""Cause `dispatch`: the CPU launches kernels more slowly than the GPU runs them."""

from __future__ import annotations

import copy
from typing import Any

from faults.programs.case import Step, planted
from faults.programs.sealed.parts import graphed, hugging_face, sizes


@planted("dispatch", "cuda_graph", steps=3)
def forecaster_that_draws_day_after_day(torch: Any, fix: str | None) -> Step:
    """A forecaster draws 3200 possible courses of the next 28 days with two LSTM cells, day after day.

    A day is a dozen small kernels, and each needs what the one before it has drawn. The GPU is done with them sooner
    than the CPU can launch them. All days together never change their shapes, so that they can be one CUDA graph.
    """
    nn, functional = torch.nn, torch.nn.functional
    width, series, draws, days = sizes((128, 32, 100, 28), (8, 2, 3, 3))
    cells = nn.ModuleList((nn.LSTMCell(1, width), nn.LSTMCell(width, width))).to("cuda").requires_grad_(False)
    head = nn.Linear(width, 2).to("cuda").requires_grad_(False)
    torch.backends.cuda.matmul.allow_tf32 = True
    count = series * draws
    last = torch.randn(series, 1, device="cuda").repeat_interleave(draws, 0)
    state = torch.randn(2, 2, series, width, device="cuda").repeat_interleave(draws, 2)
    middle, low, high = torch.zeros(3, days, series, device="cuda").unbind(0)

    def draw() -> None:
        value, (first, second) = last, ((hidden, memory) for hidden, memory in state)
        course = []
        for _ in range(days):
            first = cells[0](value, first)  # planted
            second = cells[1](first[0], second)  # planted
            mean, spread = head(second[0]).chunk(2, -1)
            value = mean + functional.softplus(spread) * torch.randn(count, 1, device="cuda")
            course.append(value)
        ordered = torch.cat(course, 1).view(series, draws, days).sort(1).values
        for place, share in ((middle, 0.5), (low, 0.1), (high, 0.9)):
            place.copy_(ordered[:, int(share * draws)].T)

    with torch.inference_mode():
        run = graphed(torch, draw) if fix else draw

    def step() -> Any:
        with torch.inference_mode():
            run()
            return torch.stack((low, middle, high)).tolist()

    return step


@planted("dispatch", "batch", steps=3)
def t5_that_ranks_passage_by_passage(torch: Any, fix: str | None) -> Step:
    """A search engine asks a T5 of three passages whether each answers a question, one passage after another.

    One passage of 192 tokens is little work for the GPU, and launching a forward pass takes the CPU several times as
    long. The passages have the same length, so that one batch of three takes one forward pass.
    """
    transformers = hugging_face()
    width, layers, heads, vocabulary, passages, length = sizes((512, 2, 8, 8192, 3, 192), (32, 1, 2, 100, 3, 8))
    config = transformers.T5Config(
        vocab_size=vocabulary,
        d_model=width,
        d_kv=width // heads,
        d_ff=4 * width,
        num_layers=layers,
        num_heads=heads,
        use_cache=False,
        decoder_start_token_id=0,
    )
    model = transformers.T5ForConditionalGeneration(config).to("cuda", torch.bfloat16).eval()
    texts = torch.randint(1, vocabulary, (passages, length), device="cuda")
    start = torch.zeros(passages, 1, device="cuda", dtype=torch.long)
    yes, no = 7, 11

    def scores(text: Any, begin: Any) -> Any:
        logits = model(input_ids=text, decoder_input_ids=begin).logits[:, -1]
        return logits[:, [yes, no]].float().log_softmax(-1)[:, 0]

    def step() -> Any:
        with torch.inference_mode():
            if fix:
                return scores(texts, start).tolist()
            parts = zip(texts.split(1), start.split(1), strict=True)
            return torch.cat([scores(text, begin) for text, begin in parts]).tolist()  # planted

    return step


@planted("dispatch", "cuda_graph", steps=3)
def soft_actor_critic_on_small_batches(torch: Any, fix: str | None) -> Step:
    """A soft actor-critic agent learns to walk: two critics, an actor and a temperature, from 256 moments a step.

    Networks of 256 units are next to nothing for a GPU, and an update is hundreds of kernels. The moments lie on the
    GPU and the shapes never change, so that the whole update can be one CUDA graph.
    """
    nn, functional = torch.nn, torch.nn.functional
    width, senses, joints, stored, batch = sizes((256, 76, 21, 100_000, 256), (16, 5, 2, 50, 8))

    def network(inputs: int, outputs: int) -> Any:
        layers = [nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, outputs)]
        return nn.Sequential(*layers).to("cuda")

    actor, critics = network(senses, 2 * joints), nn.ModuleList(network(senses + joints, 1) for _ in range(2))
    targets = copy.deepcopy(critics).requires_grad_(False)
    heat = torch.zeros((), device="cuda", requires_grad=True)
    kind = {"lr": 3e-4, "fused": True, "capturable": torch.cuda.is_available()}
    optimizers = [torch.optim.Adam(group, **kind) for group in (critics.parameters(), actor.parameters(), [heat])]
    before, after = torch.randn(2, stored, senses, device="cuda").unbind(0)
    moves, rewards = torch.rand(stored, joints, device="cuda") * 2 - 1, torch.randn(stored, device="cuda")
    loss = torch.zeros((), device="cuda")

    def act(state: Any) -> tuple[Any, Any]:
        mean, spread = actor(state).chunk(2, -1)
        spread = spread.clamp(-5, 2).exp()
        raw = mean + spread * torch.randn_like(mean)
        surprise = -0.5 * ((raw - mean) / spread).square() - spread.log()
        move = raw.tanh()
        return move, (surprise - (1 - move.square() + 1e-6).log()).sum(-1)

    def values(judges: Any, state: Any, move: Any) -> Any:
        return torch.cat([judge(torch.cat((state, move), -1)) for judge in judges], -1)

    def improve(optimizer: Any, error: Any) -> None:
        optimizer.zero_grad(set_to_none=True)
        error.backward()
        optimizer.step()

    def update() -> None:
        chosen = torch.randint(0, stored, (batch,), device="cuda")
        state, following, move, reward = (part[chosen] for part in (before, after, moves, rewards))
        with torch.no_grad():
            next_move, chance = act(following)
            wanted = reward + 0.99 * (values(targets, following, next_move).amin(-1) - heat.exp() * chance)
        error = functional.mse_loss(values(critics, state, move), wanted.unsqueeze(-1).expand(-1, 2))
        improve(optimizers[0], error)  # planted
        move, chance = act(state)
        improve(optimizers[1], (heat.exp().detach() * chance - values(critics, state, move).amin(-1)).mean())  # planted
        improve(optimizers[2], -(heat.exp() * (chance.detach() - joints)).mean())  # planted
        with torch.no_grad():
            torch._foreach_lerp_(list(targets.parameters()), list(critics.parameters()), 0.005)
        loss.copy_(error.detach())

    run = graphed(torch, update) if fix else update

    def step() -> Any:
        run()
        return loss

    return step
