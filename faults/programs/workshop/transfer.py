"""Cause `transfer`: batches from ordinary memory, and pixels that go to the CPU for the sake of a mean."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted


@planted("transfer", "pin_memory")
def replayed_frames_from_a_plain_buffer(torch: Any, fix: str | None) -> Step:
    """A deep Q-network takes each batch of 1024 stacked frames from a replay buffer in pageable memory.

    The driver has to copy 29 MB through its own buffer while the CPU waits. From pinned memory the copy is several
    times as fast, and asynchronous.
    """
    nn = torch.nn
    model = nn.Sequential(
        nn.Conv2d(4, 32, 8, stride=4),
        nn.ReLU(),
        nn.Conv2d(32, 64, 4, stride=2),
        nn.ReLU(),
        nn.Conv2d(64, 64, 3),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(3136, 512),
        nn.ReLU(),
        nn.Linear(512, 18),
    ).to("cuda", torch.bfloat16, memory_format=torch.channels_last)
    model.requires_grad_(False)
    buffer = torch.randint(0, 256, (1024, 4, 84, 84), dtype=torch.uint8)
    buffer = buffer.pin_memory() if fix else buffer

    def step() -> Any:
        frames = buffer.to("cuda", non_blocking=True)  # planted
        x = frames.to(torch.bfloat16, memory_format=torch.channels_last) * (1 / 255)
        return model(x).max(-1).values.mean()

    return step


@planted("transfer", "reduce_before_copy")
def reconstruction_errors_averaged_on_the_cpu(torch: Any, fix: str | None) -> Step:
    """A validation moves the squared error of every pixel to the CPU and averages it there, image by image.

    25 MB cross the bus where 512 bytes would do: the mean belongs before the copy.
    """
    nn = torch.nn
    channels = (256, 128, 64, 32)
    layers: list[Any] = [nn.Linear(128, 256 * 64), nn.Unflatten(1, (256, 8, 8))]
    for before, after in zip(channels, (*channels[1:], 16), strict=True):
        layers += [nn.ConvTranspose2d(before, after, 4, stride=2, padding=1), nn.ReLU()]
    decoder = nn.Sequential(*layers, nn.Conv2d(16, 3, 3, padding=1))
    decoder = decoder.to("cuda", torch.bfloat16, memory_format=torch.channels_last).requires_grad_(False)
    latents = torch.randn(128, 128, device="cuda", dtype=torch.bfloat16)
    images = torch.rand(128, 3, 128, 128, device="cuda").to(memory_format=torch.channels_last)

    def step() -> Any:
        errors = (decoder(latents).float() - images).square()
        return errors.mean((1, 2, 3)).cpu() if fix else errors.cpu().mean((1, 2, 3))  # planted

    return step
