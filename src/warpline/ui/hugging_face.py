"""A callback for the Hugging Face `Trainer`: records some steps, and writes their diagnosis and report.

>>> from warpline.ui.hugging_face import WarplineTrainerCallback
>>> Trainer(..., callbacks=[WarplineTrainerCallback(start=20, steps=5)])
"""

from __future__ import annotations

from typing import Any

from transformers import TrainerCallback

from warpline.ui.training import Recorded, StepRecorder


class WarplineTrainerCallback(TrainerCallback):  # type: ignore[misc] # transformers is not there when types are checked
    """Record `steps` steps after the first `start` ones; options as for `StepRecorder`."""

    def __init__(self, **options: Any) -> None:
        self._recorder = StepRecorder(**options)

    @property
    def recorded(self) -> Recorded | None:
        """The recording and its diagnosis, as soon as they are there."""
        return self._recorder.recorded

    def on_train_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """Begin, on the first process only."""
        if getattr(state, "is_world_process_zero", True):
            self._recorder.begin()

    def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """Count a step of the optimizer."""
        self._recorder.step()

    def on_train_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """Explain what there is."""
        self._recorder.finish()
