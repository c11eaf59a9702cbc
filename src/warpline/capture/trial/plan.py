"""What one process of `warpline try` does: the same settings in the command that starts it and inside the program."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass

VARIABLE = "WARPLINE_TRY"
"""The environment variable that passes the plan to the program."""
OPTIMIZER, GENERATE, FORWARD = "optimizer", "generate", "forward"
"""Kinds of steps: a call of optimizer.step(), of generate(), or of the largest module that is called repeatedly."""


@dataclass(frozen=True)
class StepKind:
    """What ends a step: all processes of a session count the same calls."""

    kind: str
    who: int
    """Its number among those of its kind, in the order of their first calls."""
    name: str
    """The class of the optimizer or the module."""


@dataclass(frozen=True)
class TrialPlan:
    """One process: what is changed in it, and which steps of it are timed."""

    folder: str
    """The process writes its reports there, and finds there how many windows it may run."""
    starter: int
    """Process id of the command that started it: the program ends when that one does."""
    started: float
    """Time of the start, in seconds of time.time()."""
    changes: tuple[str, ...] = ()
    """Names of the changes, each with an optional =VALUE."""
    step: StepKind | None = None
    """None in the first run, which looks for it."""
    skip: int = 8
    """Steps before the first window; the results of the first of them are kept."""
    settle: int = 2
    """Steps after each pause that are not timed."""
    steps_per_window: int = 1
    look_s: float = 6.0
    """How long the first run listens, from the first event on."""
    is_twin: bool = False
    """Move each weight by one rounding error: how far results move by that is what rounding alone does."""
    eager_random: bool = False
    """Compiled code draws the random numbers of eager mode, which is slower: for results only."""
    hang_after_s: float = 600.0
    """The process shows where it is if it is not ready by then."""
    counts: bool = True
    """Count the ops of the first forwards, in the first run."""
    asks: bool = False
    """Wait for a permission before the first file outside the working folder is written."""
    working_copy: str = ""
    """The working folder made of links: a file in it is copied before it is written."""

    def to_text(self) -> str:
        """The plan as text for the environment."""
        return json.dumps(asdict(self))

    @classmethod
    def from_environment(cls) -> TrialPlan | None:
        """The plan of the `warpline try` that started this process."""
        text = os.environ.get(VARIABLE, "")
        if not text:
            return None
        fields = json.loads(text)
        fields["changes"] = tuple(fields["changes"])
        fields["step"] = StepKind(**fields["step"]) if fields["step"] else None
        return cls(**fields)
