"""Cause `kernel`: the GPU is busy, with more passes or slower units than the work needs."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted
from faults.programs.parts import compiled

from .models import transformer


@planted("kernel", "tf32", also=("bf16",), innocent="remove_sync", trap=True)
def full_precision_behind_a_logged_loss(torch: Any, fix: str | None) -> Step:
    """A transformer is trained in float32 with the library's defaults, so that its matmuls use no tensor cores.

    The loss is read with `.item()` in every step, which is what everybody looks at first. It waits for matmuls that
    take ten milliseconds either way.
    """
    nn = torch.nn
    torch.backends.cuda.matmul.allow_tf32 = fix == "tf32"
    model = transformer(torch, 1024, 16, 2, causal=True).to("cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    rows = torch.randn(8, 512, 1024, device="cuda")
    targets = torch.randn(8, 512, 1024, device="cuda")
    history: list[Any] = []

    def step() -> Any:
        with torch.autocast("cuda", torch.bfloat16, enabled=fix == "bf16"):
            output = model(rows)  # planted
        loss = nn.functional.mse_loss(output.float(), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history[:] = [loss.detach() if fix == "remove_sync" else loss.item()]
        return history[-1]

    return step


@planted("kernel", "sdpa", steps=3)
def vision_transformer_with_its_own_attention(torch: Any, fix: str | None) -> Step:
    """A vision transformer is trained with attention as in the paper: scores, scale, softmax, weights times values.

    Each of these writes and reads a matrix of a thousand by a thousand for every head, in float32 where autocast
    wants it, and the backward pass does so again. The fused attention never writes it.
    """
    nn = torch.nn
    width, heads = 768, 12

    class Attention(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

        def forward(self, x: Any) -> Any:
            batch, length, _ = x.shape
            query, key, value = self.qkv(x).view(batch, length, 3, heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
            if fix:
                seen = nn.functional.scaled_dot_product_attention(query, key, value)
            else:
                scores = query @ key.transpose(-2, -1)  # planted
                scores = scores * (width // heads) ** -0.5  # planted
                seen = scores.softmax(-1) @ value  # planted
            return self.out(seen.transpose(1, 2).reshape(batch, length, width))

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.attention = Attention()
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x: Any) -> Any:
            x = x + self.attention(self.norm1(x))
            return x + self.mlp(self.norm2(x))

    class VisionTransformer(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.patches = nn.Linear(3 * 8 * 8, width)
            self.positions = nn.Parameter(torch.randn(1, 1024, width) * 0.02)
            self.blocks = nn.Sequential(Block(), Block())
            self.head = nn.Linear(width, 1000)

        def forward(self, x: Any) -> Any:
            return self.head(self.blocks(self.patches(x) + self.positions).mean(1))

    model = VisionTransformer().to("cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    patches = torch.randn(16, 1024, 3 * 8 * 8, device="cuda")
    labels = torch.randint(0, 1000, (16,), device="cuda")

    def step() -> Any:
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.bfloat16):
            loss = nn.functional.cross_entropy(model(patches), labels)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


@planted("kernel", "torch_compile")
def colours_jittered_in_separate_passes(torch: Any, fix: str | None) -> Step:
    """Images are jittered and normalised on the GPU in fifteen passes over the batch before a model sees them.

    Every pass reads and writes the batch as floats, and does one addition or product with it. Compiled, one pass
    finds the means and one does the rest.
    """
    nn = torch.nn

    class Jitter(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("luma", torch.tensor([0.299, 0.587, 0.114]).view(1, 3, 1, 1))
            self.register_buffer("mean", torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1))
            self.register_buffer("std", torch.tensor([0.229, 0.224, 0.225]).view(1, 3, 1, 1))

        def forward(self, images: Any, brightness: Any, contrast: Any, saturation: Any) -> Any:
            x = images.float() / 255  # planted
            x = (x * brightness).clamp(0, 1)  # planted
            gray = (x * self.luma).sum(1, keepdim=True)  # planted
            middle = gray.mean((2, 3), keepdim=True)
            x = ((x - middle) * contrast + middle).clamp(0, 1)  # planted
            gray = (x * self.luma).sum(1, keepdim=True)  # planted
            x = (x * saturation + gray * (1 - saturation)).clamp(0, 1)  # planted
            return ((x - self.mean) / self.std).to(torch.bfloat16)  # planted

    jitter: Any = Jitter().to("cuda")
    if fix:
        jitter = compiled(torch, jitter)
    model = nn.Sequential(
        nn.Conv2d(3, 64, 8, stride=8, bias=False),
        nn.ReLU(inplace=True),
        nn.Conv2d(64, 128, 3, padding=1, bias=False),
        nn.ReLU(inplace=True),
        nn.Conv2d(128, 128, 3, stride=2, padding=1, bias=False),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(128, 100),
    )
    model = model.to("cuda", torch.bfloat16, memory_format=torch.channels_last).eval()
    images = torch.randint(0, 256, (64, 3, 384, 384), device="cuda", dtype=torch.uint8)
    images = images.contiguous(memory_format=torch.channels_last)

    def step() -> Any:
        with torch.no_grad():
            factors = torch.rand(3, images.shape[0], 1, 1, 1, device="cuda") * 0.8 + 0.6
            return model(jitter(images, *factors.unbind(0)))

    return step
