"""Cause `input`: a dataset that works for longer on a batch than the GPU does."""

from __future__ import annotations

import time
from typing import Any

from faults.programs.case import Step, planted
from faults.programs.parts import SETTLE_S


@planted("input", "prefetch", steps=4)
def spectrograms_made_by_the_dataset(torch: Any, fix: str | None) -> Step:
    """A keyword spotter's dataset makes each clip's mel spectrogram, in a DataLoader without workers.

    The loop transforms eight clips before each step, and the GPU has nothing to do meanwhile. Eight workers are
    ahead of it.
    """
    nn = torch.nn
    waves = torch.randn(64, 96000)
    window, filters = torch.hann_window(1024), torch.rand(80, 513)

    class Clips(torch.utils.data.Dataset):  # type: ignore[misc]
        def __len__(self) -> int:
            return 1_000_000

        def __getitem__(self, index: int) -> tuple[Any, int]:
            wave = waves[index % 64]
            louder = wave / wave.abs().max() + 0.01 * torch.randn_like(wave)
            spectrum = torch.stft(louder, 1024, 160, window=window, return_complex=True)
            mel = (filters @ spectrum.abs().square()).clamp(min=1e-6).log()
            return (mel - mel.mean()) / mel.std(), index % 30

    workers = {"num_workers": 8, "prefetch_factor": 2, "multiprocessing_context": "fork"} if fix else {}
    loader = torch.utils.data.DataLoader(Clips(), batch_size=8, **workers)
    batches = iter(loader)
    if fix:
        time.sleep(SETTLE_S)

    model = nn.Sequential(
        nn.Conv1d(80, 512, 5, padding=2),
        nn.ReLU(),
        nn.Conv1d(512, 512, 5, padding=2),
        nn.ReLU(),
        nn.Conv1d(512, 512, 5, padding=2),
        nn.ReLU(),
        nn.AdaptiveAvgPool1d(1),
        nn.Flatten(),
        nn.Linear(512, 30),
    ).to("cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def step() -> Any:
        mels, labels = next(batches)  # planted
        mels, labels = mels.to("cuda"), labels.to("cuda")
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.bfloat16):
            loss = nn.functional.cross_entropy(model(mels), labels)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step
