"""Records the trace that `warpline demo` shows: a small GPT trained with a few everyday mistakes.

Run on a GPU: python demo_training.py OUT.json.gz
The mistakes are a pageable copy of each batch, a loss read back every step, and an optimizer that
updates one parameter at a time; the model is small enough for the launches to matter.
"""

import gzip
import os
import shutil
import sys
import tempfile

import torch
from torch import nn
from torch.nn import functional
from torch.profiler import ProfilerActivity, profile, record_function, schedule

VOCABULARY, WIDTH, HEADS, LAYERS, BATCH, LENGTH = 8192, 512, 8, 2, 8, 256


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        q, k, v = self.qkv(self.norm_1(x)).view(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.down(functional.gelu(self.up(self.norm_2(x))))


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.Sequential(*[Block() for _ in range(LAYERS)])
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.blocks(self.embed(tokens)))


def train_step(model: nn.Module, optimizer: torch.optim.Optimizer) -> float:
    with record_function("load batch"):
        tokens = torch.randint(0, VOCABULARY, (BATCH, LENGTH + 1)).to("cuda")
    with record_function("forward"):
        logits = model(tokens[:, :-1])
        loss = functional.cross_entropy(logits.reshape(-1, VOCABULARY), tokens[:, 1:].reshape(-1))
    with record_function("backward"):
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.item()


def main() -> None:
    torch.manual_seed(0)
    model = Model().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    for _ in range(5):
        train_step(model, optimizer)
    activities = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    with profile(
        activities=activities,
        schedule=schedule(wait=1, warmup=2, active=4),
        record_shapes=True,
        with_stack=os.environ.get("STACK", "1") == "1",
    ) as profiler:
        for _ in range(7):
            train_step(model, optimizer)
            profiler.step()
    with tempfile.TemporaryDirectory() as folder:
        plain = os.path.join(folder, "trace.json")
        profiler.export_chrome_trace(plain)
        with open(plain, "rb") as source, gzip.open(sys.argv[1], "wb", 9) as target:
            shutil.copyfileobj(source, target)


main()
