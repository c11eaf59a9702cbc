"""Cause `cold_start`: the first calls load, choose and set up what later calls find ready."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted
from faults.programs.sealed.parts import sizes
from faults.programs.ward.networks import scaled


@planted("cold_start", "warm_up", own_process=True)
def speakers_recognised_from_the_first_call_on(torch: Any, fix: str | None) -> Step:
    """A time-delay network recognises speakers by recordings of five lengths, from the first call after the start.

    The first calls load kernels, and cuDNN, cuBLAS and cuFFT set themselves up for each length. A service that takes
    each length once before it opens hides that from its callers.
    """
    nn, functional = torch.nn, torch.nn.functional
    width, layers, window, known, lengths = sizes(
        (512, 4, 512, 1000, (32000, 40000, 48000, 56000, 64000)), (16, 1, 32, 6, (256, 320))
    )
    bands = window // 2 + 1

    class Delay(torch.nn.Module):  # type: ignore[misc]
        def __init__(self, gap: int) -> None:
            super().__init__()
            self.listen = nn.Conv1d(width, width, 3, dilation=gap, padding=gap)
            self.narrow, self.widen = nn.Linear(width, width // 4), nn.Linear(width // 4, width)

        def forward(self, x: Any) -> Any:
            heard = functional.relu(self.listen(x))
            weight = torch.sigmoid(self.widen(functional.relu(self.narrow(heard.mean(-1)))))
            return x + heard * weight.unsqueeze(-1)

    enter, leave = nn.Conv1d(bands, width, 5, padding=2), nn.Linear(2 * width, 192)
    network = nn.Sequential(enter, *(Delay(2 + layer) for layer in range(layers)))
    network = scaled(torch, network, 0.5).to("cuda").requires_grad_(False)
    leave = leave.to("cuda").requires_grad_(False)
    people = functional.normalize(torch.randn(known, 192, device="cuda"), dim=-1)
    recordings = [torch.randn(1, length, device="cuda") for length in lengths]
    hann = torch.hann_window(window, device="cuda")
    calls = {"count": 0}

    def recognise(sound: Any) -> Any:
        with torch.inference_mode():
            spectrum = torch.stft(sound, window, window=hann, return_complex=True).abs().log1p()
            heard = network(spectrum)
            vector = leave(torch.cat((heard.mean(-1), heard.std(-1)), -1))
            return (functional.normalize(vector, dim=-1) @ people.T).max().item()

    if fix:
        for recording in recordings:
            recognise(recording)

    def step() -> Any:
        calls["count"] += 1
        return recognise(recordings[(calls["count"] - 1) % len(recordings)])  # planted

    return step
