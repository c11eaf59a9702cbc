"""Cause `sync`: the CPU waits for the GPU within the step, and the GPU then waits for the CPU."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted
from faults.programs.harbour.networks import learn, transformer
from faults.programs.sealed.parts import hugging_face, sizes


@planted("sync", "remove_sync", steps=2)
def shop_that_ranks_customer_by_customer(torch: Any, fix: str | None) -> Step:
    """A sequential recommender is validated, and a loop takes the rank of what each of 192 customers bought.

    The first `.item()` waits for the whole forward pass, and each further one for a few short kernels. The ranks can
    stay on the GPU until the last customer, so that the loop is launched while the network still computes.
    """
    width, layers, heads, goods, customers, length = sizes((768, 6, 12, 32768, 192, 128), (16, 1, 2, 40, 4, 6))
    network = transformer(torch, width, layers, heads, causal=True).requires_grad_(False)
    items = torch.randn(goods, width, device="cuda", dtype=torch.bfloat16)
    baskets = torch.randint(0, goods, (customers, length), device="cuda")
    bought = [7 * customer % goods for customer in range(customers)]

    def step() -> Any:
        with torch.inference_mode():
            wishes = network(items[baskets])[:, -1]
            scores = wishes @ items.T
            ranks: list[Any] = []
            for customer, thing in enumerate(bought):
                rank = (scores[customer] > scores[customer, thing]).sum()
                ranks.append(rank if fix else rank.item())  # planted
            places = torch.stack(ranks).tolist() if fix else ranks
            return sum(1 / (1 + place) for place in places) / customers

    return step


@planted("sync", "remove_sync", steps=2)
def bart_whose_gradients_are_clipped_by_an_if(torch: Any, fix: str | None) -> Step:
    """A BART learns to summarise, and the gradient of each parameter is shortened `if` its norm is above a limit.

    Python asks the GPU for the answer, once for each of some 170 parameters. A factor of at most one, computed on the
    GPU, shortens the same gradients and leaves the others as they are.
    """
    transformers = hugging_face()
    width, layers, heads, vocabulary, batch, length = sizes((768, 4, 12, 8192, 40, 256), (16, 1, 2, 50, 2, 8))
    config = transformers.BartConfig(
        vocab_size=vocabulary,
        d_model=width,
        encoder_layers=layers,
        decoder_layers=layers,
        encoder_attention_heads=heads,
        decoder_attention_heads=heads,
        encoder_ffn_dim=4 * width,
        decoder_ffn_dim=4 * width,
        max_position_embeddings=length,
        dropout=0.0,
        attention_dropout=0.0,
        use_cache=False,
        attn_implementation="sdpa",
    )
    model = transformers.BartForConditionalGeneration(config).to("cuda", torch.bfloat16).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    texts = torch.randint(3, vocabulary, (batch, length), device="cuda")
    summaries = torch.randint(3, vocabulary, (batch, length // 4), device="cuda")
    limit = 0.01

    def clip() -> None:
        for gradient in (parameter.grad for parameter in model.parameters() if parameter.grad is not None):
            norm = gradient.norm()
            if fix:
                gradient.mul_((limit / norm).clamp(max=1.0))
            elif norm > limit:  # planted
                gradient.mul_(limit / norm)

    def step() -> Any:
        loss = model(input_ids=texts, labels=summaries).loss
        loss.backward()
        clip()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    return step


@planted("sync", "remove_sync", steps=2)
def speech_codec_that_looks_for_idle_codes(torch: Any, fix: str | None) -> Step:
    """A codec for speech learns four codebooks, and a loop asks of each code whether it was used, to revive it.

    Each of 256 questions waits for the GPU. `torch.where` replaces the idle codes of a book in one kernel, and nobody
    has to know which ones they are.
    """
    nn, functional = torch.nn, torch.nn.functional
    width, layers, heads, books, codes, batch, frames, piece = sizes(
        (1024, 3, 16, 4, 64, 16, 512, 320), (16, 1, 2, 2, 5, 2, 6, 8)
    )
    kind = {"device": "cuda", "dtype": torch.bfloat16}
    enter, leave = nn.Linear(piece, width, **kind), nn.Linear(width, piece, **kind)
    encoder, decoder = transformer(torch, width, layers, heads), transformer(torch, width, layers, heads)
    network = nn.ModuleList((enter, encoder, decoder, leave))
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-5, fused=True)
    tables = torch.randn(books, codes, width, **kind)
    fresh = torch.randn(books, codes, width, **kind)
    sound = torch.randn(batch, frames, piece, **kind)
    numbers = torch.arange(codes, device="cuda")

    def revive(book: int, used: Any) -> None:
        idle = used < 1
        if fix:
            tables[book] = torch.where(idle.unsqueeze(-1), fresh[book], tables[book])
            return
        for code in range(codes):
            if idle[code]:  # planted
                tables[book, code] = fresh[book, code]

    def quantized(x: Any) -> tuple[Any, list[Any]]:
        rest, total, uses = x.detach(), torch.zeros_like(x), []
        for book in range(books):
            nearest = torch.cdist(rest.flatten(0, 1).float(), tables[book].float()).argmin(-1)
            chosen = tables[book][nearest].view_as(x)
            uses.append((nearest.unsqueeze(-1) == numbers).sum(0))
            rest, total = rest - chosen, total + chosen
        return x + (total - x).detach(), uses

    def step() -> Any:
        codes_of, uses = quantized(encoder(enter(sound)))
        loss = functional.mse_loss(leave(decoder(codes_of)).float(), sound.float())
        result = learn(optimizer, loss)
        for book, used in enumerate(uses):
            revive(book, used)
        return result

    return step
