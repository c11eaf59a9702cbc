"""Cause `kernel`: the GPU is busy with kernels that do more than they have to, or do it in a slow way."""

from __future__ import annotations

import math
from typing import Any

from faults.programs.case import Step, planted
from faults.programs.sealed.parts import hugging_face, sizes


@planted("kernel", "tf32", also=("bf16",))
def qwen_rewards_answers_in_float32(torch: Any, fix: str | None) -> Step:
    """A reward model on a Qwen2 scores eight answers of 512 tokens, with the weights in float32 as they were made.

    Its matmuls do not use the tensor cores. With TF32 allowed, or with weights in bfloat16, they take a fraction.
    """
    transformers = hugging_face()
    width, inner, layers, heads, groups, vocabulary, batch, length = sizes(
        (1024, 2816, 4, 16, 4, 16384, 8, 512), (32, 48, 1, 2, 1, 100, 2, 8)
    )
    torch.backends.cuda.matmul.allow_tf32 = fix == "tf32"
    config = transformers.Qwen2Config(
        vocab_size=vocabulary,
        hidden_size=width,
        intermediate_size=inner,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=groups,
        max_position_embeddings=length,
        use_cache=False,
    )
    kind = torch.bfloat16 if fix == "bf16" else torch.float32
    model = transformers.AutoModel.from_config(config).to("cuda", kind).eval()
    reward = torch.nn.Linear(width, 1).to("cuda", kind)
    tokens = torch.randint(0, vocabulary, (batch, length), device="cuda")

    def step() -> Any:
        with torch.inference_mode():
            return reward(model(input_ids=tokens).last_hidden_state[:, -1]).squeeze(-1).float()  # planted

    return step


@planted("kernel", "sdpa", steps=3)
def mistral_trained_with_eager_attention(torch: Any, fix: str | None) -> Step:
    """A Mistral is trained in bfloat16 on texts of 2048 tokens with `attn_implementation="eager"`.

    Eager attention writes a quarter of a gigabyte of scores per layer, adds a mask, makes them float32 for the softmax,
    and the backward pass reads all of it again. `scaled_dot_product_attention` never writes the scores.
    """
    transformers = hugging_face()
    width, inner, layers, heads, groups, vocabulary, batch, length = sizes(
        (1024, 2816, 4, 16, 4, 16384, 2, 2048), (32, 48, 1, 2, 1, 100, 2, 8)
    )
    config = transformers.MistralConfig(
        vocab_size=vocabulary,
        hidden_size=width,
        intermediate_size=inner,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=groups,
        head_dim=width // heads,
        max_position_embeddings=length,
        sliding_window=None,
        use_cache=False,
    )
    kind = "sdpa" if fix else "eager"  # planted
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation=kind)
    model = model.to("cuda", torch.bfloat16).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    tokens = torch.randint(0, vocabulary, (batch, length), device="cuda")

    def step() -> Any:
        loss = model(input_ids=tokens, labels=tokens).loss  # planted
        loss.backward()  # planted
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    return step


@planted("kernel", "pad")
def enhancer_of_257_frequencies(torch: Any, fix: str | None) -> Step:
    """A network removes noise from speech in bfloat16; its layers mix the 257 frequencies of a spectrum of 512 samples.

    Rows of an odd number of bfloat16 values are not aligned, and the fast matmul kernels cannot read them. With seven
    zeros more a row has 264 values. The weights for them are zero, so that the sound is the same.
    """
    functional = torch.nn.functional
    frequencies, inner, layers, batch, frames = sizes((257, 1024, 12, 64, 1000), (9, 16, 2, 2, 6))
    more = -frequencies % 8 if fix else 0
    row = frequencies + more

    def weights(outputs: int, inputs: int) -> Any:
        return (torch.randn(outputs, inputs, device="cuda") / math.sqrt(2 * inputs)).to(torch.bfloat16)

    ups = [functional.pad(weights(inner, frequencies), (0, more)) for _ in range(layers)]
    downs = [functional.pad(weights(frequencies, inner), (0, 0, 0, more)) for _ in range(layers)]
    scale = functional.pad(torch.full((frequencies,), math.sqrt(frequencies / row), device="cuda"), (0, more))
    scale = scale.to(torch.bfloat16)
    spectra = torch.randn(batch * frames, frequencies, device="cuda").abs().to(torch.bfloat16)
    spectra = functional.pad(spectra, (0, more))

    def step() -> Any:
        with torch.inference_mode():
            x = spectra
            for up, down in zip(ups, downs, strict=True):
                y = functional.linear(functional.rms_norm(x, (row,), scale, 1e-6), up)  # planted
                x = x + functional.linear(functional.gelu(y), down)  # planted
            return (spectra * x.sigmoid())[:, :frequencies]

    return step


@planted("kernel", "channels_last")
def photos_enlarged_channels_first(torch: Any, fix: str | None) -> Step:
    """A residual network enlarges eight photos of 256 x 256 pixels fourfold in bfloat16, with its channels first.

    The convolutions on tensor cores want the channels last, so that the values are transposed before each of them and
    back after it. In the other layout from the start, nothing has to be transposed.
    """
    nn, functional = torch.nn, torch.nn.functional
    width, blocks, photos, pixels = sizes((64, 12, 8, 256), (8, 1, 1, 8))
    layout = torch.channels_last if fix else torch.contiguous_format

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = (nn.Conv2d(width, width, 3, padding=1) for _ in range(2))

        def forward(self, x: Any) -> Any:
            return x + self.second(functional.relu(self.first(x), inplace=True))  # planted

    layers = [nn.Conv2d(3, width, 3, padding=1), *(Block() for _ in range(blocks))]
    layers += [nn.Conv2d(width, 48, 3, padding=1), nn.PixelShuffle(4)]
    model = nn.Sequential(*layers).to("cuda", torch.bfloat16).to(memory_format=layout).eval()
    small = torch.rand(photos, 3, pixels, pixels, device="cuda").to(torch.bfloat16).to(memory_format=layout)

    def step() -> Any:
        with torch.inference_mode():
            return model(small).clamp(0, 1)  # planted

    return step
