"""Cause `transfer`: more bytes than need be between host and GPU, or on the slow way."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted


@planted("transfer", "pin_memory")
def shots_from_pageable_memory(torch: Any, fix: str | None) -> Step:
    """Seismic shots of 67 MB are copied to the GPU from ordinary memory and filtered there in the spectrum.

    The driver has to pass pageable memory through a buffer of its own, which takes several times as long as the
    filter. From pinned memory the copy runs at the link's speed.
    """
    traces, samples = 256, 65536
    shots = torch.randn(traces, samples)
    if fix:
        shots = shots.pin_memory()
    response = torch.rand(samples // 2 + 1, device="cuda")

    def step() -> Any:
        signal = shots.to("cuda", non_blocking=bool(fix))  # planted
        filtered = torch.fft.irfft(torch.fft.rfft(signal) * response, n=samples)
        return filtered.square().mean(-1)

    return step


@planted("transfer", "reduce_before_copy")
def feature_maps_averaged_on_the_host(torch: Any, fix: str | None) -> Step:
    """An image search fetches whole feature maps with `.cpu()` and averages them over their pixels there.

    51 MB cross the link for the sake of 64 short vectors. Averaged on the GPU, one pixel's worth has to be copied.
    """
    batch, channels, side = 64, 256, 28
    filters = [
        (torch.randn(channels, channels, 3, 3, device="cuda") * (4.5 * channels) ** -0.5).to(
            torch.bfloat16, memory_format=torch.channels_last
        )
        for _ in range(4)
    ]
    images = torch.randn(batch, channels, side, side, device="cuda", dtype=torch.bfloat16)
    images = images.to(memory_format=torch.channels_last)

    def step() -> Any:
        y = images
        for weight in filters:
            y = torch.relu(torch.nn.functional.conv2d(y, weight, padding=1))
        maps = y.float()
        return maps.mean((2, 3)).cpu() if fix else maps.cpu().mean((2, 3))  # planted

    return step
