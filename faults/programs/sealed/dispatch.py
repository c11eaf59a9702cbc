"""Cause `dispatch`: the CPU launches kernels more slowly than the GPU runs them."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted
from faults.programs.sealed.graphs import Molecules, message_network
from faults.programs.sealed.parts import graphed, hugging_face, sizes


@planted("dispatch", "cuda_graph", innocent="remove_sync", trap=True)
def vit_that_answers_one_image(torch: Any, fix: str | None) -> Step:
    """A service classifies one image per request with a small ViT and returns the five best labels as a list.

    Twelve layers of tiny kernels take the GPU a fraction of the time that the CPU needs to launch them. The shapes
    never change, so the forward pass can be one CUDA graph. The labels must be read at the end, and by then the GPU has
    nothing left to do: without that read a request takes as long.
    """
    transformers = hugging_face()
    width, layers, heads, pixels, classes = sizes((384, 12, 6, 224, 1000), (32, 2, 2, 32, 10))
    config = transformers.ViTConfig(
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * width,
        image_size=pixels,
        num_labels=classes,
    )
    model = transformers.ViTForImageClassification(config).to("cuda", torch.bfloat16).eval()
    request = torch.randint(0, 256, (1, 3, pixels, pixels), dtype=torch.uint8).pin_memory()
    image = torch.empty(1, 3, pixels, pixels, device="cuda", dtype=torch.uint8)
    answer = torch.zeros(1, 5, device="cuda", dtype=torch.long)

    def classify() -> None:
        normalised = (image.to(torch.bfloat16) / 255 - 0.5) / 0.5
        logits = model(pixel_values=normalised).logits  # planted
        answer.copy_(logits.float().softmax(-1).topk(5).indices)

    with torch.inference_mode():
        run = graphed(torch, classify) if fix == "cuda_graph" else classify

    def step() -> Any:
        with torch.inference_mode():
            image.copy_(request, non_blocking=True)
            run()
            return answer if fix == "remove_sync" else answer.tolist()

    return step


@planted("dispatch", "fused_optimizer", steps=3)
def gpt2_with_a_looping_adamw(torch: Any, fix: str | None) -> Step:
    """A small GPT-2 is trained in bfloat16 with clipping, a schedule and `AdamW(foreach=False)` to save memory.

    The optimizer launches about ten tiny kernels for each of a hundred parameters, and the GPU idles meanwhile. The
    fused optimizer updates all of them with a few launches, and needs no memory for intermediate results either.
    """
    transformers = hugging_face()
    width, layers, heads, vocabulary, batch, length = sizes((512, 8, 8, 8192, 8, 256), (32, 2, 2, 100, 2, 8))
    config = transformers.GPT2Config(
        vocab_size=vocabulary, n_positions=length, n_embd=width, n_layer=layers, n_head=heads, use_cache=False
    )
    model = transformers.GPT2LMHeadModel(config).to("cuda", torch.bfloat16).train()
    kind = {"fused": True} if fix else {"foreach": False}
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.1, **kind)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda done: min(1.0, (done + 1) / 2000))
    tokens = torch.randint(0, vocabulary, (batch, length), device="cuda")

    def step() -> Any:
        loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()  # planted
        schedule.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    return step


@planted("dispatch", "batch", steps=3)
def molecules_one_after_another(torch: Any, fix: str | None) -> Step:
    """A message-passing network learns a property of 16 molecules, and a loop predicts it molecule by molecule.

    A molecule has some twenty atoms, so every kernel is tiny and there are 16 times as many of them as needed. The
    molecules of a batch form one graph of separate parts, which takes one forward pass.
    """
    functional = torch.nn.functional
    count, width, layers = sizes((16, 128, 4), (3, 8, 2))
    model = message_network(torch, width, layers).to("cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    molecules = Molecules(torch, count)
    singles = [molecules.single(index, "cuda") for index in range(count)]
    together = molecules.together("cuda")
    wanted = torch.randn(count, device="cuda")

    def guesses() -> Any:
        if fix:
            return model(*together, count)
        return torch.cat([model(*single, 1) for single in singles])  # planted

    def step() -> Any:
        optimizer.zero_grad(set_to_none=True)
        loss = functional.smooth_l1_loss(guesses(), wanted)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step
