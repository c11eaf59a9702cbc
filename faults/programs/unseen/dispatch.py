"""Cause `dispatch`: the CPU launches kernels more slowly than the GPU runs them."""

from __future__ import annotations

import math
from typing import Any

from faults.programs.case import Step, planted
from faults.programs.sealed.parts import graphed, sizes


@planted("dispatch", "batch", also=("cuda_graph",), steps=3)
def experts_asked_one_after_another(torch: Any, fix: str | None) -> Step:
    """A transformer with 32 experts per layer, each of which chooses 64 tokens, asks the experts in a Python loop.

    An expert's two matmuls, with the gather before and the sum after, take the GPU a few microseconds and the CPU tens.
    All experts choose the same number of tokens, so that batched matmuls do them together.
    """
    nn, functional = torch.nn, torch.nn.functional
    width, inner, layers, heads, experts, batch, length = sizes((512, 1024, 4, 8, 32, 4, 256), (16, 24, 2, 2, 3, 2, 9))
    chosen_each = 2 * batch * length // experts

    class Experts(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.router = nn.Linear(width, experts, bias=False)
            self.up = nn.Parameter(torch.randn(experts, width, inner) / math.sqrt(width))
            self.down = nn.Parameter(torch.randn(experts, inner, width) / math.sqrt(inner))

        def forward(self, x: Any) -> Any:
            share, chosen = self.router(x).softmax(-1).topk(chosen_each, 0)
            share, chosen = share.T.unsqueeze(-1), chosen.T
            total = torch.zeros_like(x)
            if fix == "batch":
                y = torch.bmm(functional.gelu(torch.bmm(x[chosen], self.up)), self.down)
                return total.index_add_(0, chosen.flatten(), (y * share).flatten(0, 1))
            for expert in range(experts):
                y = functional.gelu(x[chosen[expert]] @ self.up[expert]) @ self.down[expert]  # planted
                total.index_add_(0, chosen[expert], y * share[expert])  # planted
            return total

    class Layer(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.before, self.between, self.experts = nn.LayerNorm(width), nn.LayerNorm(width), Experts()
            self.project, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

        def forward(self, x: Any) -> Any:
            q, k, v = self.project(self.before(x)).unflatten(-1, (3, heads, -1)).permute(2, 0, 3, 1, 4)
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).flatten(2))
            return x + self.experts(self.between(x).flatten(0, 1)).view_as(x)

    model = nn.Sequential(*(Layer() for _ in range(layers)), nn.LayerNorm(width))
    model = model.to("cuda", torch.bfloat16).eval().requires_grad_(False)
    words = torch.randn(batch, length, width, device="cuda").to(torch.bfloat16)
    answer = torch.zeros_like(words)

    def think() -> None:
        answer.copy_(model(words))

    with torch.inference_mode():
        run = graphed(torch, think) if fix == "cuda_graph" else think

    def step() -> Any:
        with torch.inference_mode():
            run()
            return answer

    return step


@planted("dispatch", "cuda_graph", steps=3)
def robot_that_denoises_its_next_moves(torch: Any, fix: str | None) -> Step:
    """A robot plans 16 moves with a diffusion policy: a small one-dimensional U-Net removes noise from them in 8 steps.

    One plan of 16 moves is next to nothing for a GPU, and takes it several hundred kernels. Their shapes never change,
    so that a CUDA graph launches all of them at once. The moves are read at the end, when nothing is left to do.
    """
    nn, functional = torch.nn, torch.nn.functional
    width, moves, joints, senses, rounds = sizes((256, 16, 8, 128, 8), (16, 8, 3, 6, 2))

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, inputs: int, outputs: int) -> None:
            super().__init__()
            self.first, self.second = (
                nn.Conv1d(inputs, outputs, 5, padding=2),
                nn.Conv1d(outputs, outputs, 5, padding=2),
            )
            self.before, self.after = nn.GroupNorm(8, outputs), nn.GroupNorm(8, outputs)
            self.told, self.past = nn.Linear(width, 2 * outputs), nn.Conv1d(inputs, outputs, 1)

        def forward(self, x: Any, told: Any) -> Any:
            scale, shift = self.told(told).unsqueeze(-1).chunk(2, 1)
            y = functional.mish(self.before(self.first(x))) * (1 + scale) + shift
            return functional.mish(self.after(self.second(y))) + self.past(x)

    class Policy(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.sense = nn.Sequential(nn.Linear(senses + 1, width), nn.Mish(), nn.Linear(width, width))
            self.down, self.deeper = Block(joints, width), Block(width, 2 * width)
            self.middle = nn.ModuleList(Block(2 * width, 2 * width) for _ in range(2))
            self.up, self.last = Block(4 * width, width), Block(2 * width, width)
            self.out = nn.Conv1d(width, joints, 1)

        def forward(self, x: Any, sensed: Any, time: Any) -> Any:
            told = self.sense(torch.cat((sensed, time), 1))
            fine = self.down(x, told)
            coarse = self.deeper(functional.max_pool1d(fine, 2), told)
            y = coarse
            for block in self.middle:
                y = block(y, told)
            y = functional.interpolate(self.up(torch.cat((y, coarse), 1), told), scale_factor=2)
            return self.out(self.last(torch.cat((y, fine), 1), told))

    policy = Policy().to("cuda").eval().requires_grad_(False)
    times = torch.linspace(1, 0, rounds + 1, device="cuda").view(-1, 1, 1)
    request = torch.randn(1, senses).pin_memory()
    sensed = torch.zeros(1, senses, device="cuda")
    noise, plan = torch.zeros(2, 1, joints, moves, device="cuda").unbind(0)

    def denoise() -> None:
        x = noise
        for index in range(rounds):
            x = x + (times[index + 1] - times[index]) * policy(x, sensed, times[index])  # planted
        plan.copy_(x.clamp(-1, 1))

    with torch.inference_mode():
        run = graphed(torch, denoise) if fix else denoise

    def step() -> Any:
        with torch.inference_mode():
            sensed.copy_(request, non_blocking=True)
            noise.normal_()
            run()
            return plan.tolist()

    return step
