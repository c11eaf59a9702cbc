"""Image classification: ResNet-18 on in-memory images, augmentation written in numpy."""
import os, random, time
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

SMALL, QUICK = os.environ.get("SMALL") == "1", os.environ.get("QUICK") == "1"
STEPS = max(4, int((4 if SMALL else 42 if QUICK else 120) * float(os.environ.get("STEPS_SCALE", 1))))
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
IMAGES, SIZE, CROP, BATCH, WIDTH = (40, 40, 32, 8, 8) if SMALL else (4000, 128, 112, 64, 64)
CLASSES = 100
MEAN, STD = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])


class Photos(Dataset):
    def __init__(self, n, seed=0):
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(0, CLASSES, n)
        self.images = rng.integers(0, 256, (n, SIZE, SIZE, 3), dtype=np.uint8)

    def __len__(self):
        return len(self.images)

    def random_resized_crop(self, img):
        side = int(SIZE * random.uniform(0.5, 1.0))
        y, x = random.randint(0, SIZE - side), random.randint(0, SIZE - side)
        img = img[y:y + side, x:x + side]
        pos = np.linspace(0, side - 1, CROP)
        lo = np.floor(pos).astype(int)
        hi, frac = np.minimum(lo + 1, side - 1), pos - lo
        rows = img[lo] * (1 - frac)[:, None, None] + img[hi] * frac[:, None, None]
        return rows[:, lo] * (1 - frac)[None, :, None] + rows[:, hi] * frac[None, :, None]

    def color_jitter(self, img):
        img = img * random.uniform(0.7, 1.3)
        mean = img.mean()
        img = (img - mean) * random.uniform(0.7, 1.3) + mean
        grey = img @ np.array([0.299, 0.587, 0.114])
        img = grey[..., None] + (img - grey[..., None]) * random.uniform(0.7, 1.3)
        return np.clip(img, 0, 255)

    def __getitem__(self, i):
        img = self.random_resized_crop(self.images[i])
        if random.random() < 0.5:
            img = img[:, ::-1]
        img = self.color_jitter(img)
        img = (img / 255.0 - MEAN) / STD
        return torch.tensor(img.transpose(2, 0, 1).copy(), dtype=torch.float32), int(self.labels[i])


class Basic(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.c1, self.b1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout)
        self.c2, self.b2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False), nn.BatchNorm2d(cout)
        self.down = nn.Sequential()
        if stride != 1 or cin != cout:
            self.down = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))

    def forward(self, x):
        return F.relu(self.b2(self.c2(F.relu(self.b1(self.c1(x))))) + self.down(x))


def resnet18():
    layers = [nn.Conv2d(3, WIDTH, 7, 2, 3, bias=False), nn.BatchNorm2d(WIDTH), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    cin = WIDTH
    for i, cout in enumerate([WIDTH, WIDTH * 2, WIDTH * 4, WIDTH * 8]):
        layers += [Basic(cin, cout, 1 if i == 0 else 2), Basic(cout, cout, 1)]
        cin = cout
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(cin, CLASSES))


def main():
    torch.manual_seed(0)
    random.seed(0)
    train_loader = DataLoader(Photos(IMAGES), batch_size=BATCH, shuffle=True, drop_last=True)
    model = resnet18().to(DEVICE)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    model.train()
    step, epoch, correct, seen, running_loss = 0, 0, 0, 0, 0.0
    while step < STEPS:
        for images, labels in train_loader:
            if step == STEPS // 3:
                if DEVICE == "cuda":
                    torch.cuda.synchronize()
                t0 = time.perf_counter()
            images, labels = images.to(DEVICE), labels.to(DEVICE)
            optimizer.zero_grad()
            outputs = model(images)
            loss = criterion(outputs, labels)
            loss.backward()
            optimizer.step()
            running_loss += loss.item()
            correct += (outputs.argmax(1) == labels).sum().item()
            seen += len(labels)
            step += 1
            if step % 10 == 0:
                print(f"epoch {epoch} step {step} loss {running_loss / step:.4f} acc {correct / seen:.3f}", flush=True)
            if step >= STEPS:
                break
        epoch += 1
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    print(f"ms_per_step={(time.perf_counter() - t0) * 1000 / (STEPS - STEPS // 3):.3f}")


if __name__ == "__main__":
    main()
