"""Cause `memory`: caches that are emptied, and buffers that are copied in order to grow."""

from __future__ import annotations

import copy
from typing import Any

from faults.programs.case import Step, planted
from faults.programs.sealed.parts import hugging_face, sizes


@planted("memory", "no_empty_cache", steps=3)
def t5_that_empties_the_cache(torch: Any, fix: str | None) -> Step:
    """A T5 is fine-tuned under autocast, and the loop calls `torch.cuda.empty_cache()` after every step.

    The allocator gives the memory of all activations back to the driver, and the next step must ask for it again, call
    by call. Memory that stays in the cache is free for the next step.
    """
    transformers = hugging_face()
    width, layers, heads, vocabulary, batch, source, target = sizes(
        (512, 4, 8, 16384, 32, 256, 64), (32, 2, 2, 100, 2, 8, 6)
    )
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
    model = transformers.T5ForConditionalGeneration(config).to("cuda").train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    words = torch.randint(1, vocabulary, (batch, source), device="cuda")
    summary = torch.randint(1, vocabulary, (batch, target), device="cuda")
    mask = torch.ones_like(words)

    def step() -> Any:
        with torch.autocast("cuda", torch.bfloat16):
            loss = model(input_ids=words, attention_mask=mask, labels=summary).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if not fix:
            torch.cuda.empty_cache()  # planted
        return loss.detach()

    return step


@planted("memory", "preallocate", steps=3)
def dqn_that_appends_to_its_replay_buffer(torch: Any, fix: str | None) -> Step:
    """A DQN keeps its replay buffer on the GPU and appends new transitions with `torch.cat`.

    Every append allocates the whole buffer again and copies seven gigabytes of frames. A buffer allocated once, in
    which new transitions replace the oldest, writes only what is new.
    """
    nn, functional = torch.nn, torch.nn.functional
    capacity, new, batch, actions = sizes((120_000, 32, 256, 6), (64, 4, 8, 3))
    layers = [nn.Conv2d(4, 32, 8, stride=4), nn.ReLU(), nn.Conv2d(32, 64, 4, stride=2), nn.ReLU()]
    layers += [nn.Conv2d(64, 64, 3), nn.ReLU(), nn.Flatten(), nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, actions)]
    online = nn.Sequential(*layers).to("cuda")
    target = copy.deepcopy(online).requires_grad_(False)
    optimizer = torch.optim.Adam(online.parameters(), lr=1e-4, fused=True)
    frames = torch.randint(0, 256, (new, 4, 84, 84), device="cuda", dtype=torch.uint8)
    buffer = {
        "state": torch.zeros(capacity, 4, 84, 84, device="cuda", dtype=torch.uint8),
        "next": torch.zeros(capacity, 4, 84, 84, device="cuda", dtype=torch.uint8),
        "action": torch.zeros(capacity, device="cuda", dtype=torch.long),
        "reward": torch.zeros(capacity, device="cuda"),
    }
    at = 0

    def remember(transitions: dict[str, Any]) -> None:
        nonlocal at
        for name, values in transitions.items():
            if fix:
                buffer[name][at : at + new] = values
            else:
                buffer[name] = torch.cat((buffer[name][new:], values))  # planted
        at = (at + new) % (capacity - new)

    def step() -> Any:
        with torch.no_grad():
            action = online(frames.float() / 255).argmax(-1)
        reward = torch.randn(new, device="cuda")
        remember({"state": frames, "next": frames.flip(0), "action": action, "reward": reward})
        chosen = torch.randint(0, capacity, (batch,), device="cuda")
        states, following = (buffer[name][chosen].float() / 255 for name in ("state", "next"))
        with torch.no_grad():
            wanted = buffer["reward"][chosen] + 0.99 * target(following).amax(-1)
        values = online(states).gather(1, buffer["action"][chosen].unsqueeze(1)).squeeze(1)
        loss = functional.smooth_l1_loss(values, wanted)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        torch._foreach_lerp_(list(target.parameters()), list(online.parameters()), 0.005)
        return loss.detach()

    return step
