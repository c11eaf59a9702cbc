"""Cause `memory`: memory is given back and fetched again, or copied for nothing."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted
from faults.programs.sealed.parts import hugging_face, sizes
from faults.programs.ward.networks import on_gpu


@planted("memory", "no_empty_cache", steps=3)
def perplexity_with_the_cache_emptied(torch: Any, fix: str | None) -> Step:
    """A StableLM's perplexity is taken window by window, with `torch.cuda.empty_cache()` after each window.

    The logits of a window are hundreds of megabytes, which the driver takes back and hands out anew each time, and both
    wait for the GPU. The next window needs just as much, so that the allocator may keep it.
    """
    transformers = hugging_face()
    width, layers, heads, vocabulary, batch, length, windows = sizes(
        (1024, 4, 16, 32768, 2, 1024, 3), (32, 1, 2, 100, 2, 8, 2)
    )
    config = transformers.StableLmConfig(
        vocab_size=vocabulary,
        hidden_size=width,
        intermediate_size=4 * width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        max_position_embeddings=length,
        use_cache=False,
        pad_token_id=None,
        bos_token_id=0,
        eos_token_id=0,
    )
    with on_gpu(torch):
        model = transformers.StableLmForCausalLM(config)
    model = model.to("cuda", torch.bfloat16).eval().requires_grad_(False)
    stride = length // 2
    texts = torch.randint(0, vocabulary, (batch, length + (windows - 1) * stride), device="cuda")

    def step() -> Any:
        losses = []
        with torch.inference_mode():
            for window in range(windows):
                tokens = texts[:, window * stride : window * stride + length]
                wanted = tokens.clone()
                if window:
                    wanted[:, : length - stride] = -100
                losses.append(model(input_ids=tokens, labels=wanted).loss)
                if not fix:
                    torch.cuda.empty_cache()  # planted
            return torch.stack(losses).mean().exp().item()

    return step


@planted("memory", "preallocate")
def forecaster_that_rolls_its_history(torch: Any, fix: str | None) -> Step:
    """A forecaster keeps the last 4096 values of 16384 meters, and `torch.roll` makes room for each new value.

    Two gigabytes are copied for every hour that comes in. A ring needs only the new row to be written, and the lags
    that the network looks at are counted from there.
    """
    nn, functional = torch.nn, torch.nn.functional
    meters, channels, kept, width, layers = sizes((16384, 8, 4096, 1024, 6), (3, 2, 40, 8, 1))
    lags = [lag for lag in (1, 2, 3, 4, 6, 12, 24, 48, 72, 168, 336, 504, 672, 1344, 2016, 4032) if lag <= kept]
    enter, leave = nn.Linear(len(lags) * channels, width), nn.Linear(width, channels)
    middle = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
    network = nn.ModuleList((enter, middle, leave)).to("cuda", torch.bfloat16).requires_grad_(False)
    hours = torch.randn(8, meters, channels, device="cuda")
    past = torch.randn(kept, meters, channels, device="cuda")
    behind = torch.tensor(lags, device="cuda")
    clock = {"hour": 0}

    def append(new: Any) -> Any:
        """The values at all lags, once the new ones are stored."""
        nonlocal past
        place = clock["hour"] % kept
        if fix:
            past[place] = new
            return past[(place + 1 - behind) % kept]
        past = torch.roll(past, -1, 0)  # planted
        past[-1] = new
        return past[kept - behind]

    def step() -> Any:
        with torch.inference_mode():
            seen = append(hours[clock["hour"] % len(hours)])
            clock["hour"] += 1
            x = network[0](seen.permute(1, 0, 2).flatten(1).to(torch.bfloat16))
            for layer in network[1]:
                x = x + functional.gelu(layer(x))
            return network[2](x).float().mean(0)

    return step
