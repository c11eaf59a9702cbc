"""How each number of the page was made."""

from __future__ import annotations

from collections.abc import Iterator

from warpline.findings.diagnosis import Diagnosis
from warpline.reports.page.contract import Numbers, Provenance
from warpline.units import duration, several, share

FOUND_BY = {
    "profiler_step": "the profiler's own step marks",
    "range": "a range that fills the program's loop",
    "python": "calls of a Python function that fill the program's loop",
    "repetition": "GPU activity that repeats",
    "tokens": "the reads of sampled tokens",
    "optimizer": "the optimizer's steps",
}


def numbers_panel(diagnosis: Diagnosis) -> Numbers | None:
    """The numbers that the page shows at its top, and where each comes from; None without any."""
    entries = [*_steps(diagnosis), *_replay(diagnosis), *_device(diagnosis)]
    return Numbers(entries) if entries else None


def _steps(diagnosis: Diagnosis) -> Iterator[Provenance]:
    steps = diagnosis.trace.steps_in_view
    if len(steps):
        found_by = FOUND_BY.get(str(steps.found_by[0]), str(steps.found_by[0]))
        yield Provenance("Steps", several(len(steps), "step"), f"Found by {found_by}.")
    if diagnosis.judgement is None and diagnosis.trace.step_ns is not None:
        yield Provenance("Step", duration(diagnosis.trace.step_ns), "The median length of the steps, as recorded.")


def _replay(diagnosis: Diagnosis) -> Iterator[Provenance]:
    judgement = diagnosis.judgement
    if judgement is None:
        return
    question = judgement.evidence.question
    bare, replayed = question.bare.step_ns, question.replay
    what, recorded = ("Step", "as recorded") if len(diagnosis.steps) else ("Recording", "as it was")
    yield Provenance(
        f"{what} {recorded}",
        duration(replayed.measured_step_ns),
        f"The typical length of the {several(replayed.marks.count, 'replayed step')}, with what the profiler adds."
        if len(diagnosis.steps)
        else "From the first GPU operation to the last, with what the profiler adds.",
    )
    source = (
        "Timed without a profiler by `warpline run`."
        if question.bare.step_from == "measured"
        else "Estimated: the replay without the profiler's cost of each op and call."
    )
    yield Provenance(
        f"{what} without a profiler",
        f"{duration(bare.expected)} ({duration(bare.low)} to {duration(bare.high)})",
        f"{source} All gains refer to this {what.lower()}.",
    )
    yield Provenance(
        "Replay",
        f"{several(replayed.marks.count, 'step')}, error {replayed.error_pct:.2f} %",
        f"The trace as a graph of {several(len(replayed.graph), 'node')} (CPU segments, API calls, GPU activity) and "
        f"what waits for what. Unchanged, it gives {duration(replayed.replayed_step_ns)} for a measured "
        f"{duration(replayed.measured_step_ns)}.",
    )
    yield Provenance(
        "Gains and ranges",
        several(len(judgement.findings), "finding"),
        "Each fix changes the graph, which is replayed: old step time over new step time. Ranges are made to hold 80 % "
        "of measured gains; docs/ranges.md says how often they did.",
    )
    if judgement.audit:
        how = "Answers that the trace contradicts are withdrawn or downgraded before they are shown."
        yield Provenance("Audit", several(len(judgement.audit), "objection"), how)


def _device(diagnosis: Diagnosis) -> Iterator[Provenance]:
    if diagnosis.devices:
        busy = [(device.busy_ns / max(device.window_ns, 1), device) for device in diagnosis.shown.devices]
        least, most = (chosen(busy, key=lambda one: one[0])[1] for chosen in (min, max))
        value = f"{share(most.busy_ns, most.window_ns)} of {duration(most.window_ns)}"
        several_devices = f"{share(least.busy_ns, least.window_ns)} to {value}"
        yield Provenance(
            f"GPU {most.device} busy" if len(busy) == 1 else f"{len(busy)} GPUs busy",
            value if len(busy) == 1 else several_devices,
            "The union of all kernels, copies, memsets and graphs of a GPU; the window is that of the bar above: the "
            "steps, or all from the first to the last operation. Busy and idle sum to the window, and their parts to "
            "them, exactly.",
        )
        yield Provenance(
            "Idle by cause",
            "",
            "What the launching thread does until the launch; then launch latency, or what the GPU waits for. Each "
            "nanosecond has one cause.",
        )
