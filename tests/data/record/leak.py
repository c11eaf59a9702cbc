"""A small training loop that keeps what it should not, for the memory fixtures; and a loop for GPU metrics.

python leak.py snapshot OUT.pickle          # six steps under a profiler; prints torch's own counts
nsys profile --cuda-memory-usage=true … python leak.py train 12
nsys profile --gpu-metrics-devices=all --capture-range=cudaProfilerApi … python leak.py busy 5
"""

import sys
import time

import torch
from torch import nn
from torch.nn import functional
from torch.profiler import ProfilerActivity, profile

kept, losses = [], []


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(256, 512)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(512), nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512)) for _ in range(2)
        )
        self.head = nn.Linear(512, 64)

    def forward(self, x):
        x = self.embed(x)
        for block in self.blocks:
            x = x + block(x)
        return self.head(x)


def step(model, optimizer):
    x = torch.randn(1024, 256).pin_memory().cuda(non_blocking=True)
    y = torch.randint(64, (1024,), device="cuda")
    optimizer.zero_grad(set_to_none=True)
    logits = model(x)
    loss = functional.cross_entropy(logits, y)
    loss.backward()
    optimizer.step()
    kept.append(logits.detach().clone())  # 262,144 bytes a step
    losses.append(loss)


def made():
    torch.manual_seed(0)
    model = Model().cuda()
    return model, torch.optim.AdamW(model.parameters(), lr=1e-3)


def train(steps):
    model, optimizer = made()
    for _ in range(int(steps)):
        with torch.cuda.nvtx.range("step"):
            step(model, optimizer)
    torch.cuda.synchronize()


def shapes(steps):
    model, optimizer = made()
    for _ in range(3):
        step(model, optimizer)
    torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStart()
    with torch.autograd.profiler.emit_nvtx(record_shapes=True):
        for _ in range(int(steps)):
            with torch.cuda.nvtx.range("step"):
                step(model, optimizer)
    torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStop()


def snapshot(path):
    model, optimizer = made()
    for _ in range(2):
        step(model, optimizer)
    kept.clear()
    losses.clear()
    torch.cuda.memory._record_memory_history(max_entries=100_000, stacks="python")
    torch.cuda.reset_peak_memory_stats()
    print("before", torch.cuda.memory_allocated())
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], profile_memory=True):
        for _ in range(6):
            step(model, optimizer)
    print("after", torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
    torch.cuda.memory._dump_snapshot(path)


def busy(steps):
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    b = torch.empty(512 << 20, dtype=torch.uint8, device="cuda")
    host = torch.empty(64 << 20, dtype=torch.uint8).pin_memory()
    torch.mm(a, a)
    torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStart()
    for _ in range(int(steps)):
        with torch.cuda.nvtx.range("step"):
            with torch.cuda.nvtx.range("matmul"):
                for _ in range(8):
                    torch.mm(a, a)
                torch.cuda.synchronize()
            with torch.cuda.nvtx.range("copy"):
                for _ in range(20):
                    b[: 256 << 20].copy_(b[256 << 20 :])
                torch.cuda.synchronize()
            with torch.cuda.nvtx.range("host"):
                b[: 64 << 20].copy_(host, non_blocking=True)
                torch.cuda.synchronize()
            with torch.cuda.nvtx.range("idle"):
                time.sleep(0.01)
    torch.cuda.cudart().cudaProfilerStop()


if __name__ == "__main__":
    {"train": train, "shapes": shapes, "snapshot": snapshot, "busy": busy}[sys.argv[1]](sys.argv[2])
