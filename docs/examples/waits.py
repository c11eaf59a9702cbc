"""Calls in a loop that wait for the GPU, and some that do not: `warpline lint` tells which."""

import torch

x = torch.randn(64, device="cuda")
for _ in range(100):
    x.item()
    float(x.sum())
    int(x.argmax())
    x.cpu()
    x.numpy(force=True)
    print(x)
    if x.any():
        x.zero_()
    x.nonzero()
    x.unique()
    x.tolist()
    torch.save(x, "x.pt")
    torch.cuda.synchronize()
    y = torch.empty(x.shape, device="cuda")  # shapes, new tensors and further ops do not wait
    y = x + 1
