"""Cause `transfer`: targets, frames and masks that cross the bus in the wrong number, size or stream."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted
from faults.programs.parts import weights


@planted("transfer", "coalesce_copies")
def targets_of_every_image(torch: Any, fix: str | None) -> Step:
    """A detector moves its targets as a list of dictionaries: four small tensors for each of 24 images.

    That is 96 copies of some hundred bytes, each with its call. A collate function that joins each field over the
    images makes four of them.
    """
    (tower,), (head,) = weights(torch, 1, 1024, 1024, torch.bfloat16), weights(torch, 1, 1024, 4, torch.bfloat16)
    features = torch.randn(8192, 1024, device="cuda", dtype=torch.bfloat16)
    images = [
        {
            "boxes": torch.rand(12, 4).pin_memory(),
            "labels": torch.randint(0, 80, (12,)).pin_memory(),
            "area": torch.rand(12).pin_memory(),
            "crowd": torch.zeros(12, dtype=torch.int64).pin_memory(),
        }
        for _ in range(24)
    ]
    joined = {field: torch.cat([image[field] for image in images]).pin_memory() for field in images[0]}

    def step() -> Any:
        if fix:
            there = {field: values.to("cuda", non_blocking=True) for field, values in joined.items()}
        else:
            moved = [
                {field: values.to("cuda", non_blocking=True) for field, values in image.items()}  # planted
                for image in images
            ]
            there = {field: torch.cat([image[field] for image in moved]) for field in joined}
        predicted = (features @ tower @ head).float()
        distance = (predicted[:, None] - there["boxes"][None]).abs().sum(-1)
        weight = there["area"] * (there["crowd"] == 0) * (there["labels"] >= 0)
        return (distance.amin(0) * weight).sum()

    return step


@planted("transfer", "reduce_before_copy")
def frames_sent_as_floats(torch: Any, fix: str | None) -> Step:
    """A loader turns bytes into float32 before the batch of images is sent, from pinned memory.

    The bus carries four times the bytes that the images have, and the network's stem has nothing to do meanwhile. Sent
    as bytes, and turned into numbers on the GPU, they are the same images.
    """
    functional = torch.nn.functional
    frames = torch.randint(0, 256, (128, 3, 224, 224), dtype=torch.uint8)
    ready = (frames if fix else frames.float().div_(255.0)).pin_memory()
    stem = (torch.randn(64, 3, 7, 7, device="cuda") * 0.1).to(torch.bfloat16, memory_format=torch.channels_last)

    def step() -> Any:
        with torch.no_grad():
            x = ready.to("cuda", non_blocking=True)  # planted
            x = x.float().div_(255.0) if fix else x
            x = x.to(torch.bfloat16, memory_format=torch.channels_last)
            return functional.conv2d(x, stem, stride=2, padding=3).mean((2, 3))

    return step


@planted("transfer", "streams")
def masks_returned_on_the_compute_stream(torch: Any, fix: str | None) -> Step:
    """A video segmenter sends its masks home to pinned memory, without a wait but on the stream that computes.

    The next frames' matmuls stand behind the copy, though they do not need it. On a stream of its own it runs beside
    them.
    """
    layers = weights(torch, 7, 2048, 2048, torch.bfloat16)
    (head,) = weights(torch, 1, 2048, 2048, torch.bfloat16)
    features = torch.randn(16384, 2048, device="cuda", dtype=torch.bfloat16)
    homes = [torch.empty(16384, 2048, dtype=torch.bfloat16).pin_memory() for _ in range(2)]
    side = torch.cuda.Stream()
    count = [0]

    def step() -> None:
        x = features
        for weight in layers:
            x = x @ weight
        masks = (x @ head).sigmoid_()
        home = homes[count[0] % 2]
        count[0] += 1
        if fix:
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                home.copy_(masks, non_blocking=True)
            masks.record_stream(side)
        else:
            home.copy_(masks, non_blocking=True)  # planted

    return step
