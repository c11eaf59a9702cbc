"""Cause `cold_start`: the first calls load, choose and set up what later calls find ready."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted
from faults.programs.sealed.parts import sizes
from faults.programs.ward.networks import scaled


@planted("cold_start", "warm_up", own_process=True)
def voice_timed_from_its_first_sentences(torch: Any, fix: str | None) -> Step:
    """A HiFi-GAN speaks five sentences of different lengths, and the clock runs from the first one after the start.

    The first sentences load kernels and let cuDNN choose its algorithms. A service that speaks each length once before
    it takes requests does not show that to anyone.
    """
    nn, functional = torch.nn, torch.nn.functional
    width, rates, bands, lengths = sizes((256, (8, 8, 2, 2), 80, (200, 280, 360, 440, 520)), (16, (2, 2), 8, (24, 40)))

    class Residual(torch.nn.Module):  # type: ignore[misc]
        def __init__(self, channels: int, reach: int) -> None:
            super().__init__()
            self.layers = nn.ModuleList(
                nn.Conv1d(channels, channels, reach, dilation=gap, padding=gap * (reach - 1) // 2) for gap in (1, 3, 5)
            )

        def forward(self, x: Any) -> Any:
            for layer in self.layers:
                x = x + layer(functional.leaky_relu(x, 0.1))
            return x

    layers: list[Any] = [nn.Conv1d(bands, width, 7, padding=3)]
    for rate in rates:
        width //= 2
        layers += [nn.LeakyReLU(0.1), nn.ConvTranspose1d(2 * width, width, 2 * rate, rate, padding=rate // 2)]
        layers += [Residual(width, 3), Residual(width, 7)]
    voice = nn.Sequential(*layers, nn.LeakyReLU(0.1), nn.Conv1d(width, 1, 7, padding=3), nn.Tanh())
    voice = scaled(torch, voice, 0.5).to("cuda").requires_grad_(False)
    sentences = [torch.randn(1, bands, length, device="cuda") for length in lengths]
    window = torch.hann_window(64, device="cuda")
    spoken = {"count": 0}

    def speak(spectrum: Any) -> Any:
        with torch.inference_mode():
            sound = voice(spectrum).flatten()
            loudness = torch.stft(sound, 64, window=window, return_complex=True).abs().mean()
            return (sound / (1e-3 + loudness)).clamp(-1, 1).abs().mean().item()

    if fix:
        for sentence in sentences:
            speak(sentence)

    def step() -> Any:
        spoken["count"] += 1
        return speak(sentences[(spoken["count"] - 1) % len(sentences)])  # planted

    return step
