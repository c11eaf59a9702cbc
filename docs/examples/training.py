"""A training loop as people write them: forward, backward, optimizer.step, now and then the loss printed."""

import sys

import torch
from torch import nn

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 60
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)

layer = nn.TransformerEncoderLayer(d_model=256, nhead=4, dim_feedforward=1024, batch_first=True)
model = nn.Sequential(nn.TransformerEncoder(layer, num_layers=2), nn.Linear(256, 16)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
loss_of = nn.CrossEntropyLoss()

for step in range(STEPS):
    inputs = torch.randn(8, 64, 256, device=device)
    targets = torch.randint(0, 16, (8 * 64,), device=device)
    optimizer.zero_grad()
    loss = loss_of(model(inputs).flatten(0, 1), targets)
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(f"step {step}: loss {loss.item():.4f}", flush=True)
print("trained")
