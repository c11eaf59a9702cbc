"""Semantic segmentation with a U-Net; IoU, dice and pixel accuracy are followed every step."""
import os, time
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

SMALL, QUICK = os.environ.get("SMALL") == "1", os.environ.get("QUICK") == "1"
STEPS = max(6, int((6 if SMALL else 30 if QUICK else 160) * float(os.environ.get("STEPS_SCALE", 1))))
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SIZE, BATCH, WIDTH, SCENES = (32, 2, 8, 16) if SMALL else (256, 8, 32, 320)
CLASSES = 21


class Scenes(Dataset):
    """Rectangles of some class on a noisy background, drawn once."""
    def __init__(self, n, seed=0):
        rng = np.random.default_rng(seed)
        self.images = rng.integers(0, 80, (n, SIZE, SIZE, 3), dtype=np.uint8)
        self.masks = np.zeros((n, SIZE, SIZE), dtype=np.uint8)
        for i in range(n):
            for _ in range(6):
                c, (y, x) = rng.integers(1, CLASSES), rng.integers(0, SIZE * 3 // 4, 2)
                h, w = rng.integers(SIZE // 16, SIZE // 3, 2)
                self.masks[i, y:y + h, x:x + w] = c
                self.images[i, y:y + h, x:x + w] += np.uint8(c * 8)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        image, mask = self.images[i], self.masks[i]
        if np.random.rand() < 0.5:
            image, mask = image[:, ::-1], mask[:, ::-1]
        image = (image.astype(np.float32) / 255.0 - 0.45) / 0.22
        return torch.from_numpy(image.transpose(2, 0, 1).copy()), torch.from_numpy(mask.astype(np.int64))


class DoubleConv(nn.Sequential):
    def __init__(self, a, b):
        super().__init__(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(inplace=True),
                         nn.Conv2d(b, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(inplace=True))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        w = [WIDTH, WIDTH * 2, WIDTH * 4, WIDTH * 8]
        self.down = nn.ModuleList(DoubleConv(a, b) for a, b in zip([3] + w, w))
        self.mid = DoubleConv(w[-1], w[-1] * 2)
        self.ups = nn.ModuleList(nn.ConvTranspose2d(2 * c, c, 2, 2) for c in reversed(w))
        self.convs = nn.ModuleList(DoubleConv(2 * c, c) for c in reversed(w))
        self.head = nn.Conv2d(WIDTH, CLASSES, 1)

    def forward(self, x):
        skips = []
        for down in self.down:
            x = down(x)
            skips.append(x)
            x = F.max_pool2d(x, 2)
        x = self.mid(x)
        for up, conv in zip(self.ups, self.convs):
            x = conv(torch.cat([skips.pop(), up(x)], dim=1))
        return self.head(x)


def iou_per_class(pred, target):
    pred, target, ious = pred.cpu().numpy(), target.cpu().numpy(), []
    for c in range(CLASSES):
        inter = np.logical_and(pred == c, target == c).sum()
        union = np.logical_or(pred == c, target == c).sum()
        ious.append(inter / union if union else np.nan)
    return np.nanmean(ious)


def dice_score(pred, target):
    scores = []
    for c in range(1, CLASSES):
        p, t = pred == c, target == c
        inter, total = (p & t).sum().item(), p.sum().item() + t.sum().item()
        if total > 0:
            scores.append(2 * inter / total)
    return float(np.mean(scores))


def main():
    torch.manual_seed(0)
    loader = DataLoader(Scenes(SCENES), batch_size=BATCH, shuffle=True, num_workers=1 if SMALL else 4, drop_last=True,
                        persistent_workers=True)
    model = UNet().to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    step, history = 0, []
    while step < STEPS:
        for images, masks in loader:
            if step == STEPS // 3:
                if DEVICE == "cuda":
                    torch.cuda.synchronize()
                t0 = time.perf_counter()
            images, masks = images.to(DEVICE), masks.to(DEVICE)
            logits = model(images)
            loss = F.cross_entropy(logits, masks)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            pred = logits.detach().argmax(dim=1)
            acc = (pred == masks).float().mean().item()
            history.append((loss.item(), acc, iou_per_class(pred, masks), dice_score(pred, masks)))
            step += 1
            if step % 10 == 0:
                l, a, i, d = np.mean(history[-10:], axis=0)
                print(f"step {step} loss {l:.4f} acc {a:.3f} mIoU {i:.3f} dice {d:.3f}", flush=True)
            if step >= STEPS:
                break
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    print(f"ms_per_step={(time.perf_counter() - t0) * 1000 / (STEPS - STEPS // 3):.3f}")


if __name__ == "__main__":
    main()
