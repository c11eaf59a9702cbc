"""Cause `memory`: a buffer that is copied in order to grow."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted
from faults.programs.sealed.parts import sizes
from faults.programs.unseen.decoder import decoder


@planted("memory", "preallocate", steps=3)
def writer_that_joins_each_token_to_its_cache(torch: Any, fix: str | None) -> Step:
    """A decoder continues 64 prompts of 2048 tokens by three tokens, and joins each token's keys and values with `cat`.

    For one token more, `torch.cat` allocates the keys and values of a layer again and copies a gigabyte.
    The length of the answer is limited, so that the cache can be allocated once with room for it.
    """
    functional = torch.nn.functional
    width, inner, layers, heads, vocabulary, batch, length, answer = sizes(
        (2048, 5632, 3, 16, 16384, 64, 2048, 3), (32, 48, 2, 2, 60, 2, 8, 2)
    )
    model = decoder(torch, width, inner, layers, heads, vocabulary, length + answer)
    shape = (batch, heads, length, width // heads)
    prompts = [torch.randn(2, *shape, device="cuda").to(torch.bfloat16) for _ in range(layers)]
    last = torch.randint(0, vocabulary, (batch, 1), device="cuda")
    places = torch.arange(length, length + answer, device="cuda").split(1)
    roomy = [functional.pad(prompt, (0, 0, 0, answer)) for prompt in prompts] if fix else []

    def step() -> Any:
        caches = [(prompt[0], prompt[1]) for prompt in prompts]
        known = length

        def attend(layer: int, q: Any, k: Any, v: Any) -> Any:
            if fix:
                keys, values = roomy[layer]
                keys[:, :, known - 1 : known], values[:, :, known - 1 : known] = k, v
                keys, values = keys[:, :, :known], values[:, :, :known]
            else:
                keys, values = caches[layer]
                keys, values = torch.cat((keys, k), 2), torch.cat((values, v), 2)  # planted
                caches[layer] = keys, values
            return functional.scaled_dot_product_attention(q, keys, values)

        with torch.inference_mode():
            tokens, written = last, []
            for place in places:
                known += 1
                tokens = model(tokens, place, attend).argmax(-1, keepdim=True)
                written.append(tokens)
            return torch.cat(written, 1)

    return step
