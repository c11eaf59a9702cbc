"""Cause `input`: the training loop prepares its own batches."""

from __future__ import annotations

import importlib
from typing import Any

from faults.programs.case import Step, planted
from faults.programs.sealed.parts import endless, sizes
from faults.programs.sealed.vision import residual_network


class Photos:
    """Photos in memory, each cropped, flipped, jittered and normalised when it is asked for."""

    def __init__(self, pixels: int, classes: int) -> None:
        self._numpy = importlib.import_module("numpy")
        self._pixels, self._classes = pixels, classes
        dice = self._numpy.random.default_rng(0)
        edge = pixels * 8 // 7
        self._stored = dice.integers(0, 256, (64, edge, edge, 3), dtype=self._numpy.uint8)

    def __len__(self) -> int:
        return 200_000

    def __getitem__(self, index: int) -> tuple[Any, int]:
        numpy, pixels = self._numpy, self._pixels
        dice = numpy.random.default_rng(index)
        top, left = dice.integers(0, self._stored.shape[1] - pixels, 2)
        image = self._stored[index % len(self._stored), top : top + pixels, left : left + pixels]
        if dice.random() < 0.5:
            image = image[:, ::-1]
        image = image.astype(numpy.float32) / 255
        image = (image * dice.uniform(0.8, 1.2)).clip(0, 1)
        image = (image - numpy.float32([0.485, 0.456, 0.406])) / numpy.float32([0.229, 0.224, 0.225])
        return numpy.ascontiguousarray(image.transpose(2, 0, 1)), index % self._classes


@planted("input", "prefetch", steps=3)
def photos_prepared_between_the_steps(torch: Any, fix: str | None) -> Step:
    """A residual network is trained on photos from a `DataLoader` with its default, no workers.

    Cropping and normalising 48 photos takes the main process longer than the GPU needs for a step. Workers prepare the
    next batches meanwhile, and pinned memory lets the copy run in the background.
    """
    nn = torch.nn
    batch, pixels, width, classes = sizes((48, 224, 64, 1000), (2, 56, 4, 10))
    workers = sizes(8, 1) if fix else 0
    loader = torch.utils.data.DataLoader(
        Photos(pixels, classes),
        batch_size=batch,
        shuffle=True,
        drop_last=True,
        num_workers=workers,
        pin_memory=bool(fix),
        persistent_workers=bool(workers),
    )
    model = residual_network(torch, width, (2, 2, 2, 2), classes).to("cuda", memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4, fused=True)
    source = endless(loader)

    def step() -> Any:
        images, labels = next(source)  # planted
        images = images.to("cuda", non_blocking=True).to(memory_format=torch.channels_last)
        labels = labels.to("cuda", non_blocking=True)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16):
            loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step
