"""What is doubtful about a second pass: whether it could be read, and whether it saw the same program."""

from __future__ import annotations

from warpline.analyses.user_frames import UserFrames
from warpline.sources.health import HealthEntry
from warpline.trace.trace import Trace

LEAST_MATCHED = 0.9
"""Share of the ops that must be in the second pass too; fewer are worth a note."""


def second_pass_health(trace: Trace, frames: UserFrames) -> list[HealthEntry]:
    """Notes on the second pass beside a trace; none without one."""
    if trace.companions is None:
        return []
    if trace.companions.problem:
        return [
            HealthEntry("second-look-damaged", "warning", f"There are no source lines: {trace.companions.problem}.")
        ]
    share = frames.matched_share
    if not frames.borrowed or share >= LEAST_MATCHED:
        return []
    message = (
        f"The steps with Python frames ran other ops than the recorded ones: source lines and data flow are known for "
        f"{100 * share:.0f} % of the ops."
    )
    return [HealthEntry("second-look-differs", "info", message)]
