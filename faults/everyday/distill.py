"""Knowledge distillation: a frozen ViT-B teacher guides a small ViT student."""
import os, time
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset, RandomSampler

SMALL, QUICK = os.environ.get("SMALL") == "1", os.environ.get("QUICK") == "1"
STEPS = max(6, int((6 if SMALL else 60 if QUICK else 240) * float(os.environ.get("STEPS_SCALE", 1))))
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
IMAGES, SIZE, PATCH, BATCH = (32, 32, 16, 4) if SMALL else (4096, 128, 16, 512)
TEACHER, STUDENT = ((32, 2, 2), (16, 1, 2)) if SMALL else ((768, 12, 12), (320, 6, 5))
CLASSES, T, ALPHA = 200, 4.0, 0.7
torch.backends.cuda.matmul.allow_tf32 = True
torch.backends.cudnn.benchmark = True


class Images(Dataset):
    def __init__(self, n, seed=0):
        rng = np.random.default_rng(seed)
        self.images = torch.from_numpy(rng.integers(0, 256, (n, 3, SIZE, SIZE), dtype=np.uint8))
        self.labels = torch.from_numpy(rng.integers(0, CLASSES, n))

    def __len__(self):
        return len(self.images)

    def __getitems__(self, index):
        index = torch.tensor(index)
        return self.images[index], self.labels[index]


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.n1, self.n2, self.heads = nn.LayerNorm(dim), nn.LayerNorm(dim), heads
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        B, N, C = x.shape
        q, k, v = self.qkv(self.n1(x)).view(B, N, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(B, N, C))
        return x + self.mlp(self.n2(x))


class ViT(nn.Module):
    def __init__(self, dim, layers, heads):
        super().__init__()
        self.patch = nn.Conv2d(3, dim, PATCH, PATCH)
        self.pos = nn.Parameter(torch.randn(1, (SIZE // PATCH) ** 2, dim) * 0.02)
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, CLASSES)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2) + self.pos
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).mean(dim=1))


def prepare(images):
    images = (images.float() / 255.0 - 0.5) / 0.25
    flip = torch.rand(len(images), 1, 1, 1, device=images.device) < 0.5
    return torch.where(flip, images.flip(3), images)


def distill_loss(student_logits, teacher_logits, labels):
    soft = F.kl_div(F.log_softmax(student_logits / T, dim=-1), F.log_softmax(teacher_logits / T, dim=-1),
                    reduction="batchmean", log_target=True) * T * T
    return ALPHA * soft + (1 - ALPHA) * F.cross_entropy(student_logits, labels)


def main():
    torch.manual_seed(0)
    data = Images(IMAGES)
    sampler = RandomSampler(data, replacement=True, num_samples=BATCH * STEPS)
    loader = DataLoader(data, batch_size=BATCH, sampler=sampler, num_workers=1 if SMALL else 6, pin_memory=True,
                        collate_fn=lambda batch: batch)
    teacher = ViT(*TEACHER).to(DEVICE).eval().requires_grad_(False)
    student = ViT(*STUDENT).to(DEVICE).train()
    optimizer = torch.optim.AdamW(student.parameters(), lr=5e-4, weight_decay=0.05, fused=True)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    running = torch.zeros((), device=DEVICE)
    for step, (images, labels) in enumerate(loader):
        if step == STEPS // 3:
            if DEVICE == "cuda":
                torch.cuda.synchronize()
            t0 = time.perf_counter()
        images, labels = prepare(images.to(DEVICE, non_blocking=True)), labels.to(DEVICE, non_blocking=True)
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            with torch.no_grad():
                teacher_logits = teacher(images)
            student_logits = student(images)
            loss = distill_loss(student_logits.float(), teacher_logits.float(), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        scheduler.step()
        running += loss.detach()
        if (step + 1) % 40 == 0:
            print(f"step {step + 1}/{STEPS} loss {running.item() / 40:.4f} lr {scheduler.get_last_lr()[0]:.2e}", flush=True)
            running.zero_()
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    print(f"ms_per_step={(time.perf_counter() - t0) * 1000 / (STEPS - STEPS // 3):.3f}")


if __name__ == "__main__":
    main()
