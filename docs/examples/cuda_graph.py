"""A whole training step captured in a CUDA graph and replayed: the loop calls neither the model nor the optimizer."""

import sys

import torch
from torch import nn

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 200
if not torch.cuda.is_available():
    sys.exit("this example needs a CUDA device")
torch.manual_seed(0)

model = nn.Sequential(*[part for _ in range(8) for part in (nn.Linear(512, 512), nn.GELU())], nn.Linear(512, 8)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
inputs, targets = torch.randn(64, 512, device="cuda"), torch.randn(64, 8, device="cuda")


def train() -> torch.Tensor:
    optimizer.zero_grad(set_to_none=True)
    loss = nn.functional.mse_loss(model(inputs), targets)
    loss.backward()
    optimizer.step()
    return loss


side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        train()
torch.cuda.current_stream().wait_stream(side)

graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    loss = train()

for _ in range(STEPS):
    inputs.copy_(torch.randn(64, 512, device="cuda"))
    graph.replay()
torch.cuda.synchronize()
print(f"loss {loss.item():.4f}")
