"""Healthy steps: six in which nothing is wrong, and two in which something looks wrong and costs nothing."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted
from faults.programs.sealed.parts import endless, graphed, hugging_face, sizes
from faults.programs.sealed.vision import residual_network


class Thumbnails:
    """Images as bytes, cropped when they are asked for."""

    def __init__(self, torch: Any, pixels: int, classes: int) -> None:
        self._torch, self._pixels, self._classes = torch, pixels, classes
        self._stored = torch.randint(0, 256, (64, 3, pixels + 16, pixels + 16), dtype=torch.uint8)

    def __len__(self) -> int:
        return 500_000

    def __getitem__(self, index: int) -> tuple[Any, int]:
        top, left = index % 16, index // 16 % 16
        image = self._stored[index % 64, :, top : top + self._pixels, left : left + self._pixels]
        return image.contiguous(), index % self._classes


@planted("healthy", None, innocent="prefetch", steps=3)
def vit_fed_by_workers(torch: Any, fix: str | None) -> Step:
    """A wide ViT is trained in bfloat16 on bytes that eight workers crop into pinned memory.

    The workers are far ahead of the GPU, and the copy of a batch takes a small part of a step. To make that copy one
    batch ahead, on a stream of its own, gains next to nothing.
    """
    transformers = hugging_face()
    width, layers, heads, pixels, classes, batch = sizes((1536, 6, 16, 224, 1000, 64), (32, 2, 2, 32, 10, 2))
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
    workers = sizes(8, 1)
    loader = torch.utils.data.DataLoader(
        Thumbnails(torch, pixels, classes),
        batch_size=batch,
        shuffle=True,
        drop_last=True,
        num_workers=workers,
        pin_memory=True,
        persistent_workers=True,
    )
    source = endless(loader)
    side = torch.cuda.Stream() if fix else None
    ahead: list[Any] = []

    def copied() -> list[Any]:
        return [part.to("cuda", non_blocking=True) for part in next(source)]

    def copied_ahead() -> list[Any]:
        with torch.cuda.stream(side):
            ahead.append(copied())
        if len(ahead) < 2:
            return copied_ahead()
        torch.cuda.current_stream().wait_stream(side)
        parts: list[Any] = ahead.pop(0)
        for part in parts:
            part.record_stream(torch.cuda.current_stream())
        return parts

    def step() -> Any:
        images, labels = copied_ahead() if fix else copied()
        loss = model(pixel_values=(images.to(torch.bfloat16) - 127.5) / 127.5, labels=labels).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    return step


@planted("healthy", None, innocent="channels_last")
def clip_embeds_a_large_batch(torch: Any, fix: str | None) -> Step:
    """A CLIP vision tower embeds 128 images at a time in bfloat16, and its images lie in memory channels first.

    The only convolution cuts the images into patches; all else is matmuls and fused attention, for which the layout of
    the images does not matter.
    """
    transformers = hugging_face()
    width, layers, heads, pixels, batch = sizes((1664, 8, 16, 224, 128), (32, 2, 2, 32, 2))
    layout = torch.channels_last if fix else torch.contiguous_format
    config = transformers.CLIPVisionConfig(
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * width,
        image_size=pixels,
        patch_size=16,
        projection_dim=512,
    )
    model = transformers.CLIPVisionModelWithProjection(config)
    model = model.to("cuda", torch.bfloat16).to(memory_format=layout).eval()
    images = torch.randn(batch, 3, pixels, pixels, device="cuda", dtype=torch.bfloat16).to(memory_format=layout)

    def step() -> Any:
        with torch.inference_mode():
            vectors = model(pixel_values=images).image_embeds
            return torch.nn.functional.normalize(vectors, dim=-1)

    return step


@planted("healthy", None, innocent="fused_optimizer", steps=3)
def resnet_with_an_average_of_its_weights(torch: Any, fix: str | None) -> Step:
    """A ResNet-50 is trained channels last under autocast, with SGD and an exponential average of its weights.

    The optimizer and the average update all parameters with a few launches each, and take one part in fifty of a step.
    A fused optimizer could save a fraction of that.
    """
    functional = torch.nn.functional
    batch, pixels, width, blocks, classes = sizes((128, 224, 64, (3, 4, 6, 3), 1000), (2, 64, 4, (1, 1, 1, 1), 10))
    model = residual_network(torch, width, blocks, classes).to("cuda", memory_format=torch.channels_last)
    kind = {"fused": True} if fix else {"foreach": True}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4, **kind)
    average = [parameter.detach().clone() for parameter in model.parameters()]
    images = torch.randn(batch, 3, pixels, pixels, device="cuda").to(memory_format=torch.channels_last)
    labels = torch.randint(0, classes, (batch,), device="cuda")

    def step() -> Any:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16):
            loss = functional.cross_entropy(model(images), labels, label_smoothing=0.1)
        loss.backward()
        optimizer.step()
        torch._foreach_lerp_(average, [parameter.detach() for parameter in model.parameters()], 0.001)
        return loss.detach()

    return step


@planted("healthy", None, innocent="cuda_graph")
def neighbours_averaged_over_a_large_graph(torch: Any, fix: str | None) -> Step:
    """A GraphSAGE network computes vectors of all 200 000 nodes of a graph of four million edges, layer by layer.

    A dozen launches keep the GPU busy for milliseconds: they gather rows, add them up and multiply by weights. A CUDA
    graph would save launches that nobody waits for.
    """
    nn = torch.nn
    torch.backends.cuda.matmul.allow_tf32 = True
    nodes, edges, width, layers = sizes((200_000, 4_000_000, 128, 3), (50, 200, 8, 2))
    own = nn.ModuleList(nn.Linear(width, width) for _ in range(layers)).to("cuda").requires_grad_(False)
    others = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(layers)).to("cuda").requires_grad_(False)
    start = torch.randn(nodes, width, device="cuda")
    source, target = torch.randint(0, nodes, (2, edges), device="cuda").unbind(0)
    degree = torch.zeros(nodes, device="cuda").index_add_(0, target, torch.ones(edges, device="cuda"))
    share = degree.clamp(min=1).reciprocal().unsqueeze(1)
    vectors = torch.zeros(nodes, width, device="cuda")

    def embed() -> None:
        x = start
        for mine, theirs in zip(own, others, strict=True):
            received = torch.zeros(nodes, width, device="cuda").index_add_(0, target, x.index_select(0, source))
            x = torch.relu_(mine(x) + theirs(received * share))
        vectors.copy_(nn.functional.normalize(x, dim=-1))

    run = graphed(torch, embed) if fix else embed

    def step() -> Any:
        run()
        return vectors

    return step


@planted("healthy", None, innocent="remove_sync", steps=3)
def speech_with_a_gradient_scaler(torch: Any, fix: str | None) -> Step:
    """A speech recogniser of convolutions and a transformer learns with CTC in float16, with a `GradScaler`.

    The scaler reads on the CPU whether the gradients are finite, once per step. A step is long, and its first kernels
    are large, so that the GPU is busy again at once.
    """
    nn, functional = torch.nn, torch.nn.functional
    width, layers, heads, batch, frames, letters, said = sizes((1024, 6, 16, 48, 1600, 64, 80), (16, 2, 2, 2, 64, 8, 4))

    class Recogniser(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.front = nn.Sequential(
                nn.Conv1d(80, width, 3, stride=2, padding=1), nn.GELU(),
                nn.Conv1d(width, width, 3, stride=2, padding=1), nn.GELU(),
            )  # fmt: skip
            layer = nn.TransformerEncoderLayer(
                width, heads, 4 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
            )
            self.body = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
            self.head = nn.Linear(width, letters)

        def forward(self, spectra: Any) -> Any:
            return self.head(self.body(self.front(spectra).transpose(1, 2)))

    model = Recogniser().to("cuda").train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    scaler = torch.amp.GradScaler("cuda", init_scale=1024.0, enabled=not fix)
    spectra = torch.randn(batch, 80, frames, device="cuda")
    text = torch.randint(1, letters, (batch, said), device="cuda")
    heard, spoken = torch.full((batch,), frames // 4), torch.full((batch,), said)

    def step() -> Any:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.float16):
            logits = model(spectra)
        chances = logits.float().log_softmax(-1).transpose(0, 1)
        loss = functional.ctc_loss(chances, text, heard, spoken, zero_infinity=True)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        return loss.detach()

    return step


@planted("healthy", None, innocent="pin_memory")
def roberta_scores_documents(torch: Any, fix: str | None) -> Step:
    """A RoBERTa scores 128 documents in bfloat16, whose tokens come from pageable memory.

    The tokens are a quarter of a megabyte, and the GPU works for milliseconds on them. Pinned memory makes a copy
    faster that takes no time to speak of.
    """
    transformers = hugging_face()
    width, layers, heads, vocabulary, batch, length = sizes((1536, 6, 16, 30000, 128, 256), (32, 2, 2, 100, 2, 8))
    config = transformers.RobertaConfig(
        vocab_size=vocabulary,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * width,
        max_position_embeddings=length + 2,
        num_labels=1,
        pad_token_id=1,
    )
    model = transformers.RobertaForSequenceClassification(config).to("cuda", torch.bfloat16).eval()
    documents = torch.randint(2, vocabulary, (batch, length))
    documents = documents.pin_memory() if fix else documents
    mask = torch.ones(batch, length, device="cuda", dtype=torch.long)

    def step() -> Any:
        with torch.inference_mode():
            tokens = documents.to("cuda", non_blocking=True)
            return model(input_ids=tokens, attention_mask=mask).logits.sigmoid()

    return step


@planted("healthy", None, innocent="remove_sync", trap=True, steps=3)
def llama_that_prints_its_loss(torch: Any, fix: str | None) -> Step:
    """A wide Llama is trained in bfloat16 on 2048 tokens a sequence, and reads its loss with `.item()` every step.

    The CPU waits tens of milliseconds in `.item()`, because it has launched everything by then. After the read the GPU
    idles only until the next step's first kernels come, and those are large.
    """
    transformers = hugging_face()
    width, inner, layers, heads, vocabulary, batch, length = sizes(
        (2048, 5632, 4, 16, 16384, 4, 2048), (32, 64, 2, 2, 100, 2, 8)
    )
    config = transformers.LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=width,
        intermediate_size=inner,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        max_position_embeddings=length,
        use_cache=False,
    )
    model = transformers.LlamaForCausalLM(config).to("cuda", torch.bfloat16).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, betas=(0.9, 0.95), fused=True)
    tokens = torch.randint(0, vocabulary, (batch, length), device="cuda")

    def step() -> Any:
        loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.detach() if fix else loss.item()

    return step


@planted("healthy", None, innocent="tf32", trap=True)
def recommender_in_float32(torch: Any, fix: str | None) -> Step:
    """A DLRM ranks 32768 users in float32, with matmuls that do not use the tensor cores.

    The time goes into 26 embedding bags, which read rows of large tables at the memory's bandwidth. The matmuls
    between them are small; TF32 makes them faster and the step no shorter.
    """
    nn = torch.nn
    torch.backends.cuda.matmul.allow_tf32 = bool(fix)
    features, rows, width, users, bag = sizes((26, 200_000, 128, 32768, 64), (4, 50, 8, 16, 3))
    bags = nn.ModuleList(nn.EmbeddingBag(rows, width, mode="sum", device="cuda") for _ in range(features))
    bags.requires_grad_(False)
    bottom = nn.Sequential(nn.Linear(13, 128), nn.ReLU(), nn.Linear(128, width), nn.ReLU()).to("cuda")
    pairs = (features + 1) * features // 2
    top = nn.Sequential(nn.Linear(width + pairs, 128), nn.ReLU(), nn.Linear(128, 1)).to("cuda")
    ids = torch.randint(0, rows, (features, users, bag), device="cuda").unbind(0)
    numbers = torch.rand(users, 13, device="cuda")
    first, second = torch.tril_indices(features + 1, features + 1, -1, device="cuda")

    def step() -> Any:
        with torch.inference_mode():
            dense = bottom(numbers)
            known = torch.stack([dense, *(table(chosen) for table, chosen in zip(bags, ids, strict=True))], 1)
            products = torch.bmm(known, known.transpose(1, 2))[:, first, second]
            return top(torch.cat((dense, products), -1)).sigmoid().squeeze(-1)

    return step
