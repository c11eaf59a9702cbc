"""Healthy steps: six in which nothing is wrong, and two in which something looks wrong and costs nothing."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted
from faults.programs.clinic.networks import diffusion_network, encoder
from faults.programs.sealed.parts import graphed, hugging_face, sizes


@planted("healthy", None, innocent="pin_memory", steps=3)
def neox_trained_on_long_texts(torch: Any, fix: str | None) -> Step:
    """A wide GPT-NeoX is trained in bfloat16 on four texts of 2048 tokens, which come from pageable memory.

    The tokens are 64 KB, and the GPU works for many milliseconds on them. Pinned memory makes a copy faster that takes
    no time to speak of.
    """
    transformers = hugging_face()
    width, layers, heads, vocabulary, batch, length = sizes((2048, 3, 16, 8192, 4, 2048), (32, 1, 2, 100, 2, 8))
    config = transformers.GPTNeoXConfig(
        vocab_size=vocabulary,
        hidden_size=width,
        intermediate_size=4 * width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        max_position_embeddings=length,
        use_cache=False,
    )
    model = transformers.GPTNeoXForCausalLM(config).to("cuda", torch.bfloat16).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, betas=(0.9, 0.95), fused=True)
    texts = torch.randint(0, vocabulary, (batch, length))
    texts = texts.pin_memory() if fix else texts

    def step() -> Any:
        tokens = texts.to("cuda", non_blocking=True)
        loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    return step


@planted("healthy", None, innocent="cuda_graph")
def whisper_listens_to_many_recordings(torch: Any, fix: str | None) -> Step:
    """A Whisper encoder listens to 24 recordings of thirty seconds at a time, in bfloat16 and with fused attention.

    Each of its matmuls has 36 000 rows, and the CPU is far ahead of the GPU. A CUDA graph would save launches that
    nobody waits for.
    """
    transformers = hugging_face()
    width, layers, heads, batch, frames = sizes((1280, 5, 20, 24, 1500), (32, 1, 2, 2, 40))
    config = transformers.WhisperConfig(
        vocab_size=200,
        d_model=width,
        encoder_layers=layers,
        encoder_attention_heads=heads,
        encoder_ffn_dim=4 * width,
        decoder_layers=1,
        decoder_attention_heads=heads,
        decoder_ffn_dim=width,
        max_source_positions=frames,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
    )
    whisper = transformers.AutoModel.from_config(config, attn_implementation="sdpa")
    listener = whisper.get_encoder().to("cuda", torch.bfloat16).eval().requires_grad_(False)
    spectra = torch.randn(batch, 80, 2 * frames, device="cuda", dtype=torch.bfloat16)
    vectors = torch.zeros(batch, width, device="cuda")

    def listen() -> None:
        vectors.copy_(listener(input_features=spectra).last_hidden_state.mean(1))

    with torch.inference_mode():
        run = graphed(torch, listen) if fix else listen

    def step() -> Any:
        with torch.inference_mode():
            run()
            return vectors

    return step


@planted("healthy", None, innocent="preallocate")
def unet_denoises_a_large_batch(torch: Any, fix: str | None) -> Step:
    """A wide U-Net removes some noise from 48 images of 64 x 64 pixels, in bfloat16 with its channels last.

    Nearly all of the time goes into large convolutions on the tensor cores. The noise is a new tensor each time, but
    its memory comes from the allocator's cache: a buffer that is kept saves nothing that can be seen.
    """
    images, pixels, width = sizes((48, 64, 384), (2, 8, 8))
    model = diffusion_network(torch, 8, width).to("cuda", torch.bfloat16).to(memory_format=torch.channels_last).eval()
    noisy = torch.randn(images, 8, pixels, pixels, device="cuda").to(torch.bfloat16)
    noisy = noisy.to(memory_format=torch.channels_last)
    time = torch.full((images,), 0.5, device="cuda", dtype=torch.bfloat16)
    kept = torch.empty_like(noisy)

    def step() -> Any:
        with torch.inference_mode():
            noise = kept.normal_() if fix else torch.randn_like(noisy)
            return noisy - 0.1 * model(noisy, time) + 0.01 * noise

    return step


@planted("healthy", None, innocent="fused_optimizer", steps=3)
def bert_learns_hidden_words_in_large_batches(torch: Any, fix: str | None) -> Step:
    """A wide BERT learns hidden words in bfloat16 from 96 texts of 256 tokens, with AdamW as PyTorch makes it.

    The optimizer updates all parameters with a few launches per operation, in a small part of a step. A fused optimizer
    could save most of that, and nobody would notice.
    """
    transformers = hugging_face()
    width, layers, heads, vocabulary, batch, length = sizes((1536, 4, 16, 8192, 96, 256), (32, 1, 2, 100, 4, 24))
    config = transformers.BertConfig(
        vocab_size=vocabulary,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * width,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    model = transformers.BertForMaskedLM(config).to("cuda", torch.bfloat16).train()
    kind = {"fused": True} if fix else {"foreach": True}
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, **kind)
    tokens = torch.randint(0, vocabulary, (batch, length), device="cuda")
    hidden = torch.rand(batch, length, device="cuda") < 0.15
    labels, shown = torch.where(hidden, tokens, -100), torch.where(hidden, 3, tokens)

    def step() -> Any:
        loss = model(input_ids=shown, labels=labels).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    return step


@planted("healthy", None, innocent="batch", steps=3)
def forecaster_that_adds_up_two_halves(torch: Any, fix: str | None) -> Step:
    """A wide transformer learns to forecast 64 series in bfloat16, and adds up the gradients of two halves of a batch.

    Each half already fills the GPU with every matmul, and the CPU is far ahead of it. All series in one batch take as
    long.
    """
    nn, functional = torch.nn, torch.nn.functional
    width, layers, heads, series, patches, values = sizes((2048, 3, 16, 64, 256, 16), (32, 1, 2, 4, 6, 3))
    model = nn.Sequential(nn.Linear(values, width), encoder(torch, width, layers, heads), nn.Linear(width, values))
    model = model.to("cuda", torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    past, future = torch.randn(2, series, patches, values, device="cuda").to(torch.bfloat16).unbind(0)
    parts = 1 if fix else 2

    def step() -> Any:
        optimizer.zero_grad(set_to_none=True)
        total = torch.zeros((), device="cuda")
        for seen, wanted in zip(past.chunk(parts), future.chunk(parts), strict=True):
            loss = functional.mse_loss(model(seen).float(), wanted.float()) / parts
            loss.backward()
            total += loss.detach()
        optimizer.step()
        return total

    return step


@planted("healthy", None, innocent="cuda_graph")
def ranker_of_many_bags(torch: Any, fix: str | None) -> Step:
    """A ranking model adds up 40 rows of each of 20 large tables for 32768 visitors, and scores the sums.

    The bags of rows are read at the memory's bandwidth, some hundred microseconds per launch. A CUDA graph would save
    launches that nobody waits for.
    """
    nn = torch.nn
    torch.backends.cuda.matmul.allow_tf32 = True
    tables, rows, width, visitors, bag = sizes((20, 500_000, 128, 32768, 40), (3, 50, 8, 6, 3))
    bags = nn.ModuleList(nn.EmbeddingBag(rows, width, mode="sum", device="cuda") for _ in range(tables))
    top = nn.Sequential(nn.Linear(tables * width, 256), nn.ReLU(), nn.Linear(256, 1)).to("cuda")
    for part in (bags, top):
        part.requires_grad_(False)
    seen = torch.randint(0, rows, (tables, visitors, bag), device="cuda").unbind(0)
    scores = torch.zeros(visitors, device="cuda")

    def rank() -> None:
        known = torch.cat([table(chosen) for table, chosen in zip(bags, seen, strict=True)], -1)
        scores.copy_(top(known).squeeze(-1).sigmoid())

    with torch.inference_mode():
        run = graphed(torch, rank) if fix else rank

    def step() -> Any:
        with torch.inference_mode():
            run()
            return scores

    return step


@planted("healthy", None, innocent="remove_sync", trap=True)
def actor_critic_that_prints_its_losses(torch: Any, fix: str | None) -> Step:
    """A wide actor and critic learn from 32768 moments a step in bfloat16, and print both losses with `.item()`.

    The CPU waits most of a step in the first `.item()`, because it has launched everything by then. The next step's
    first matmuls are large, so that the CPU is ahead again before they end.
    """
    nn, functional = torch.nn, torch.nn.functional
    width, moments, senses, moves = sizes((2048, 32768, 256, 64), (16, 8, 6, 3))

    def network(outputs: int) -> Any:
        layers: list[Any] = [nn.Linear(senses, width), nn.ReLU()]
        layers += [nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()]
        return nn.Sequential(*layers, nn.Linear(width, outputs)).to("cuda", torch.bfloat16)

    actor, critic = network(moves), network(1)
    optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=1e-5, fused=True)
    states = torch.randn(moments, senses, device="cuda").to(torch.bfloat16)
    taken, returns = torch.randint(0, moves, (moments, 1), device="cuda"), torch.randn(moments, device="cuda")

    def step() -> Any:
        optimizer.zero_grad(set_to_none=True)
        value = critic(states).squeeze(-1).float()
        chances = actor(states).float().log_softmax(-1).gather(-1, taken).squeeze(-1)
        error = functional.smooth_l1_loss(value, returns)
        gain = (chances * (returns - value.detach())).mean()
        (0.5 * error - gain).backward()
        optimizer.step()
        losses = (error.detach(), gain.detach())
        return torch.stack(losses) if fix else [loss.item() for loss in losses]

    return step


@planted("healthy", None, innocent="batch", trap=True, steps=3)
def vit_with_an_average_kept_by_a_loop(torch: Any, fix: str | None) -> Step:
    """A wide ViT is trained in bfloat16, and a loop keeps a float32 average of its weights, parameter by parameter.

    That is over a hundred small kernels, but the CPU launches them while the GPU still has milliseconds of the backward
    pass before it. To update all averages at once saves launches that nobody waits for.
    """
    transformers = hugging_face()
    width, layers, heads, pixels, classes, batch = sizes((1536, 4, 16, 224, 1000, 96), (32, 1, 2, 32, 10, 2))
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
    weights = [parameter.detach() for parameter in model.parameters()]
    average, latest = ([weight.float() for weight in weights] for _ in range(2))

    def keep_average() -> None:
        if fix:
            torch._foreach_copy_(latest, weights)
            torch._foreach_lerp_(average, latest, 0.001)
            return
        for kept, copied, weight in zip(average, latest, weights, strict=True):
            copied.copy_(weight)
            kept.lerp_(copied, 0.001)

    def step() -> Any:
        loss = model(pixel_values=images, labels=labels).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        keep_average()
        return loss.detach()

    return step
