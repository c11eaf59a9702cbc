"""Cause `kernel`, by number format: GEMMs that do not run on tensor cores, or have the wrong shape for them."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted
from faults.programs.parts import weights


@planted("kernel", "tf32", also=("bf16",))
def fp32_matmul(torch: Any, fix: str | None) -> Step:
    """An MLP in float32 with TF32 off, which is torch's default.

    The matmuls run on the ordinary cores at an eighth of the rate that TF32 has; TF32 keeps float32's range.
    """
    dtype = torch.bfloat16 if fix == "bf16" else torch.float32
    torch.backends.cuda.matmul.allow_tf32 = fix == "tf32"
    (up,), (down,) = weights(torch, 1, 2048, 4096, dtype), weights(torch, 1, 4096, 2048, dtype)
    x = torch.randn(2048, 2048, device="cuda", dtype=dtype)

    def step() -> Any:
        return torch.relu(x @ up) @ down  # planted

    return step


@planted("kernel", "bf16")
def tf32_transformer_block(torch: Any, fix: str | None) -> Step:
    """A transformer block in float32 with TF32 on.

    The matmuls have tensor cores at half of bfloat16's rate; attention in float32 is over half of the step.
    """
    torch.backends.cuda.matmul.allow_tf32 = True
    functional = torch.nn.functional
    dtype = torch.bfloat16 if fix else torch.float32
    hidden, heads, batch, length = 1024, 16, 8, 1024
    (qkv,), (out,) = weights(torch, 1, hidden, 3 * hidden, dtype), weights(torch, 1, hidden, hidden, dtype)
    (up,), (down,) = weights(torch, 1, hidden, 4 * hidden, dtype), weights(torch, 1, 4 * hidden, hidden, dtype)
    x = torch.randn(batch, length, hidden, device="cuda", dtype=dtype)

    def step() -> Any:
        normed = functional.layer_norm(x, (hidden,))
        query, key, value = (normed @ qkv).view(batch, length, 3, heads, -1).permute(2, 0, 3, 1, 4)  # planted
        attended = functional.scaled_dot_product_attention(query, key, value).transpose(1, 2)  # planted
        y = x + attended.reshape(batch, length, hidden) @ out  # planted
        return y + functional.gelu(functional.layer_norm(y, (hidden,)) @ up) @ down  # planted

    return step


@planted("kernel", "tf32", also=("bf16",))
def fp32_convolution(torch: Any, fix: str | None) -> Step:
    """Convolutions in float32 with cuDNN's TF32 switched off, for the sake of the last digits.

    Only the switch keeps them from the tensor cores.
    """
    torch.backends.cudnn.allow_tf32 = fix == "tf32"
    conv = torch.nn.functional.conv2d
    dtype, layout = torch.bfloat16 if fix == "bf16" else torch.float32, torch.channels_last
    filters = [torch.randn(128, 128, 3, 3, device="cuda").mul_(0.03).to(dtype, memory_format=layout) for _ in range(3)]
    x = torch.randn(32, 128, 56, 56, device="cuda", dtype=dtype).to(memory_format=layout)

    def step() -> Any:
        y = x
        for weight in filters:
            y = torch.relu(conv(y, weight, padding=1))  # planted
        return y

    return step


@planted("kernel", "pad")
def odd_vocabulary(torch: Any, fix: str | None) -> Step:
    """Logits over a vocabulary of 50,257 words, in bfloat16.

    Rows of an odd length start at addresses that wide loads cannot use, so a slower kernel is chosen. Padded to
    50,304, a multiple of 64, the rows are aligned; the padding's logits are never looked at.
    """
    vocabulary = 50_304 if fix else 50_257
    (head,) = weights(torch, 1, 1024, vocabulary, torch.bfloat16)
    hidden = torch.randn(4096, 1024, device="cuda", dtype=torch.bfloat16)

    def step() -> Any:
        return hidden @ head  # planted

    return step


@planted("kernel", "pad")
def odd_hidden_size(torch: Any, fix: str | None) -> Step:
    """An MLP whose sizes are odd: 2,047 and 4,093, in bfloat16.

    Padding both to 2,048 and 4,096 with zeros gives the same numbers with aligned rows.
    """
    hidden, inner = (2048, 4096) if fix else (2047, 4093)
    (up,), (down,) = (
        weights(torch, 1, hidden, inner, torch.bfloat16),
        weights(torch, 1, inner, hidden, torch.bfloat16),
    )
    x = torch.randn(4096, hidden, device="cuda", dtype=torch.bfloat16)

    def step() -> Any:
        return torch.relu(x @ up) @ down  # planted

    return step


@planted("kernel", "bf16", also=("torch_compile",))
def casts_back_and_forth(torch: Any, fix: str | None) -> Step:
    """Each activation goes to float32 and back around a ReLU, "to be safe".

    The casts move more bytes than the ReLU, which is exact in bfloat16.
    """
    layers = weights(torch, 4, 1024, 1024, torch.bfloat16)
    x = torch.randn(32768, 1024, device="cuda", dtype=torch.bfloat16)

    def safe(x: Any) -> Any:
        return x.float().relu().bfloat16()  # planted

    activation = torch.relu if fix == "bf16" else safe
    if fix == "torch_compile":
        torch._dynamo.reset()
        activation = torch.compile(safe, dynamic=False)

    def step() -> Any:
        y = x
        for weight in layers:
            y = activation(y @ weight)
        return y

    return step


@planted("kernel", "bf16")
def weights_cast_every_step(torch: Any, fix: str | None) -> Step:
    """Weights kept in float32 are cast to bfloat16 each time they are used.

    At a small batch the cast reads and writes three times what the matmul reads. Weights that do not change can be
    kept in bfloat16.
    """
    layers = weights(torch, 4, 8192, 8192, torch.bfloat16 if fix else torch.float32)
    x = torch.randn(64, 8192, device="cuda", dtype=torch.bfloat16)

    def step() -> Any:
        y = x
        for weight in layers:
            y = y @ weight.to(torch.bfloat16)  # planted
        return y

    return step
