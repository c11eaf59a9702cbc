"""A training loop whose matmuls run in FP32; with --fixed they may use TF32."""

import sys

import torch

torch.backends.cuda.matmul.allow_tf32 = "--fixed" in sys.argv
device = "cuda" if torch.cuda.is_available() else "cpu"
width = 4096 if device == "cuda" else 128
layers = [torch.nn.Linear(width, width) for _ in range(4)]
model = torch.nn.Sequential(*layers).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
batch = torch.randn(width, width, device=device)
for _ in range(150):
    loss = model(batch).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")
