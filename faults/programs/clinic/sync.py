"""Cause `sync`: the CPU waits for the GPU, and then the GPU waits for the CPU."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted
from faults.programs.clinic.networks import diffusion_network
from faults.programs.sealed.parts import hugging_face, sizes


@planted("sync", "remove_sync", steps=3)
def search_that_picks_varied_results_by_number(torch: Any, fix: str | None) -> Step:
    """A search embeds four questions with a BERT, scores eight million documents, and picks varied results for each.

    Each pick is the best document that is unlike those picked before, and `int(argmax())` brings its number to the CPU,
    which waits for all that the GPU still has to do. A number that stays on the GPU picks the row as well, and the
    picks are launched while the GPU scores the documents.
    """
    transformers, functional = hugging_face(), torch.nn.functional
    width, layers, heads, vocabulary, questions, length, documents, near, picks = sizes(
        (768, 6, 12, 8192, 4, 128, 8_000_000, 100, 10), (32, 1, 2, 100, 2, 8, 50, 6, 3)
    )
    config = transformers.BertConfig(
        vocab_size=vocabulary,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * width,
    )
    model = transformers.BertModel(config, add_pooling_layer=False).to("cuda", torch.bfloat16).eval()
    tokens = torch.randint(0, vocabulary, (questions, length), device="cuda")
    library = torch.empty(documents, width, device="cuda", dtype=torch.bfloat16).normal_(0, width**-0.5)

    def varied(score: Any, found: Any) -> Any:
        vectors = library[found].float()
        alike = vectors @ vectors.T
        best = score.argmax()
        chosen, likeness = [best], torch.zeros_like(score)
        taken = torch.zeros_like(score)
        for _ in range(picks - 1):
            if fix:
                likeness = torch.maximum(likeness, alike.index_select(0, best.view(1)).squeeze(0))
                taken.index_fill_(0, best.view(1), 10.0)
            else:
                place = int(best)  # planted
                likeness = torch.maximum(likeness, alike[place])
                taken[place] = 10.0
            best = (0.7 * score - 0.3 * likeness - taken).argmax()
            chosen.append(best)
        return found[torch.stack(chosen)]

    def step() -> Any:
        with torch.inference_mode():
            vectors = functional.normalize(model(input_ids=tokens).last_hidden_state.mean(1), dim=-1)
            likely, found = (vectors @ library.T).float().topk(near, -1)
            return torch.stack([varied(score, places) for score, places in zip(likely, found, strict=True)])

    return step


@planted("sync", "remove_sync", steps=3)
def diffusion_losses_sorted_into_a_histogram(torch: Any, fix: str | None) -> Step:
    """A U-Net learns to remove noise, and the loop adds each image's loss to the bucket of its time with `.item()`.

    Two numbers of 96 images are 192 small copies for which the CPU waits, and the GPU has nothing to do meanwhile.
    `index_add_` fills the same buckets on the GPU, and the CPU goes on to the next step.
    """
    images, pixels, width, times, buckets = sizes((96, 64, 64, 1000, 10), (3, 8, 8, 20, 4))
    model = diffusion_network(torch, 3, width).to("cuda", memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    clean = torch.rand(images, 3, pixels, pixels, device="cuda").to(memory_format=torch.channels_last)
    kept = torch.linspace(1, 0.01, times, device="cuda")
    sums, counts = [0.0] * buckets, [0] * buckets
    totals = torch.zeros(2, buckets, device="cuda")

    def note(time: Any, errors: Any) -> None:
        if fix:
            where = time * buckets // times
            totals[0].index_add_(0, where, errors)
            totals[1].index_add_(0, where, torch.ones_like(errors))
            return
        for moment, error in zip(time, errors, strict=True):
            bucket = moment.item() * buckets // times  # planted
            sums[bucket] += error.item()  # planted
            counts[bucket] += 1

    def step() -> Any:
        time = torch.randint(0, times, (images,), device="cuda")
        noise = torch.randn_like(clean)
        share = kept[time].view(-1, 1, 1, 1)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16):
            guess = model(share.sqrt() * clean + (1 - share).sqrt() * noise, time / times)
        errors = (guess.float() - noise).square().mean((1, 2, 3))
        errors.mean().backward()
        optimizer.step()
        note(time, errors.detach())
        return totals if fix else [sums, counts]

    return step


@planted("sync", "remove_sync", steps=3)
def vit_that_looks_for_broken_gradients(torch: Any, fix: str | None) -> Step:
    """A ViT is trained in bfloat16, and after each backward pass `if isnan(...).any()` looks at every gradient.

    There are a hundred gradients. The CPU waits for the answer about each before it asks about the next, and the GPU
    idles between the questions. The answers can be counted on the GPU and read when somebody wants to know.
    """
    transformers = hugging_face()
    width, layers, heads, pixels, classes, batch = sizes((768, 6, 12, 224, 1000, 64), (32, 1, 2, 32, 10, 2))
    config = transformers.ViTConfig(
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * width,
        image_size=pixels,
        num_labels=classes,
    )
    model = transformers.ViTForImageClassification(config).to("cuda", torch.bfloat16).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    images = torch.randn(batch, 3, pixels, pixels, device="cuda", dtype=torch.bfloat16)
    labels = torch.randint(0, classes, (batch,), device="cuda")
    broken = torch.zeros((), device="cuda")

    def look() -> None:
        answers = []
        for parameter in model.parameters():
            wrong = torch.isnan(parameter.grad).any()
            if fix:
                answers.append(wrong)
            elif wrong:  # planted
                broken.add_(1)
        if fix:
            broken.add_(torch.stack(answers).sum())

    def step() -> Any:
        loss = model(pixel_values=images, labels=labels).loss
        loss.backward()
        look()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return torch.stack((loss.detach().float(), broken))

    return step
