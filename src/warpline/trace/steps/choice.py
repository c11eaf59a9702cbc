"""Which steps are looked at, where each begins and ends, and which were set aside because they are cold."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import polars as pl
from msgspec import Struct

from warpline.errors import UsageError
from warpline.intervals import union
from warpline.library_names import PROFILER_STEP
from warpline.trace.arrays import NONE, Bools, Int64s
from warpline.trace.launches import launch_moments
from warpline.trace.schema import Api, Gpu, Ranges, Steps, conform
from warpline.units import several


class StepChoice(Struct, frozen=True):
    """Which steps to look at: positions [first, beyond), as in `--steps 3:6`."""

    first: int | None
    beyond: int | None

    @classmethod
    def parse(cls, text: str) -> StepChoice:
        """Reads `3:6`, `3:`, `:6`, `-2:` or a single `3`."""
        match = re.fullmatch(r"(-?\d{1,9})?(:)?(-?\d{1,9})?", text.strip())
        if not match or not text.strip() or text.strip() == ":":
            raise UsageError("bad-steps", f"--steps takes a range such as 3:6, 3: or a single number, not {text!r}")
        first, colon, beyond = match.groups()
        if not colon:
            number = int(first)
            return cls(number, number + 1 if number != -1 else None)
        return cls(int(first) if first else None, int(beyond) if beyond else None)

    def check(self, steps: Steps) -> None:
        """Raise an error if no step is chosen."""
        if not len(steps[slice(self.first, self.beyond)]):
            raise UsageError(
                "no-such-step", f"the trace has {several(len(steps), 'step')}, numbered from 0; none is in that range"
            )


class ColdSteps(Struct, frozen=True):
    """Consecutive steps that take long once, while the program loads, compiles or tunes.

    They are set aside, so that every number is one of warm steps.
    """

    first: int
    """Position of the first of them among all steps."""
    count: int
    took_ns: int
    """Their length in total."""
    once_ns: int
    """What they take beyond as many warm steps: one time, not per step."""
    recorded: int
    """Number of steps in the recording."""
    recorded_ns: int
    """Length of all steps together."""
    ops: tuple[tuple[str, int], ...]
    """The outermost ops, or calls, that take longest in them beyond what is usual, with that time."""


class FoundSteps(Struct, frozen=True):
    """Steps, in order of time."""

    names: list[str]
    start_ns: Int64s
    end_ns: Int64s
    thread: int
    """The thread whose spans they are; NONE if they lie on the device's time line."""
    found_by: str

    def table(self) -> pl.DataFrame:
        """The rows of `steps`."""
        spans = {"name": self.names, "start_ns": self.start_ns, "end_ns": self.end_ns}
        thread = pl.lit(None if self.thread == NONE else self.thread)
        steps = pl.DataFrame(spans).with_row_index("index")
        return conform("steps", steps.with_columns(thread=thread, found_by=pl.lit(self.found_by)))


def on_device(steps: Steps) -> bool:
    """Whether the steps lie on the device's time line, not on that of a thread which launches their work."""
    return len(steps) > 0 and steps.thread[0] == NONE


def completed(steps: Steps, gpu: Gpu, api: Api) -> tuple[Int64s, Int64s]:
    """Start and end of each step, whichever of CPU and GPU is the slower.

    A loop that only launches runs ahead of its device: such a step ends with the last work that it launched, and the
    next one begins there.
    """
    starts, ends = steps.start_ns, steps.end_ns
    if not len(steps) or on_device(steps):
        return starts, ends
    launched, done = launch_moments(gpu, api, int(starts[0]), int(ends[-1])), gpu.end_ns
    inside = launched < ends[-1]
    complete = np.append(starts[:1], ends)
    np.maximum.at(complete, np.searchsorted(starts, launched[inside], side="right"), done[inside])
    complete = np.maximum.accumulate(complete)
    return np.maximum(starts, complete[:-1]), complete[1:]


def steps_named(ranges: Ranges, name: str) -> FoundSteps:
    """The steps from the ranges of that name."""
    those = ranges[ranges.name.equal(name) & (ranges.end_ns != NONE)]
    if not len(those):
        raise UsageError("no-such-range", f"no range is named {name!r}", _known_ranges(ranges))
    return steps_of_ranges(those, "range")


def _known_ranges(ranges: Ranges) -> str:
    names = [name for name, _ in Counter(ranges.name.texts.tolist()).most_common(6)]
    return f"the trace has {', '.join(names)}" if names else "the trace has no ranges at all"


def with_gpu_work(steps: FoundSteps, gpu: Gpu, api: Api) -> FoundSteps:
    """The steps without those at either end that launch nothing and in which no device works: the recording begins or
    ends in them. All of them where none has GPU work."""
    working = have_gpu_work(steps.start_ns, steps.end_ns, gpu, api)
    if not working.any():
        return steps
    first, last = working.argmax(), len(working) - working[::-1].argmax()
    return FoundSteps(
        steps.names[first:last], steps.start_ns[first:last], steps.end_ns[first:last], steps.thread, steps.found_by
    )


def have_gpu_work(starts: Int64s, ends: Int64s, gpu: Gpu, api: Api) -> Bools:
    """For each of these spans, whether a device works in it or it launches something."""
    spans = union(gpu.start_ns, gpu.end_ns)
    busy = np.searchsorted(spans.ends, starts, side="right") < np.searchsorted(spans.starts, ends, side="left")
    launches = np.sort(api.start_ns[gpu.api_id[gpu.api_id != NONE]])
    launching: Bools = np.searchsorted(launches, starts) < np.searchsorted(launches, ends)
    return busy | launching


def profiler_steps(ranges: Ranges) -> FoundSteps | None:
    """The steps that torch.profiler marked, whatever is in them."""
    marked = ranges[ranges.name.like(PROFILER_STEP) & (ranges.end_ns != NONE)]
    return steps_of_ranges(marked, "profiler_step") if len(marked) else None


def steps_of_ranges(ranges: Ranges, found_by: str) -> FoundSteps:
    """Each range as a step: those of the CPU rather than their projection on the GPU, and those of the thread (or
    stream) that has most of them."""
    on_cpu = ranges[ranges.thread != NONE]
    lane = on_cpu.thread if len(on_cpu) else ranges.stream
    ranges = on_cpu if len(on_cpu) else ranges
    known, count = np.unique(lane, return_counts=True)
    own = np.flatnonzero(lane == known[count.argmax()])
    own = own[np.argsort(ranges.start_ns[own], kind="stable")]
    steps = ranges[own]
    return FoundSteps(steps.name.texts.tolist(), steps.start_ns, steps.end_ns, int(steps.thread[0]), found_by)
