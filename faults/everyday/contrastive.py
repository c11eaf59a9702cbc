"""CLIP-like two-tower training: image transformer and text transformer, one contrastive loss over the batch."""
import math, os, time
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

SMALL, QUICK = os.environ.get("SMALL") == "1", os.environ.get("QUICK") == "1"
STEPS = max(6, int((6 if SMALL else 24 if QUICK else 100) * float(os.environ.get("STEPS_SCALE", 1))))
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
PAIRS, BATCH, DIM, LAYERS, HEADS, VOCAB = (64, 8, 32, 1, 2, 100) if SMALL else (16_384, 1024, 384, 10, 6, 20_000)
IMAGE, PATCH, TEXT, EMBED = (32, 8, 8, 16) if SMALL else (64, 8, 32, 256)
torch.set_float32_matmul_precision("high")


class Pairs(Dataset):
    def __init__(self, n, seed=0):
        rng = np.random.default_rng(seed)
        self.images = torch.from_numpy(rng.integers(0, 256, (n, 3, IMAGE, IMAGE), dtype=np.uint8))
        self.texts = torch.from_numpy(rng.integers(0, VOCAB, (n, TEXT)))

    def __len__(self):
        return len(self.images)

    def __getitems__(self, index):
        index = torch.tensor(index)
        return self.images[index], self.texts[index]


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.qkv, self.out = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)
        self.mlp = nn.Sequential(nn.Linear(DIM, 4 * DIM), nn.GELU(), nn.Linear(4 * DIM, DIM))

    def forward(self, x):
        B, T, _ = x.shape
        q, k, v = self.qkv(self.n1(x)).view(B, T, 3, HEADS, DIM // HEADS).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(B, T, DIM))
        return x + self.mlp(self.n2(x))


class Tower(nn.Module):
    def __init__(self, embed, tokens):
        super().__init__()
        self.embed, self.pos = embed, nn.Parameter(torch.randn(1, tokens, DIM) * 0.02)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm, self.proj = nn.LayerNorm(DIM), nn.Linear(DIM, EMBED, bias=False)

    def forward(self, x):
        x = self.embed(x)
        if x.dim() == 4:
            x = x.flatten(2).transpose(1, 2)
        x = self.blocks(x + self.pos)
        return F.normalize(self.proj(self.norm(x.mean(dim=1))), dim=-1)


class TwoTower(nn.Module):
    def __init__(self):
        super().__init__()
        self.image = Tower(nn.Conv2d(3, DIM, PATCH, PATCH), (IMAGE // PATCH) ** 2)
        self.text = Tower(nn.Embedding(VOCAB, DIM), TEXT)
        self.log_scale = nn.Parameter(torch.tensor(math.log(1 / 0.07)))

    def forward(self, images, texts):
        images = (images.float() / 255.0 - 0.5) / 0.5
        logits = self.log_scale.exp() * self.image(images) @ self.text(texts).T
        target = torch.arange(len(logits), device=logits.device)
        return (F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target)) / 2


def main():
    torch.manual_seed(0)
    loader = DataLoader(Pairs(PAIRS), batch_size=BATCH, shuffle=True, drop_last=True, num_workers=2 if SMALL else 4,
                        pin_memory=True, persistent_workers=True, collate_fn=lambda batch: batch)
    model = TwoTower().to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, weight_decay=0.1, fused=True)
    step = 0
    while step < STEPS:
        for images, texts in loader:
            if step == STEPS // 3:
                if DEVICE == "cuda":
                    torch.cuda.synchronize()
                t0 = time.perf_counter()
            images, texts = images.to(DEVICE, non_blocking=True), texts.to(DEVICE, non_blocking=True)
            with torch.autocast(DEVICE, dtype=torch.bfloat16):
                loss = model(images, texts)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            step += 1
            if step % 20 == 0:
                print(f"step {step} loss {loss.item():.4f} scale {model.log_scale.exp().item():.2f}", flush=True)
            if step >= STEPS:
                break
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    print(f"ms_per_step={(time.perf_counter() - t0) * 1000 / (STEPS - STEPS // 3):.3f}")


if __name__ == "__main__":
    main()
