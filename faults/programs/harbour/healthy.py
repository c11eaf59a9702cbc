"""Healthy steps: six in which nothing is wrong, and two in which something looks wrong and costs nothing."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted
from faults.programs.harbour.networks import learn, transformer
from faults.programs.sealed.parts import graphed, hugging_face, sizes
from faults.programs.ward.networks import on_gpu, scaled


@planted("healthy", None, innocent="pin_memory", steps=3)
def starcoder_taught_in_wide_layers(torch: Any, fix: str | None) -> Step:
    """A StarCoder2 of two wide layers learns in bfloat16 with fused attention, from tokens in ordinary memory.

    The tokens are 32 KB, and the matmuls that follow have 4096 rows and columns at least. Pinned memory makes a copy
    faster that takes no time to speak of.
    """
    transformers = hugging_face()
    width, layers, heads, vocabulary, batch, length = sizes((4096, 2, 32, 16384, 2, 2048), (32, 1, 2, 50, 2, 8))
    config = transformers.Starcoder2Config(
        vocab_size=vocabulary,
        hidden_size=width,
        intermediate_size=4 * width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        max_position_embeddings=length,
        use_cache=False,
        residual_dropout=0.0,
        embedding_dropout=0.0,
        attention_dropout=0.0,
        bos_token_id=0,
        eos_token_id=0,
        attn_implementation="sdpa",
    )
    with on_gpu(torch):
        model = transformers.Starcoder2ForCausalLM(config)
    model = model.to("cuda", torch.bfloat16).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6, fused=True)
    tokens = torch.randint(3, vocabulary, (batch, length))
    tokens = tokens.pin_memory() if fix else tokens

    def step() -> Any:
        texts = tokens.to("cuda", non_blocking=bool(fix))
        return learn(optimizer, model(input_ids=texts, labels=texts).loss)

    return step


@planted("healthy", None, innocent="cuda_graph", steps=3)
def siglip_embeds_photographs_in_large_batches(torch: Any, fix: str | None) -> Step:
    """A SigLIP embeds 96 photographs at a time in bfloat16 with fused attention.

    Its matmuls have 24576 rows and take most of the time, and the CPU is far ahead of the GPU. A CUDA graph would save
    launches that nobody waits for.
    """
    transformers = hugging_face()
    width, layers, heads, side, patch, batch = sizes((2048, 4, 32, 256, 16, 96), (32, 1, 2, 16, 8, 2))
    config = transformers.SiglipVisionConfig(
        hidden_size=width,
        intermediate_size=4 * width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        image_size=side,
        patch_size=patch,
        vision_use_head=False,
        attn_implementation="sdpa",
    )
    with on_gpu(torch):
        model = transformers.SiglipVisionModel(config)
    model = model.to("cuda", torch.bfloat16).eval().requires_grad_(False)
    photographs = torch.randn(batch, 3, side, side, device="cuda", dtype=torch.bfloat16)
    vectors = torch.zeros(batch, width, device="cuda")

    def embed() -> None:
        seen = model(pixel_values=photographs).last_hidden_state.float().mean(1)
        vectors.copy_(torch.nn.functional.normalize(seen, dim=-1))

    with torch.inference_mode():
        run = graphed(torch, embed) if fix else embed

    def step() -> Any:
        with torch.inference_mode():
            run()
        return vectors

    return step


@planted("healthy", None, innocent="pin_memory", steps=3)
def pictures_and_words_denoised_together(torch: Any, fix: str | None) -> Step:
    """A flow-matching transformer learns to draw: pictures and words go through its wide layers side by side.

    It works in bfloat16 with fused attention and a fused optimizer. A batch is one megabyte from ordinary memory, and
    that is little beside a step of wide matmuls.
    """
    nn, functional = torch.nn, torch.nn.functional
    width, layers, heads, batch, patches, each, words = sizes((3072, 2, 24, 8, 1024, 64, 256), (16, 1, 2, 2, 6, 4, 3))
    kind = {"device": "cuda", "dtype": torch.bfloat16}
    enter, tell, leave = nn.Linear(each, width, **kind), nn.Linear(width, width, **kind), nn.Linear(width, each, **kind)
    network = nn.ModuleList((enter, tell, transformer(torch, width, layers, heads), leave))
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-6, fused=True)
    pictures = torch.randn(batch, patches, each).to(torch.bfloat16)
    pictures = pictures.pin_memory() if fix else pictures
    prompts = torch.randn(batch, words, width, **kind)
    noise, times = torch.randn(batch, patches, each, **kind), torch.rand(batch, 1, 1, **kind)

    def step() -> Any:
        clear = pictures.to("cuda", non_blocking=bool(fix))
        mixed = times * noise + (1 - times) * clear
        seen = network[2](torch.cat((tell(prompts), enter(mixed)), 1))[:, words:]
        return learn(optimizer, functional.mse_loss(leave(seen).float(), (noise - clear).float()))

    return step


@planted("healthy", None, innocent="cuda_graph", steps=3)
def positions_of_go_judged_by_the_hundred(torch: Any, fix: str | None) -> Step:
    """A residual network judges 512 positions of Go in bfloat16 with its channels last, for a search that waits.

    Each convolution has 512 channels on 184832 points and works for long. Launching one takes the CPU a small part of
    that.
    """
    nn, functional = torch.nn, torch.nn.functional
    width, blocks, planes, side, batch = sizes((512, 5, 32, 19, 512), (8, 1, 4, 5, 2))

    class Block(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = (nn.Conv2d(width, width, 3, padding=1, bias=False) for _ in range(2))

        def forward(self, x: Any) -> Any:
            return functional.relu(x + self.second(functional.relu(self.first(x))))

    stem = nn.Conv2d(planes, width, 3, padding=1, bias=False)
    tower = scaled(torch, nn.Sequential(stem, *(Block() for _ in range(blocks))).to("cuda"), 0.5)
    tower = tower.to(torch.bfloat16, memory_format=torch.channels_last).requires_grad_(False)
    heads = nn.Linear(width, 2).to("cuda", torch.bfloat16).requires_grad_(False)
    boards = torch.randn(batch, planes, side, side, device="cuda", dtype=torch.bfloat16)
    boards = boards.contiguous(memory_format=torch.channels_last)
    verdicts = torch.zeros(batch, 2, device="cuda")

    def judge() -> None:
        verdicts.copy_(torch.tanh(heads(tower(boards).mean((2, 3))).float()))

    with torch.inference_mode():
        run = graphed(torch, judge) if fix else judge

    def step() -> Any:
        with torch.inference_mode():
            run()
        return verdicts

    return step


@planted("healthy", None, innocent="tf32", steps=3)
def genome_read_in_long_windows(torch: Any, fix: str | None) -> Step:
    """A wide transformer learns hidden bases in four windows of 4096 in bfloat16; its last layer is in float32.

    That layer tells four bases apart and takes next to no time. All large matmuls run on tensor cores already, and
    TF32 changes none of them.
    """
    nn, functional = torch.nn, torch.nn.functional
    width, layers, heads, batch, length = sizes((2560, 2, 20, 4, 4096), (16, 1, 2, 2, 8))
    torch.backends.cuda.matmul.allow_tf32 = bool(fix)
    table = nn.Embedding(5, width, device="cuda", dtype=torch.bfloat16)
    reader, answer = transformer(torch, width, layers, heads), nn.Linear(width, 4, device="cuda")
    network = nn.ModuleList((table, reader, answer))
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-6, fused=True)
    bases = torch.randint(0, 4, (batch, length), device="cuda")
    shown = torch.where(torch.rand(batch, length, device="cuda") < 0.15, 4, bases)

    def step() -> Any:
        logits = answer(reader(table(shown)).float())
        return learn(optimizer, functional.cross_entropy(logits.flatten(0, 1), bases.flatten()))

    return step


@planted("healthy", None, innocent="cuda_graph", steps=3)
def perceiver_that_reads_whole_films(torch: Any, fix: str | None) -> Step:
    """A Perceiver reads 16 films of 8192 patches into 1024 wide latents, and thinks about them in four layers.

    All of it is wide matmuls and fused attention in bfloat16, and the CPU is far ahead of the GPU. A CUDA graph would
    save launches that nobody waits for.
    """
    nn, functional = torch.nn, torch.nn.functional
    width, heads, layers, batch, patches, each, latents = sizes(
        (2048, 16, 4, 16, 8192, 512, 1024), (16, 2, 1, 2, 9, 4, 3)
    )
    kind = {"device": "cuda", "dtype": torch.bfloat16}
    ask, offer = nn.Linear(width, width, **kind), nn.Linear(each, 2 * width, **kind)
    network = nn.ModuleList((ask, offer, nn.Linear(width, width, **kind), transformer(torch, width, layers, heads)))
    network.requires_grad_(False)
    questions = torch.randn(batch, latents, width, **kind)
    films = torch.randn(batch, patches, each, **kind)
    thoughts = torch.zeros(batch, width, device="cuda")

    def read() -> None:
        query = ask(questions).unflatten(-1, (heads, -1)).transpose(1, 2)
        key, value = offer(films).unflatten(-1, (2, heads, width // heads)).permute(2, 0, 3, 1, 4)
        read = functional.scaled_dot_product_attention(query, key, value).transpose(1, 2).flatten(2)
        thoughts.copy_(network[3](questions + network[2](read)).float().mean(1))

    with torch.inference_mode():
        run = graphed(torch, read) if fix else read

    def step() -> Any:
        with torch.inference_mode():
            run()
        return thoughts

    return step


@planted("healthy", None, innocent="remove_sync", trap=True, steps=3)
def decisions_learned_with_the_loss_on_the_screen(torch: Any, fix: str | None) -> Step:
    """A decision transformer learns from games that were played before, and prints its loss after every step.

    `.item()` waits for the whole step, and the GPU then waits for a few launches only: the first kernels of the next
    step work for longer than it takes to launch the ones behind them.
    """
    nn, functional = torch.nn, torch.nn.functional
    width, layers, heads, batch, moments, sight, moves = sizes((2048, 5, 16, 8, 1024, 1024, 16), (16, 1, 2, 2, 6, 8, 3))
    kind = {"device": "cuda", "dtype": torch.bfloat16}
    enter, leave = nn.Linear(sight, width, **kind), nn.Linear(width, moves, **kind)
    network = nn.Sequential(enter, *transformer(torch, width, layers, heads, causal=True), leave)
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-6, fused=True)
    games = torch.randn(batch, moments, sight, **kind)
    made = torch.randint(0, moves, (batch * moments,), device="cuda")
    shown: list[Any] = []

    def step() -> Any:
        loss = learn(optimizer, functional.cross_entropy(network(games).flatten(0, 1).float(), made))
        shown[:] = [loss if fix else loss.item()]
        return shown[0]

    return step


@planted("healthy", None, innocent="pin_memory", trap=True, steps=3)
def scans_copied_while_the_last_ones_are_learned(torch: Any, fix: str | None) -> Step:
    """A network learns from slices of scans, and copies the next ones from ordinary memory on a stream of its own.

    The copy of 34 MB keeps the CPU for some milliseconds, but the whole step is launched before it, and the GPU works
    on that for longer.
    """
    nn, functional = torch.nn, torch.nn.functional
    width, layers, heads, batch, patches, each, organs = sizes((2048, 5, 16, 16, 512, 1024, 16), (16, 1, 2, 2, 5, 4, 3))
    kind = {"device": "cuda", "dtype": torch.bfloat16}
    enter, leave = nn.Linear(each, width, **kind), nn.Linear(width, organs, **kind)
    network = nn.Sequential(enter, *transformer(torch, width, layers, heads), leave)
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-6, fused=True)
    slices = torch.randn(batch, patches, each)
    slices = slices.pin_memory() if fix else slices
    truth = torch.randint(0, organs, (batch * patches,), device="cuda")
    side = torch.cuda.Stream()
    ready = [slices.to("cuda")]

    def step() -> Any:
        now = ready.pop()
        logits = network(now.to(torch.bfloat16)).flatten(0, 1)
        loss = learn(optimizer, functional.cross_entropy(logits.float(), truth))
        with torch.cuda.stream(side):
            ready.append(slices.to("cuda", non_blocking=True))
        torch.cuda.current_stream().wait_stream(side)
        ready[0].record_stream(torch.cuda.current_stream())
        return loss

    return step
