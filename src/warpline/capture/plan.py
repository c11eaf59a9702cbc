"""What to record and how much of it: the same words on the command line, in code and inside the program."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from typing import Any

VARIABLE = "WARPLINE_CAPTURE"
"""How the plan reaches the program: its environment."""
MOST_SKIPS = 3
TORCH, NSYS, NCU = "torch", "nsys", "ncu"


@dataclass(frozen=True)
class Plan:
    """A bounded recording: some bare steps, a warm-up, some recorded steps, and never more than the bounds.

    Eight bare steps at least, and until a fifth of a second has passed or three times as many: first steps load, tune
    and allocate, and the clocks of an idle GPU take that long to rise. Two of warm-up, because the profiler's
    own first calls are in the first. Six recorded, because a median and its spread want that many, and a file of six
    steps is read in a second. Shapes, because work and roofline come from them; no stacks, because every Python call
    then costs as much as an op.
    """

    folder: str
    tool: str = TORCH
    skip: int = 8
    settle_s: float = 0.2
    """Bare steps go on for so long, but not beyond three times `skip`; 0 where `skip` is asked for."""
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

    def has_settled(self, steps: int, seconds: float) -> bool:
        """Whether enough bare steps have passed."""
        return steps >= max(self.skip, 1) and (seconds >= self.settle_s or steps >= MOST_SKIPS * self.skip)

    @property
    def first_recorded(self) -> int:
        """Steps that pass before the first recorded one, at most."""
        return (MOST_SKIPS * self.skip if self.settle_s else max(self.skip, 1)) + self.warmup


def skipping(skip: int | None) -> dict[str, Any]:
    """The fields of a plan that say how many bare steps come first: so many, or as many as it takes."""
    return {} if skip is None else {"skip": skip, "settle_s": 0.0}
