"""A callback for Lightning: records some batches, and writes their diagnosis and report.

>>> from warpline.ui.lightning import WarplineCallback
>>> Trainer(callbacks=[WarplineCallback(start=20, steps=5)])
"""

from __future__ import annotations

from typing import Any

from warpline.ui.training import Recorded, StepRecorder

try:
    from lightning.pytorch import Callback
except ImportError:
    from pytorch_lightning import Callback


class WarplineCallback(Callback):  # type: ignore[misc] # Lightning is not there when types are checked
    """Record `steps` batches after the first `start` ones; options as for `StepRecorder`."""

    def __init__(self, **options: Any) -> None:
        self._recorder = StepRecorder(**options)

    @property
    def recorded(self) -> Recorded | None:
        """The recording and its diagnosis, as soon as they are there."""
        return self._recorder.recorded

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Begin, on the first process only."""
        if getattr(trainer, "is_global_zero", True):
            self._recorder.begin()

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Count a batch."""
        self._recorder.step()

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Explain what there is."""
        self._recorder.finish()
