"""A first kernel in Triton, y = 2x + 3, checked against PyTorch and ready for `warpline bench`."""

import torch
import triton
import triton.language as tl

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"  # on the CPU with TRITON_INTERPRET=1


@triton.jit
def scale_add_kernel(x_pointer, y_pointer, size, block: tl.constexpr):
    first = tl.program_id(0) * block
    offsets = first + tl.arange(0, block)  # neighbouring threads, neighbouring addresses
    mask = offsets < size  # the last program reaches beyond the end
    x = tl.load(x_pointer + offsets, mask=mask)
    tl.store(y_pointer + offsets, 2 * x + 3, mask=mask)


def scale_add(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    scale_add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), block=1024)
    return y


def eager(x: torch.Tensor) -> torch.Tensor:
    return 2 * x + 3


def inputs() -> tuple[torch.Tensor]:
    return (torch.randn(1 << 26, device=DEVICE),)


if __name__ == "__main__":
    for size in (1, 1000, 1024, 5000):
        x = torch.randn(size, device=DEVICE)
        torch.testing.assert_close(scale_add(x), eager(x))
    print(scale_add(x)[:10])
