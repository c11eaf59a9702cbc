"""Healthy steps: four in which nothing is wrong, and two in which something looks wrong and costs nothing."""

from __future__ import annotations

import time
from typing import Any

from faults.programs.case import Step, planted
from faults.programs.sealed.parts import graphed, hugging_face, sizes
from faults.programs.ward.loading import batches
from faults.programs.ward.networks import encoder, on_gpu, scaled


@planted("healthy", None, innocent="cuda_graph", steps=3)
def sounds_named_in_large_batches(torch: Any, fix: str | None) -> Step:
    """A wide audio spectrogram transformer names the sounds of eight clips at a time, in bfloat16 with fused attention.

    Its matmuls have 9712 rows and take most of the time, and the CPU is far ahead of the GPU. A CUDA graph would save
    launches that nobody waits for.
    """
    transformers = hugging_face()
    width, layers, heads, frames, batch = sizes((4096, 2, 32, 1024, 8), (32, 1, 2, 64, 2))
    config = transformers.ASTConfig(
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * width,
        max_length=frames,
        hidden_act="gelu",
        attn_implementation="sdpa",
    )
    with on_gpu(torch):
        listener = transformers.ASTModel(config)
        head = torch.nn.Linear(width, 527)
    listener = listener.to("cuda", torch.bfloat16).eval().requires_grad_(False)
    head = head.to("cuda", torch.bfloat16).requires_grad_(False)
    spectra = torch.randn(batch, frames, 128, device="cuda", dtype=torch.bfloat16)
    chances = torch.zeros(batch, 527, device="cuda")

    def listen() -> None:
        chances.copy_(head(listener(input_values=spectra).pooler_output).float().sigmoid())

    with torch.inference_mode():
        run = graphed(torch, listen) if fix else listen

    def step() -> Any:
        with torch.inference_mode():
            run()
        return chances

    return step


@planted("healthy", None, innocent="pin_memory", steps=3)
def two_towers_learn_who_wants_what(torch: Any, fix: str | None) -> Step:
    """Two wide towers learn in bfloat16 which of 8192 things each visitor wants, by numbers from ordinary memory.

    The numbers are 256 KB, and the matmuls that follow take many milliseconds. Pinned memory makes a copy faster
    that takes no time to speak of.
    """
    nn, functional = torch.nn, torch.nn.functional
    rows, each, fields, width, layers, batch = sizes((50_000, 512, 4, 6144, 3, 8192), (20, 4, 2, 16, 1, 8))

    def tower() -> Any:
        kind = {"dtype": torch.bfloat16, "device": "cuda"}
        parts = [nn.Embedding(rows, each, **kind), nn.Flatten(), nn.Linear(fields * each, width, **kind), nn.ReLU()]
        for _ in range(layers):
            parts += [nn.Linear(width, width, **kind), nn.ReLU()]
        return nn.Sequential(*parts, nn.Linear(width, each, **kind))

    towers = nn.ModuleList((tower(), tower()))
    optimizer = torch.optim.AdamW(towers.parameters(), lr=1e-4, fused=True)
    numbers = torch.randint(0, rows, (2, batch, fields), dtype=torch.int32)
    numbers = numbers.pin_memory() if fix else numbers

    def step() -> Any:
        visitors, things = numbers.to("cuda", non_blocking=bool(fix)).unbind(0)
        wants, has = towers[0](visitors), towers[1](things)
        right, wrong = ((wants * other).float().mean(-1) for other in (has, has.roll(1, 0)))
        loss = functional.softplus(wrong - right).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    return step


@planted("healthy", None, innocent="cuda_graph", steps=3)
def weather_carried_on_by_wide_convolutions(torch: Any, fix: str | None) -> Step:
    """A residual network carries the weather on by two times six hours in bfloat16, with its channels last.

    Every convolution has 512 channels on 65536 places and works for long. Launching one takes the CPU a
    small part of that.
    """
    nn, functional = torch.nn, torch.nn.functional
    width, blocks, fields, batch, height, breadth = sizes((512, 7, 64, 2, 128, 256), (8, 1, 4, 1, 8, 8))

    class Block(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Conv2d(width, width, 3, padding=1, bias=False)
            self.second = nn.Conv2d(width, width, 3, padding=1, bias=False)

        def forward(self, x: Any) -> Any:
            return x + self.second(functional.relu(self.first(x)))

    layers = [nn.Conv2d(fields, width, 3, padding=1, bias=False), *(Block() for _ in range(blocks))]
    network = nn.Sequential(*layers, nn.Conv2d(width, fields, 3, padding=1, bias=False))
    network = scaled(torch, network.to("cuda"), 0.3).to(torch.bfloat16, memory_format=torch.channels_last)
    network.requires_grad_(False)
    now = torch.randn(batch, fields, height, breadth, device="cuda", dtype=torch.bfloat16)
    now = now.contiguous(memory_format=torch.channels_last)
    later = torch.zeros_like(now)

    def carry_on() -> None:
        once = now + network(now)
        later.copy_(once + network(once))

    with torch.inference_mode():
        run = graphed(torch, carry_on) if fix else carry_on

    def step() -> Any:
        with torch.inference_mode():
            run()
            return later.float().mean((2, 3))

    return step


class Meters:
    """Windows of many long series, each with its own mean and deviation taken out."""

    def __init__(self, torch: Any, length: int) -> None:
        self._series = torch.randn(256, 8 * length)
        self._length = length

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> Any:
        begin = 61 * index % (7 * self._length)
        window = self._series[index % len(self._series), begin : begin + self._length]
        return (window - window.mean()) / (window.std() + 1e-5)


@planted("healthy", None, innocent="prefetch", steps=3)
def forecaster_fed_by_two_workers(torch: Any, fix: str | None) -> Step:
    """A wide transformer learns in bfloat16 to forecast 64 series a step, which two workers cut into windows.

    A batch takes the GPU several times as long as a worker. Two workers are ahead already, and more of them
    would be ahead further.
    """
    nn, functional = torch.nn, torch.nn.functional
    width, layers, heads, patches, patch, batch = sizes((4096, 2, 32, 128, 32, 64), (16, 1, 2, 4, 4, 2))
    windows = batches(torch, Meters(torch, (patches + 1) * patch), batch, workers=sizes(8, 1) if fix else sizes(2, 0))
    enter = nn.Linear(patch, width, device="cuda", dtype=torch.bfloat16)
    leave = nn.Linear(width, patch, device="cuda", dtype=torch.bfloat16)
    network = nn.ModuleList((enter, encoder(torch, width, layers, heads), leave)).train()
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-5, fused=True)

    def step() -> Any:
        series = next(windows).to("cuda", non_blocking=True).to(torch.bfloat16).unflatten(1, (patches + 1, patch))
        guess = network[2](network[1](network[0](series[:, :-1])))
        loss = functional.mse_loss(guess.float(), series[:, 1:].float())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    return step


