# ruff: noqa: N803 (Triton writes constants in capitals)
"""Kernels with room inside, two of them in Triton: recorded with `warpline run`, then with `warpline dive TRACE -- python …`."""

import sys

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def column_scale(x, y, rows, columns, BLOCK: tl.constexpr):
    # neighbouring threads take neighbouring rows: every access of a warp is in another sector
    column = tl.program_id(1)
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = row * columns + column
    value = tl.load(x + at, mask=row < rows)
    tl.store(y + at, value * 2.0 + 1.0, mask=row < rows)


@triton.jit
def saxpy(x, y, z, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + at, mask=at < n)
    b = tl.load(y + at, mask=at < n)
    tl.store(z + at, 2.0 * a + b, mask=at < n)


class Slow(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(2048, 2048, bias=False)

    def forward(self, x):
        y = torch.empty_like(x)
        column_scale[(triton.cdiv(x.shape[0], 256), x.shape[1])](x, y, x.shape[0], x.shape[1], BLOCK=256)
        z = torch.empty_like(x)
        saxpy[(triton.cdiv(x.numel(), 1024),)](x, y, z, x.numel(), BLOCK=1024)
        z = self.project(z.t().contiguous().t())
        z = torch.softmax(z.view(-1, 16), -1).view_as(z)
        return z.double().cumsum(1).float()


def main(steps: int) -> None:
    torch.manual_seed(0)
    model = Slow().cuda().eval()
    x = torch.randn(4096, 2048, device="cuda")
    with torch.no_grad():
        for _ in range(steps):
            model(x)
    torch.cuda.synchronize()
    print("slow done", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 60)
