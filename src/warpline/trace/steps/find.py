"""Steps: the repeated unit of work, from profiler steps, from a loop of the program, or from repetition."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
from msgspec import Struct

from warpline.errors import UsageError
from warpline.library_names import PROFILER_STEP
from warpline.trace.arrays import NONE, Int64s
from warpline.trace.launches import Launches, launch_moments
from warpline.trace.link import Tables
from warpline.trace.names import named
from warpline.trace.schema import Api, Gpu, Ranges, Steps, conform, empty
from warpline.trace.steps.frames import loop_of_frames
from warpline.trace.steps.loops import loop_of_ranges, steps_of_optimizer
from warpline.trace.steps.repetition import steps_from_repetition
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

    def window(self, steps: Steps) -> tuple[int, int]:
        """Start and end of the chosen steps."""
        chosen = steps[slice(self.first, self.beyond)]
        if not len(chosen):
            raise UsageError(
                "no-such-step", f"the trace has {several(len(steps), 'step')}, numbered from 0; none is in that range"
            )
        return int(chosen.start_ns.min()), int(chosen.end_ns.max())


def find_steps(tables: Tables) -> pl.DataFrame:
    """The steps table: profiler steps, else a loop of ranges or of Python functions, else repetition on the device,
    else what lies between the ends of the optimizer's steps; empty if the recording is not of steps."""
    ranges, gpu = tables["ranges"], tables["gpu"]
    profiler = ranges.filter(named(PROFILER_STEP), pl.col("end_ns").is_not_null())
    if len(profiler):
        return _from_spans(_one_lane(profiler), "profiler_step")
    if not len(gpu):
        return empty("steps")
    launches = Launches.of(Gpu(gpu), Api(tables["api"]))
    loop = loop_of_ranges(ranges, launches)
    if loop is not None:
        return _from_spans(loop, "range")
    loop = loop_of_frames(tables["python"], launches)
    if loop is not None:
        return _from_spans(loop, "python")
    repeated = steps_from_repetition(tables)
    if len(repeated):
        return repeated
    loop = steps_of_optimizer(ranges, launches)
    return empty("steps") if loop is None else _from_spans(loop, "optimizer")


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


def steps_named(ranges: Ranges, name: str) -> pl.DataFrame:
    """The steps table from the ranges of that name."""
    those = ranges[ranges.name.equal(name) & (ranges.end_ns != NONE)]
    if not len(those):
        raise UsageError("no-such-range", f"no range is named {name!r}", _known_ranges(ranges))
    return _from_spans(_one_lane(those.stored), "range")


def on_device(steps: Steps) -> bool:
    """Whether the steps lie on the device's time line, not on that of a thread which launches their work."""
    return len(steps) > 0 and steps.thread[0] == NONE


def _known_ranges(ranges: Ranges) -> str:
    names = ranges.stored["name"].cast(pl.String).value_counts(sort=True)["name"].drop_nulls().head(6).to_list()
    return f"the trace has {', '.join(names)}" if names else "the trace has no ranges at all"


def _one_lane(ranges: pl.DataFrame) -> pl.DataFrame:
    """The CPU's ranges rather than their projection on the GPU, and those of the thread that has most of them."""
    on_cpu = ranges.filter(pl.col("thread").is_not_null())
    lane = on_cpu if len(on_cpu) else ranges
    column = "thread" if len(on_cpu) else "stream"
    busiest = lane[column].value_counts(sort=True)[column][0]
    return lane.filter(pl.col(column).eq_missing(busiest))


def _from_spans(spans: pl.DataFrame, found_by: str) -> pl.DataFrame:
    ordered = spans.sort("start_ns", maintain_order=True).with_row_index("index")
    steps = ordered.select(
        "index", pl.col("name").cast(pl.String), "start_ns", "end_ns", "thread", found_by=pl.lit(found_by)
    )
    return conform("steps", steps)
