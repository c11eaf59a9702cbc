"""The trace in the package, which ``warpline demo`` diagnoses: four training steps of a small GPT on an NVIDIA H200."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path


def demo_trace() -> Path:
    """Its path."""
    return Path(str(files("warpline").joinpath("data", "demo.json.xz")))
