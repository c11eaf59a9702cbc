"""A training loop with faults that `warpline lint` finds."""

import time

import torch

model = torch.nn.Linear(4096, 4096, device="cuda")
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(1024, 4096)), batch_size=64)
optimizer = torch.optim.AdamW(model.parameters(), foreach=False)

for (x,) in loader:
    loss = model(x.to("cuda")).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())

began = time.perf_counter()
model(torch.randn(64, 4096, device="cuda"))
print(time.perf_counter() - began)
