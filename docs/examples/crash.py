"""A training loop that fails half-way, while it is being recorded."""

import sys

import torch
from torch import nn

FAILS_AT = int(sys.argv[1]) if len(sys.argv) > 1 else 30
device = "cuda" if torch.cuda.is_available() else "cpu"
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 8)).to(device)
optimizer = torch.optim.Adam(model.parameters())

for step in range(60):
    batch = torch.randn(32, 64 if step < FAILS_AT else 63, device=device)
    optimizer.zero_grad()
    model(batch).square().mean().backward()
    optimizer.step()
