"""Cause `input`: batches that are made while the GPU waits for them."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted
from faults.programs.parts import batches


@planted("input", "prefetch")
def waveforms_made_between_steps(torch: Any, fix: str | None) -> Step:
    """A one-dimensional network learns from waveforms that its dataset simulates, with `num_workers=0`.

    A batch takes the CPU some ten milliseconds, and the GPU waits for it before every step. Eight workers make
    batches ahead while the GPU trains.
    """
    nn = torch.nn
    batch, samples, channels = 128, 4096, 128

    def simulate(index: int) -> Any:
        generator = torch.Generator().manual_seed(index)
        drift = torch.randn(batch, samples, generator=generator)
        noise = torch.randn(batch, samples, generator=generator)
        return torch.sin((0.05 + 0.01 * drift).cumsum(-1)) + 0.1 * noise

    loader = batches(torch, simulate, workers=8 if fix else 0)
    model = nn.Sequential(
        nn.Conv1d(1, channels, 16, stride=4),
        nn.ReLU(),
        nn.Conv1d(channels, channels, 9),
        nn.ReLU(),
        nn.Conv1d(channels, channels, 9),
    ).to("cuda", torch.bfloat16)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)

    def step() -> Any:
        waves = next(loader)  # planted
        optimizer.zero_grad(set_to_none=True)
        encoded = model(waves.to("cuda").to(torch.bfloat16).unsqueeze(1))
        loss = encoded.float().square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step
