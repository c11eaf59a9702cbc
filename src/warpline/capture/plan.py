"""What to record and how much of it: the same words on the command line, in code and inside the program."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass

VARIABLE = "WARPLINE_CAPTURE"
"""How the plan reaches the program: its environment."""
TORCH, NSYS, NCU = "torch", "nsys", "ncu"


@dataclass(frozen=True)
class Plan:
    """A bounded recording: some bare steps, a warm-up, some recorded steps, and never more than the bounds.

    Eight bare steps, because the first two are cold and a median wants five. Two of warm-up, because the profiler's
    own first calls are in the first. Six recorded, because a median and its spread want that many, and a file of six
    steps is read in a second. Shapes, because work and roofline come from them; no stacks, because every Python call
    then costs as much as an op.
    """

    folder: str
    tool: str = TORCH
    skip: int = 8
    warmup: int = 2
    steps: int = 6
    seconds: float = 10.0
    """Longest recording. A CPU records some 300,000 events a second at most, so this bounds the file too."""
    megabytes: int = 2000
    """Most that the process may grow by while it records."""
    after_s: float = 5.0
    """Without any step found by then, a window of `seconds` is recorded instead."""
    whole: bool = False
    """Record from the beginning, steps or none."""
    shapes: bool = True
    stacks: bool = False
    memory: bool = False
    step_range: str = ""
    """An NVTX range that is a step, where the program names one."""

    def to_text(self) -> str:
        """For the environment."""
        return json.dumps(asdict(self))

    @classmethod
    def from_environment(cls) -> Plan | None:
        """The plan of the `warpline run` that started this process."""
        text = os.environ.get(VARIABLE, "")
        return cls(**json.loads(text)) if text else None

    @property
    def first_recorded(self) -> int:
        """Steps that pass before the first recorded one."""
        return max(self.skip, 1) + self.warmup
