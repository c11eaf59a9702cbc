"""An inference loop: one batch after the other through a convolutional network, results brought to the host."""

import sys

import torch
from torch import nn

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 60
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)


def block(channels_in: int, channels_out: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(channels_in, channels_out, 3, stride=2, padding=1), nn.BatchNorm2d(channels_out), nn.ReLU()
    )


model = nn.Sequential(block(3, 32), block(32, 64), block(64, 128), nn.AdaptiveAvgPool2d(1), nn.Flatten())
model = nn.Sequential(model, nn.Linear(128, 10)).to(device).eval()

counts = [0] * 10
with torch.inference_mode():
    for _ in range(STEPS):
        images = torch.randn(16, 3, 64, 64)
        for label in model(images.to(device)).argmax(dim=1).tolist():
            counts[label] += 1
print("seen", sum(counts))
