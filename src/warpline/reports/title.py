"""The line above an answer: which recording, on which GPU, how many steps. Every verb builds it here."""

from __future__ import annotations

from pathlib import Path

from warpline.analyses.device import UNKNOWN_DEVICE, trace_device
from warpline.trace.trace import Trace
from warpline.units import several

NO_GPU, UNNAMED = "no GPU activity", "unnamed GPU"


def joined(path: Path, *words: str) -> str:
    """The file's name without its folders, and what else is known of the recording."""
    return " · ".join((path.name, *words))


def recording(trace: Trace, *words: str, chip: str | None = None, lender: Trace | None = None) -> str:
    """File, GPU and steps; `chip` is the one that the user asked to compare with, `lender` the trace whose shapes are
    used."""
    name = trace_device(trace)[0] if len(trace.gpu) else NO_GPU
    device = UNNAMED if name == UNKNOWN_DEVICE else name
    steps = len(trace.steps_in_view)
    set_aside = f" ({trace.cold.count} cold left out)" if trace.cold else ""
    compared = [] if chip is None else [f"compared with {chip}"]
    lent = [] if lender is None else [f"shapes from {lender.file.name}"]
    counted = several(steps, "step") + set_aside if steps else "no steps found"
    return joined(trace.file, device, counted, *compared, *words, *lent)
