"""Cause `kernel`: training steps whose kernels do more, or in a slower way, than they have to."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted
from faults.programs.parts import compiled


@planted("kernel", "tf32", also=("bf16",))
def perceptron_trained_in_full_precision(torch: Any, fix: str | None) -> Step:
    """A classifier of three wide linear layers is trained in float32, as torch does unless it is told otherwise.

    Its matmuls run without tensor cores. With TF32 allowed, or under autocast to bfloat16, they take a fraction.
    """
    nn = torch.nn
    torch.backends.cuda.matmul.allow_tf32 = fix == "tf32"
    model = nn.Sequential(nn.Linear(1536, 3072), nn.ReLU(), nn.Linear(3072, 3072), nn.ReLU(), nn.Linear(3072, 1024))
    model = model.to("cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9, fused=True)
    features, labels = torch.randn(4096, 1536, device="cuda"), torch.randint(0, 1024, (4096,), device="cuda")

    def step() -> Any:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16, enabled=fix == "bf16"):
            scores = model(features)  # planted
        loss = nn.functional.cross_entropy(scores.float(), labels)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


@planted("kernel", "sdpa")
def language_model_with_attention_spelt_out(torch: Any, fix: str | None) -> Step:
    """Two transformer blocks are trained on 2048 tokens with attention as matmul, mask, softmax and matmul.

    The scores of all pairs of tokens go to memory and back for every operation, forward and backward. Fused attention
    never writes them.
    """
    nn, functional = torch.nn, torch.nn.functional
    batch, tokens, heads, width = 2, 2048, 12, 768
    future = torch.ones(tokens, tokens, device="cuda", dtype=torch.bool).triu(1)

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
            self.project, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def attend(self, q: Any, k: Any, v: Any) -> Any:
            if fix:
                return functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5  # planted
            scores = scores.masked_fill(future, float("-inf"))  # planted
            return scores.softmax(-1) @ v  # planted

        def forward(self, x: Any) -> Any:
            q, k, v = self.project(self.before(x)).view(batch, tokens, 3, heads, -1).permute(2, 0, 3, 1, 4)
            x = x + self.out(self.attend(q, k, v).transpose(1, 2).reshape(batch, tokens, width))
            return x + self.down(functional.gelu(self.up(self.after(x))))

    model = nn.Sequential(Block(), Block()).to("cuda", torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6, fused=True)
    inputs, wanted = torch.randn(2, batch, tokens, width, device="cuda").to(torch.bfloat16).unbind(0)

    def step() -> Any:
        optimizer.zero_grad(set_to_none=True)
        loss = functional.mse_loss(model(inputs), wanted)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


@planted("kernel", "torch_compile")
def focal_loss_from_its_formula(torch: Any, fix: str | None) -> Step:
    """A detector's head is trained with a focal loss that is written operation by operation.

    Each of some twenty operations on 17 million scores reads and writes memory, and their gradients do it again.
    Compiled they are a kernel or two each way.
    """
    anchors, width, classes = 65536, 256, 256
    features = torch.randn(anchors, width, device="cuda", dtype=torch.bfloat16)
    head = (torch.randn(width, classes, device="cuda") * width**-0.5).to(torch.bfloat16).requires_grad_()
    targets = (torch.rand(anchors, classes, device="cuda") > 0.99).float()

    def focal(scores: Any, truth: Any) -> Any:
        chance = scores.float().sigmoid()
        surprise = -(truth * (chance + 1e-6).log() + (1 - truth) * (1 - chance + 1e-6).log())  # planted
        right = chance * truth + (1 - chance) * (1 - truth)  # planted
        balance = 0.25 * truth + 0.75 * (1 - truth)  # planted
        return (balance * (1 - right) ** 2 * surprise).mean()  # planted

    criterion = compiled(torch, focal) if fix else focal

    def step() -> Any:
        head.grad = None
        loss = criterion(features @ head, targets)
        loss.backward()
        return loss.detach(), head.grad

    return step


@planted("kernel", "channels_last", innocent="pin_memory", trap=True)
def image_classifier_in_the_default_layout(torch: Any, fix: str | None) -> Step:
    """A convolutional classifier is trained in bfloat16 with channels first; its labels come from pageable memory.

    Tensor cores want channels last, so that every convolution converts its inputs and its results. The copy of 128
    labels looks bad in a trace, and is a kilobyte.
    """
    nn = torch.nn
    layout = torch.channels_last if fix == "channels_last" else torch.contiguous_format
    body: list[Any] = []
    for _ in range(4):
        body += [nn.Conv2d(64, 64, 3, padding=1), nn.ReLU()]
    model = nn.Sequential(*body, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 1000))
    model = model.to("cuda", torch.bfloat16, memory_format=layout)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, fused=True)
    images = torch.randn(128, 64, 56, 56, device="cuda", dtype=torch.bfloat16).to(memory_format=layout)
    labels, pinned = torch.randint(0, 1000, (128,)), fix == "pin_memory"
    labels = labels.pin_memory() if pinned else labels

    def step() -> Any:
        truth = labels.to("cuda", non_blocking=pinned)
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(model(images).float(), truth)  # planted
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step
