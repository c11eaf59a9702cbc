"""The profiler's own cost, as something to mend: it changes no prediction, since those start from the bare step."""

from __future__ import annotations

from warpline.replay.bench import Bench
from warpline.replay.interventions.registry import intervention


@intervention(
    "record_lighter",
    99,
    "The profile is recorded without Python stacks, shapes and memory events.",
    "Gains are counted from the step as it runs without a profiler, so that nothing changes: what a lighter recording "
    "gains is trust in the rest.",
)
def record_lighter(bench: Bench, case: int) -> int:
    """Counts the recorded CPU events."""
    trace = bench.scene.trace
    return len(trace.ops) + len(trace.python) + len(trace.memory)
