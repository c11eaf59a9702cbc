"""Cause `input`: the training loop prepares its own batches."""

from __future__ import annotations

import importlib
from typing import Any

from faults.programs.case import Step, planted
from faults.programs.sealed.parts import endless, sizes

WINDOW, HOP, BANDS = 256, 80, 64
"""Of a spectrum: samples in a window, samples to the next one, and bands of frequency."""


class Recordings:
    """Recorded calls; a batch gets noise and gain, and becomes spectra in which some bands and times are blanked."""

    def __init__(self, torch: Any, batch: int, frames: int, letters: int, said: int) -> None:
        self._torch, self._numpy = torch, importlib.import_module("numpy")
        self._batch, self._frames, self._letters, self._said = batch, frames, letters, said
        dice = self._numpy.random.default_rng(0)
        self._samples = WINDOW + HOP * (frames - 1)
        self._stored = dice.standard_normal((64, 2 * self._samples), dtype=self._numpy.float32)
        self._taper = self._numpy.hanning(WINDOW).astype(self._numpy.float32)
        self._edges = self._numpy.linspace(0, WINDOW // 2 - 4, BANDS).astype(int)

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        dice = self._numpy.random.default_rng(index)
        spectra = self._numpy.stack([self._spectrum(dice) for _ in range(self._batch)])
        text = dice.integers(1, self._letters, (self._batch, self._said))
        return self._torch.from_numpy(spectra), self._torch.from_numpy(text)

    def _spectrum(self, dice: Any) -> Any:
        numpy = self._numpy
        start = dice.integers(0, self._samples)
        sound = self._stored[dice.integers(0, len(self._stored)), start : start + self._samples]
        noise = dice.standard_normal(self._samples, dtype=numpy.float32)
        sound = dice.uniform(0.5, 1.5) * sound + 0.05 * noise
        windows = numpy.lib.stride_tricks.sliding_window_view(sound, WINDOW)[::HOP] * self._taper
        power = numpy.abs(numpy.fft.rfft(windows)) ** 2
        bands = numpy.log(numpy.add.reduceat(power, self._edges, axis=1) + 1e-6).astype(numpy.float32)
        bands = (bands - bands.mean()) / (bands.std() + 1e-6)
        time, band = dice.integers(0, self._frames // 2), dice.integers(0, BANDS // 2)
        bands[time : time + self._frames // 8] = 0
        bands[:, band : band + BANDS // 8] = 0
        return bands


@planted("input", "prefetch", steps=3)
def conformer_that_computes_its_own_spectra(torch: Any, fix: str | None) -> Step:
    """A conformer learns to recognise speech, and a `DataLoader` without workers computes its spectra in numpy.

    The noise, the Fourier transforms and the masks of a batch take the main process longer than the rest of the step,
    and the GPU waits. Workers compute the next batches meanwhile and pinned memory lets the copies run in the
    background.
    """
    nn, functional = torch.nn, torch.nn.functional
    width, layers, heads, batch, frames, letters, said = sizes((512, 3, 8, 16, 240, 64, 16), (16, 2, 2, 2, 32, 8, 3))

    class Convolution(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.normed = nn.LayerNorm(width), nn.BatchNorm1d(width)
            self.first, self.last = nn.Conv1d(width, 2 * width, 1), nn.Conv1d(width, width, 1)
            self.near = nn.Conv1d(width, width, 15, padding=7, groups=width)

        def forward(self, x: Any) -> Any:
            y = functional.glu(self.first(self.norm(x).transpose(1, 2)), 1)
            return self.last(functional.silu(self.normed(self.near(y)))).transpose(1, 2)

    class Attention(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.project, self.out = (
                nn.LayerNorm(width),
                nn.Linear(width, 3 * width),
                nn.Linear(width, width),
            )

        def forward(self, x: Any) -> Any:
            q, k, v = self.project(self.norm(x)).unflatten(-1, (3, heads, -1)).permute(2, 0, 3, 1, 4)
            return self.out(functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))

    class Layer(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.parts = nn.ModuleList((self.feed_forward(), Attention(), Convolution(), self.feed_forward()))
            self.norm = nn.LayerNorm(width)

        def feed_forward(self) -> Any:
            layers = [nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, width)]
            return nn.Sequential(*layers)

        def forward(self, x: Any) -> Any:
            for part, share in zip(self.parts, (0.5, 1.0, 1.0, 0.5), strict=True):
                x = torch.add(x, part(x), alpha=share)
            return self.norm(x)

    front = [nn.Linear(4 * BANDS, width)]
    model = nn.Sequential(*front, *(Layer() for _ in range(layers)), nn.Linear(width, letters)).to("cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    workers = sizes(8, 1) if fix else 0
    loader = torch.utils.data.DataLoader(
        Recordings(torch, batch, frames, letters, said),
        batch_size=None,
        num_workers=workers,
        pin_memory=bool(fix),
        persistent_workers=bool(workers),
        prefetch_factor=4 if workers else None,
    )
    source = endless(loader)
    heard, spoken = torch.full((batch,), frames // 4), torch.full((batch,), said)

    def step() -> Any:
        spectra, text = (part.to("cuda", non_blocking=True) for part in next(source))  # planted
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16):
            logits = model(spectra.unflatten(1, (-1, 4)).flatten(2))
        chances = logits.float().log_softmax(-1).transpose(0, 1)
        loss = functional.ctc_loss(chances, text, heard, spoken, zero_infinity=True)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step
