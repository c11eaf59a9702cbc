"""Convolutional networks: a residual network, and a detector on top of one."""

from __future__ import annotations

from typing import Any


def bottleneck(torch: Any, before: int, inner: int, stride: int) -> Any:
    """A residual block of ResNet-50."""
    nn = torch.nn
    after = 4 * inner

    class Bottleneck(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.reduce, self.reduced = nn.Conv2d(before, inner, 1, bias=False), nn.BatchNorm2d(inner)
            self.look = nn.Conv2d(inner, inner, 3, stride=stride, padding=1, bias=False)
            self.looked = nn.BatchNorm2d(inner)
            self.expand, self.expanded = nn.Conv2d(inner, after, 1, bias=False), nn.BatchNorm2d(after)
            self.relu, self.shortcut = nn.ReLU(inplace=True), nn.Identity()
            if stride > 1 or before != after:
                self.shortcut = nn.Sequential(
                    nn.Conv2d(before, after, 1, stride=stride, bias=False), nn.BatchNorm2d(after)
                )

        def forward(self, x: Any) -> Any:
            y = self.relu(self.reduced(self.reduce(x)))
            y = self.relu(self.looked(self.look(y)))
            return self.relu(self.expanded(self.expand(y)) + self.shortcut(x))

    return Bottleneck()


def residual_body(torch: Any, width: int, blocks: tuple[int, ...]) -> tuple[Any, int]:
    """The convolutions of a residual network with some blocks a stage, and how many channels come out."""
    nn = torch.nn
    layers: list[Any] = [
        nn.Conv2d(3, width, 7, stride=2, padding=3, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, stride=2, padding=1),
    ]
    before = width
    for stage, count in enumerate(blocks):
        inner = width * 2**stage
        for index in range(count):
            layers.append(bottleneck(torch, before, inner, stride=2 if stage and not index else 1))
            before = 4 * inner
    return nn.Sequential(*layers), before


def residual_network(torch: Any, width: int, blocks: tuple[int, ...], classes: int) -> Any:
    """A classifier; width 64 and blocks (3, 4, 6, 3) are ResNet-50."""
    nn = torch.nn
    body, channels = residual_body(torch, width, blocks)
    return nn.Sequential(body, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


def detector(torch: Any, width: int, classes: int) -> Any:
    """A detector without anchors: for each cell of 16 x 16 pixels an object score, class scores and a box."""
    nn = torch.nn

    class Detector(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.body, channels = residual_body(torch, width, (3, 4, 6))
            self.neck = nn.Sequential(nn.Conv2d(channels, 4 * width, 1), nn.ReLU(inplace=True))
            self.classes = self.tower(1 + classes)
            self.boxes = self.tower(4)

        def tower(self, outputs: int) -> Any:
            layers: list[Any] = []
            for _ in range(2):
                layers += [nn.Conv2d(4 * width, 4 * width, 3, padding=1), nn.ReLU(inplace=True)]
            return nn.Sequential(*layers, nn.Conv2d(4 * width, outputs, 3, padding=1))

        def forward(self, images: Any) -> tuple[Any, Any]:
            features = self.neck(self.body(images))
            scores, boxes = self.classes(features), self.boxes(features)
            return scores.flatten(2).transpose(1, 2), boxes.flatten(2).transpose(1, 2)

    return Detector()
