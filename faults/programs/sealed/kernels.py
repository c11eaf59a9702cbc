"""Cause `kernel`: the GPU is busy with kernels that do more than they have to, or do it in a slow way."""

from __future__ import annotations

import math
from typing import Any

from faults.programs.case import Step, planted
from faults.programs.sealed.parts import compiled, hugging_face, sizes


@planted("kernel", "tf32", also=("bf16",), steps=3)
def bert_pretraining_in_float32(torch: Any, fix: str | None) -> Step:
    """A BERT learns masked words in float32, with the precision of matmuls left as PyTorch sets it.

    Its matmuls do not use the tensor cores. With TF32 allowed, or under autocast to bfloat16, they take a fraction.
    """
    transformers = hugging_face()
    width, layers, heads, vocabulary, batch, length = sizes((768, 6, 12, 16384, 16, 256), (32, 2, 2, 100, 2, 8))
    torch.backends.cuda.matmul.allow_tf32 = fix == "tf32"
    config = transformers.BertConfig(
        vocab_size=vocabulary,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * width,
    )
    model = transformers.BertForMaskedLM(config).to("cuda").train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    tokens = torch.randint(0, vocabulary, (batch, length), device="cuda")
    hidden = torch.rand(batch, length, device="cuda") < 0.15
    labels = torch.where(hidden, tokens, -100)
    shown = torch.where(hidden, 3, tokens)
    mask = torch.ones_like(tokens)

    def step() -> Any:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16, enabled=fix == "bf16"):
            loss = model(input_ids=shown, attention_mask=mask, labels=labels).loss  # planted
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


@planted("kernel", "sdpa")
def whisper_encoder_with_eager_attention(torch: Any, fix: str | None) -> Step:
    """A Whisper encoder listens to 16 recordings of thirty seconds with `attn_implementation="eager"`.

    Eager attention writes the scores of 1500 x 1500 frames per head to memory and reads them several times.
    `scaled_dot_product_attention` never writes them.
    """
    transformers = hugging_face()
    width, layers, heads, batch, frames = sizes((768, 8, 12, 16, 1500), (32, 2, 2, 2, 40))
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
    kind = "sdpa" if fix else "eager"  # planted
    whisper = transformers.AutoModel.from_config(config, attn_implementation=kind)
    encoder = whisper.get_encoder().to("cuda", torch.bfloat16).eval()
    spectra = torch.randn(batch, 80, 2 * frames, device="cuda", dtype=torch.bfloat16)

    def step() -> Any:
        with torch.inference_mode():
            return encoder(input_features=spectra).last_hidden_state.mean(1)  # planted

    return step


@planted("kernel", "pad", steps=3)
def gpt2_with_50257_tokens(torch: Any, fix: str | None) -> Step:
    """A GPT-2 of four layers is trained in bfloat16 with the tokenizer's vocabulary of 50257.

    Rows of an odd number of bfloat16 values are not aligned, which rules out the fast kernels for the largest matmuls
    of the step. Padded to 50304 the vocabulary is a multiple of 64; the 47 tokens more never occur.
    """
    transformers = hugging_face()
    width, layers, heads, batch, length = sizes((768, 4, 12, 16, 512), (32, 2, 2, 2, 8))
    tokenizer_size = sizes(50257, 97)
    vocabulary = (tokenizer_size + 63) // 64 * 64 if fix else tokenizer_size
    config = transformers.GPT2Config(
        vocab_size=vocabulary, n_positions=length, n_embd=width, n_layer=layers, n_head=heads, use_cache=False
    )
    model = transformers.GPT2LMHeadModel(config).to("cuda", torch.bfloat16).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    tokens = torch.randint(0, tokenizer_size, (batch, length), device="cuda")

    def step() -> Any:
        loss = model(input_ids=tokens, labels=tokens).loss  # planted
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    return step