@planted("healthy", None, innocent="batch", trap=True, steps=3)
def opt_whose_gradients_are_clipped_in_a_loop(torch: Any, fix: str | None) -> Step:
    """A wide OPT learns texts of 2048 tokens in bfloat16, and two loops over the parameters clip its gradients.

    The loops are a hundred calls more. The CPU makes them while the GPU is still at the backward pass, and
    reading and scaling the gradients takes as long in one call as in many.
    """
    transformers = hugging_face()
    width, layers, heads, vocabulary, batch, length = sizes((4096, 2, 32, 8192, 4, 2048), (32, 1, 2, 100, 2, 8))
    config = transformers.OPTConfig(
        vocab_size=vocabulary,
        hidden_size=width,
        word_embed_proj_dim=width,
        ffn_dim=4 * width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        max_position_embeddings=length,
        dropout=0.0,
        layerdrop=0.0,
        use_cache=False,
        attn_implementation="sdpa",
    )
    with on_gpu(torch):
        model = transformers.OPTForCausalLM(config)
    model = model.to("cuda", torch.bfloat16).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, betas=(0.9, 0.95), fused=True)
    texts = torch.randint(3, vocabulary, (batch, length), device="cuda")

    def clip(limit: float) -> None:
        gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
        if fix:
            whole = torch.stack(torch._foreach_norm(gradients)).norm()
            torch._foreach_mul_(gradients, (limit / (whole + 1e-6)).clamp(max=1))
            return
        squares = [gradient.norm() ** 2 for gradient in gradients]
        scale = (limit / (sum(squares).sqrt() + 1e-6)).clamp(max=1)
        for gradient in gradients:
            gradient.mul_(scale)

    def step() -> Any:
        loss = model(input_ids=texts, labels=texts).loss
        loss.backward()
        with torch.no_grad():
            clip(1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    return step


@planted("healthy", None, innocent="remove_sync", trap=True, steps=3)
def diffusion_whose_phases_are_timed(torch: Any, fix: str | None) -> Step:
    """A wide U-ViT learns to remove noise in bfloat16, and the loop times its phases with `torch.cuda.synchronize()`.

    The CPU waits for the GPU three times a step. Each time the next large matmul is soon on its way
    again, and the step is long.
    """
    nn, functional = torch.nn, torch.nn.functional
    width, heads, batch, side, channels = sizes((4096, 32, 32, 32, 4), (16, 2, 2, 4, 4))
    kind = {"device": "cuda", "dtype": torch.bfloat16}
    patches, values = (side // 2) ** 2, 4 * channels
    network = nn.ModuleDict(
        {
            "enter": nn.Linear(values, width, **kind),
            "down": encoder(torch, width, 1, heads),
            "up": encoder(torch, width, 1, heads),
            "skip": nn.Linear(2 * width, width, **kind),
            "leave": nn.Linear(width, values, **kind),
        }
    )
    places = nn.Parameter(0.02 * torch.randn(1, patches + 1, width, **kind))
    optimizer = torch.optim.AdamW([*network.parameters(), places], lr=1e-5, fused=True)
    latents = torch.randn(batch, patches, values, **kind)
    rates = torch.exp(torch.linspace(0, -8, width // 2, device="cuda"))
    phases = {"forward": 0.0, "backward": 0.0, "update": 0.0}

    def forward() -> Any:
        moment, noise = torch.rand(batch, 1, 1, device="cuda"), torch.randn_like(latents)
        noisy = (moment * latents + (1 - moment) * noise).to(torch.bfloat16)
        angles = 1000 * moment * rates
        token = torch.cat((angles.sin(), angles.cos()), -1).to(torch.bfloat16)
        entered = torch.cat((token, network["enter"](noisy)), 1) + places
        low = network["down"](entered)
        high = network["up"](network["skip"](torch.cat((low, entered), -1)))
        return functional.mse_loss(network["leave"](high[:, 1:]).float(), (latents - noise).float())

    def update() -> None:
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    def timed(phase: str, work: Any) -> Any:
        if fix:
            return work()
        begin = time.perf_counter()
        result = work()
        torch.cuda.synchronize()
        phases[phase] += time.perf_counter() - begin
        return result

    def step() -> Any:
        loss = timed("forward", forward)
        timed("backward", loss.backward)
        timed("update", update)
        return loss.detach()

    return step
