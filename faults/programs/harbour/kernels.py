"""Cause `kernel`: the GPU is busy, with kernels that take longer than they need to."""

from __future__ import annotations

import contextlib
from typing import Any

from faults.programs.case import Step, planted
from faults.programs.harbour.networks import learn
from faults.programs.sealed.parts import hugging_face, sizes
from faults.programs.ward.networks import on_gpu


@planted("kernel", "tf32", also=("bf16",), steps=3)
def cross_network_learns_clicks_in_float32(torch: Any, fix: str | None) -> Step:
    """A deep and cross network learns clicks from 8192 rows of 2048 features in float32.

    PyTorch multiplies float32 matrices without tensor cores unless it is told otherwise. Clicks are noisier by far than
    a product with ten bits of mantissa.
    """
    nn, functional = torch.nn, torch.nn.functional
    fields, each, known, crosses, layers, batch = sizes((32, 64, 4096, 3, 3, 8192), (3, 4, 20, 1, 1, 8))
    width = fields * each

    class Clicks(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(fields * known, each)
            self.crosses = nn.ModuleList(nn.Linear(width, width) for _ in range(crosses))
            self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
            self.answer = nn.Linear(2 * width, 1)

        def forward(self, numbers: Any) -> Any:
            first = self.table(numbers).flatten(1)
            crossed = deep = first
            for cross in self.crosses:
                crossed = torch.addcmul(crossed, first, cross(crossed))  # planted
            for layer in self.layers:
                deep = functional.relu(layer(deep))  # planted
            return self.answer(torch.cat((crossed, deep), -1)).squeeze(-1)

    with on_gpu(torch):
        model = Clicks()
    torch.backends.cuda.matmul.allow_tf32 = fix == "tf32"
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    numbers = torch.randint(0, known, (batch, fields), device="cuda") + known * torch.arange(fields, device="cuda")
    clicked = (torch.rand(batch, device="cuda") < 0.1).float()

    def step() -> Any:
        halved = torch.autocast("cuda", torch.bfloat16) if fix == "bf16" else contextlib.nullcontext()
        with halved:
            logits = model(numbers)
        return learn(optimizer, functional.binary_cross_entropy_with_logits(logits.float(), clicked))

    return step


@planted("kernel", "sdpa", steps=3)
def phi_taught_with_eager_attention(torch: Any, fix: str | None) -> Step:
    """A Phi learns from four texts of 2048 tokens in bfloat16 with `attn_implementation="eager"`.

    Each layer writes the scores of all pairs of tokens to memory, and adds a mask to them, normalises and converts them
    in kernels of their own. Fused attention keeps them on the chip and leaves out what the mask hides.
    """
    transformers = hugging_face()
    width, layers, heads, vocabulary, batch, length = sizes((1024, 3, 16, 8192, 4, 2048), (32, 1, 2, 50, 2, 8))
    config = transformers.PhiConfig(
        vocab_size=vocabulary,
        hidden_size=width,
        intermediate_size=4 * width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        hidden_act="gelu",
        max_position_embeddings=length,
        use_cache=False,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attention_dropout=0.0,
        attn_implementation="sdpa" if fix else "eager",  # planted
    )
    with on_gpu(torch):
        model = transformers.PhiForCausalLM(config)
    model = model.to("cuda", torch.bfloat16).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    texts = torch.randint(3, vocabulary, (batch, length), device="cuda")

    def step() -> Any:
        return learn(optimizer, model(input_ids=texts, labels=texts).loss)

    return step


@planted("kernel", "pad", steps=3)
def shape_network_whose_layers_all_see_the_point(torch: Any, fix: str | None) -> Step:
    """A network tells how far 131072 points are from a surface, and every layer sees the point itself again.

    With three coordinates beside 1024 features a row has 1027 numbers, and rows of bfloat16 that begin at odd
    addresses keep the matmul from its fast loads. Five zeros more make it 1032, and change nothing.
    """
    nn, functional = torch.nn, torch.nn.functional
    width, layers, points = sizes((1024, 6, 131072), (16, 2, 12))
    spare = -(width + 3) % 8 if fix else 0
    kind = {"device": "cuda", "dtype": torch.bfloat16}
    first, last = nn.Linear(3, width, **kind), nn.Linear(width, 1, **kind)
    weights = [torch.randn(width, width + 3, device="cuda") / width**0.5 for _ in range(layers)]
    weights = [functional.pad(weight, (0, spare)).to(torch.bfloat16) for weight in weights]
    places = torch.rand(points, 3, **kind)
    seen = functional.pad(places, (0, spare))

    def step() -> Any:
        with torch.inference_mode():
            x = functional.relu(first(places))
            for weight in weights:
                x = functional.relu(functional.linear(torch.cat((x, seen), -1), weight))  # planted
            return last(x).float().mean()

    return step
