"""What `by_turns` adds to a copy of a program: the same windows as under `warpline try`, timed without its agent."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

from warpline.capture.trial.gate import READY, WindowGate

SETTINGS = "STOPWATCH_IN_SOURCE"
NOT_MEASURED = {"gpu_bytes": 0, "host_bytes": 0, "proof": {}, "compile": {}}


def stopwatch() -> Callable[[], None]:
    """The function to call after each step."""
    import torch  # noqa: PLC0415 - as the program does

    settings = json.loads(os.environ[SETTINGS])
    folder = Path(settings["folder"])
    gate = WindowGate(torch, str(folder), settings["starter"], settings["steps"], lambda: NOT_MEASURED, writes=True)

    def ready() -> None:
        report = {"results": {}, "steps": gate.steps, "gpu_reserved_bytes": 0, "gpu_free_bytes": 0, **NOT_MEASURED}
        part = folder / f"{READY}.part"
        part.write_text(json.dumps(report))
        part.replace(folder / READY)

    gate.on_ready = ready
    return gate.step