@planted("kernel", "torch_compile", stacks=False)
def colours_changed_before_contrastive_learning(torch: Any, fix: str | None) -> Step:
    """Contrastive learning changes brightness, contrast, saturation and hue of two views on the GPU, op by op.

    Each of some fifty operations reads and writes all the pixels. Compiled, a view takes a few kernels.
    """
    nn, functional = torch.nn, torch.nn.functional
    batch, pixels, width = sizes((256, 224, 384), (4, 32, 16))
    luma = torch.tensor([0.299, 0.587, 0.114], device="cuda").view(1, 3, 1, 1)

    def jitter(images: Any, light: Any, contrast: Any, colour: Any, turn: Any) -> Any:
        images = (images * light).clamp(0, 1)
        grey = (images * luma).sum(1, keepdim=True)  # planted
        images = (contrast * images + (1 - contrast) * grey.mean((2, 3), keepdim=True)).clamp(0, 1)  # planted
        images = (colour * images + (1 - colour) * grey).clamp(0, 1)  # planted
        red, green, blue = images.unbind(1)
        most, least = images.amax(1), images.amin(1)
        spread = most - least
        safe = torch.where(spread > 0, spread, torch.ones_like(spread))
        hue = torch.where(
            most == red,
            ((green - blue) / safe) % 6,
            torch.where(most == green, (blue - red) / safe + 2, (red - green) / safe + 4),
        )
        hue = (hue / 6 + turn.view(-1, 1, 1)) % 1.0
        channels = []
        for place in (5.0, 3.0, 1.0):
            k = (place + hue * 6) % 6
            channels.append(most - spread * torch.minimum(k, 4 - k).clamp(0, 1))
        return (torch.stack(channels, 1) - 0.45) / 0.225

    change = compiled(torch, jitter) if fix else jitter
    patches = [nn.Conv2d(3, width, 16, stride=16), nn.GELU(), nn.Conv2d(width, width, 3, padding=1), nn.GELU()]
    encoder = nn.Sequential(*patches, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 128))
    encoder = encoder.to("cuda", memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(encoder.parameters(), lr=1e-4, fused=True)
    images = torch.rand(batch, 3, pixels, pixels, device="cuda")
    labels = torch.arange(batch, device="cuda")

    def view() -> Any:
        light, contrast, colour = (0.6 + 0.8 * torch.rand(3, batch, 1, 1, 1, device="cuda")).unbind(0)
        turn = 0.2 * torch.rand(batch, device="cuda") - 0.1
        return change(images, light, contrast, colour, turn)

    def step() -> Any:
        optimizer.zero_grad(set_to_none=True)
        with torch.no_grad():
            first, second = view(), view()
        with torch.autocast("cuda", torch.bfloat16):
            one, two = (functional.normalize(encoder(x), dim=-1) for x in (first, second))
            loss = functional.cross_entropy((one @ two.T).float() / 0.1, labels)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


@planted("kernel", "drop_casts", also=("torch_compile",), stacks=False)
def diffusion_transformer_that_casts_for_safety(torch: Any, fix: str | None) -> Step:
    """A diffusion transformer in bfloat16 casts to float32 and back around each norm, modulation and residual.

    The casts are kernels of their own, and the operations between them move twice the bytes. In bfloat16 the layer norm
    computes in float32 internally anyway.
    """
    nn, functional = torch.nn, torch.nn.functional
    width, layers, heads, batch, length = sizes((512, 6, 8, 32, 1024), (32, 2, 2, 2, 16))
    safe = torch.bfloat16 if fix == "drop_casts" else torch.float32

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.modulation = nn.Linear(width, 6 * width)
            self.project, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def modulated(self, x: Any, shift: Any, scale: Any) -> Any:
            y = functional.layer_norm(x.to(safe), (width,), eps=1e-6)  # planted
            return (y * (1 + scale.to(safe)) + shift.to(safe)).to(torch.bfloat16)  # planted

        def added(self, x: Any, gate: Any, change: Any) -> Any:
            return (x.to(safe) + gate.to(safe) * change.to(safe)).to(torch.bfloat16)  # planted

        def forward(self, x: Any, time: Any) -> Any:
            first, second, third, fourth, fifth, sixth = self.modulation(functional.silu(time)).chunk(6, -1)
            y = self.project(self.modulated(x, first, second)).unflatten(-1, (3, heads, -1))
            q, k, v = y.permute(2, 0, 3, 1, 4)
            y = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
            x = self.added(x, third, self.out(y))
            y = self.down(functional.gelu(self.up(self.modulated(x, fourth, fifth)), approximate="tanh"))
            return self.added(x, sixth, y)

    blocks = nn.ModuleList(Block() for _ in range(layers)).to("cuda", torch.bfloat16)
    embed = nn.Linear(width, width).to("cuda", torch.bfloat16)
    patches, noise = torch.randn(2, batch, length, width, device="cuda").to(torch.bfloat16).unbind(0)
    rates = torch.exp(-math.log(10000.0) * torch.arange(width // 2, device="cuda") / (width // 2))

    def denoise(x: Any, times: Any) -> Any:
        angles = times[:, None] * rates
        time = embed(torch.cat((angles.cos(), angles.sin()), -1).to(torch.bfloat16)).unsqueeze(1)
        for block in blocks:
            x = block(x, time)
        return x

    run = compiled(torch, denoise) if fix == "torch_compile" else denoise

    def step() -> Any:
        blocks.zero_grad(set_to_none=True)
        times = torch.rand(batch, device="cuda") * 1000
        kept = (1 - times / 1000).sqrt()[:, None, None].to(torch.bfloat16)
        guess = run(kept * patches + (1 - kept) * noise, times)
        loss = functional.mse_loss(guess, noise)
        loss.backward()
        return loss.detach()

    return step
