"""What to record and how much: the same settings on the command line, in code and inside the program."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from warpline.capture.run_folder import MIN_TIMED_STEPS

VARIABLE = "WARPLINE_CAPTURE"
"""The environment variable that passes the plan to the program."""
MAX_SKIP_FACTOR = 3
STEPS_TO_KNOW = 3
"""What a step is is known after so many, unless a loop around it may be the step."""
MAX_BARE_S = 3.0
"""Bare steps go on for longer only until three are timed."""
TORCH, NSYS, NCU = "torch", "nsys", "ncu"


@dataclass(frozen=True)
class Plan:
    """A bounded recording: bare steps, warm-up steps, recorded steps, and limits.

    At least eight bare steps once it is known what a step is, until a fifth of a second has passed or three times as
    many have run: first steps load, tune and allocate, and the clocks of an idle GPU take that long to rise. Uneven
    steps are timed for as long as that. Two warm-up steps, because the first contains the profiler's own first calls.
    Six recorded steps, because a median and its spread need that many, and a file of six steps is read in a second.
    Shapes are on, because work models and the roofline need them. Stacks are off, because every Python call then costs
    as much as an op: two more steps have them, whose times are not used.
    """

    folder: str
    tool: str = TORCH
    stop: bool = False
    """Whether the program is ended once it is recorded."""
    skip: int = 8
    settle_s: float = 0.2
    """Bare steps continue for this long, but not beyond three times `skip`; 0 if `skip` is given."""
    warmup: int = 2
    steps: int = 6
    seconds: float = 10.0
    """Maximum length of the recording. A CPU records at most about 300,000 events per second, so this bounds the file
    too."""
    megabytes: int = 400
    """Maximum growth of the process while it records: 0.8 million events, for which torch needs about a minute."""
    after_s: float = 5.0
    """If no step is known by then, a time window is recorded, which the steps replace if they come."""
    whole: bool = False
    """Record from the start of the program, with or without steps."""
    shapes: bool = True
    stacks: bool = False
    memory: bool = False
    lines: bool = True
    """Look at a few more steps with Python frames, so that findings name source lines."""
    dataflow: bool = True
    """Look at a few more steps with the tensors of every op."""
    look_steps: int = 2
    """Steps of that second pass: two, to see what grows from one to the next."""
    look_s: float = 10.0
    """Maximum length of the second pass."""
    look_megabytes: int = 300
    """Maximum size of the file that torch writes about tensors."""
    step_range: str = ""
    """The name of the NVTX range that is a step."""

    def to_text(self) -> str:
        """The plan as text for the environment."""
        return json.dumps(asdict(self))

    @classmethod
    def from_environment(cls) -> Plan | None:
        """The plan of the `warpline run` that started this process."""
        text = os.environ.get(VARIABLE, "")
        return cls(**json.loads(text)) if text else None

    def has_settled(self, steps: int, seconds: float, uneven: Callable[[], bool]) -> bool:
        """Whether enough bare steps have run; of long ones, fewer are enough, of uneven ones more are wanted."""
        if self.settle_s and seconds >= MAX_BARE_S and steps > MIN_TIMED_STEPS:
            return True
        if steps < max(self.skip, 1) or steps >= MAX_SKIP_FACTOR * self.skip:
            return steps >= max(self.skip, 1)
        return seconds >= self.settle_s and not (self.settle_s and uneven())

    @property
    def first_recorded(self) -> int:
        """Maximum number of steps before the first recorded one."""
        bare = STEPS_TO_KNOW + MAX_SKIP_FACTOR * self.skip if self.settle_s else max(self.skip, 1)
        return bare + self.warmup


def skipping(skip: int | None) -> dict[str, Any]:
    """The fields of a plan for the bare steps: a given number, or as many as needed."""
    return {} if skip is None else {"skip": skip, "settle_s": 0.0}
