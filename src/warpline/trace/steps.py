"""Steps: the repeated unit of work, from profiler steps, from a loop of the program, or from repetition."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from warpline.errors import UsageError
from warpline.sources.rows import PROFILER_STEP
from warpline.trace.link import Tables, integers
from warpline.trace.loops import LEAST_REPEATS, Launches, loop_of_ranges
from warpline.trace.names import named
from warpline.trace.schema import conform, empty

ANCHORS_TRIED = 64
SAME_SPACING = 0.9
"""Share of an anchor kernel's spacings that must be equal for it to mark a step."""
SAME_KERNELS = 0.9
"""Share of kernels that must equal the kernel one period later."""


@dataclass(frozen=True, slots=True)
class StepChoice:
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

    def window(self, steps: pl.DataFrame) -> tuple[int, int]:
        """Begin and end of the chosen steps."""
        chosen = steps[slice(self.first, self.beyond)]
        if not len(chosen):
            raise UsageError(
                "no-such-step", f"the trace has {len(steps)} steps, numbered from 0; none is in that range"
            )
        return int(chosen["start_ns"].min()), int(chosen["end_ns"].max())  # type: ignore[arg-type]


def find_steps(tables: Tables) -> pl.DataFrame:
    """The steps table: profiler steps, else a loop of ranges, else repetition on the device."""
    ranges, gpu = tables["ranges"], tables["gpu"]
    profiler = ranges.filter(named(PROFILER_STEP), pl.col("end_ns").is_not_null())
    if len(profiler):
        return _from_spans(_one_lane(profiler), "profiler_step")
    if not len(gpu):
        return empty("steps")
    loop = loop_of_ranges(ranges, Launches.of(tables))
    return _from_repetition(gpu) if loop is None else _from_spans(loop, "range")


def steps_named(ranges: pl.DataFrame, name: str) -> pl.DataFrame:
    """The steps table from the ranges of that name."""
    those = ranges.filter(pl.col("name").cast(pl.String) == name, pl.col("end_ns").is_not_null())
    if not len(those):
        raise UsageError("no-such-range", f"no range is named {name!r}", _known_ranges(ranges))
    return _from_spans(_one_lane(those), "range")


def on_device(steps: pl.DataFrame) -> bool:
    """Whether the steps lie on the device's time line, not on that of a thread which launches their work."""
    return len(steps) > 0 and steps["thread"][0] is None


def _known_ranges(ranges: pl.DataFrame) -> str:
    names = ranges["name"].cast(pl.String).value_counts(sort=True)["name"].drop_nulls().head(6).to_list()
    return f"the trace has {', '.join(names)}" if names else "the trace has no ranges at all"


def _one_lane(ranges: pl.DataFrame) -> pl.DataFrame:
    """The CPU's ranges rather than their projection on the GPU, and those of the thread that has most of them."""
    on_cpu = ranges.filter(pl.col("thread").is_not_null())
    lane = on_cpu if len(on_cpu) else ranges
    column = "thread" if len(on_cpu) else "stream"
    busiest = lane[column].value_counts(sort=True)[column][0]
    return lane.filter(pl.col(column).eq_missing(busiest))


def _from_spans(spans: pl.DataFrame, found_by: str) -> pl.DataFrame:
    ordered = spans.sort("start_ns").with_row_index("index")
    steps = ordered.select(
        "index", pl.col("name").cast(pl.String), "start_ns", "end_ns", "thread", found_by=pl.lit(found_by)
    )
    return conform("steps", steps)


def _from_repetition(gpu: pl.DataFrame) -> pl.DataFrame:
    """Looks for a kernel that comes once a step: one whose occurrences are equally many kernels apart."""
    kernels = gpu.filter(pl.col("kind").cast(pl.String).is_in(["kernel", "graph"]))
    if len(kernels) < 2 * LEAST_REPEATS:
        return empty("steps")
    device, stream = kernels.group_by("device", "stream").len().sort("len", descending=True).row(0)[:2]
    lane = kernels.filter(pl.col("device").eq_missing(device), pl.col("stream").eq_missing(stream))
    names = lane["name"].to_physical().to_numpy()
    anchors = _first_of_each_step(names)
    if anchors is None:
        return empty("steps")
    starts, ends = integers(lane["start_ns"]), integers(lane["end_ns"])
    # The last repeat ends with its last kernel, if the recording goes on that far.
    period = int(anchors[-1] - anchors[-2])
    whole = anchors[-1] + period <= len(names)
    closing = np.append(starts[anchors[1:]], ends[anchors[-1] + period - 1] if whole else [])
    steps = pl.DataFrame(
        {
            "index": np.arange(len(closing)),
            "name": [f"repeat {number}" for number in range(len(closing))],
            "start_ns": starts[anchors[: len(closing)]],
            "end_ns": closing.astype(np.int64),
        }
    )
    return conform("steps", steps.with_columns(found_by=pl.lit("repetition")))


def _first_of_each_step(names: npt.NDArray[np.uint32]) -> npt.NDArray[np.int64] | None:
    """Positions of the rarest kernel whose spacing is constant and after which the same kernels follow."""
    codes, counts = np.unique(names, return_counts=True)
    rarest_first = codes[np.argsort(counts, kind="stable")][counts[np.argsort(counts, kind="stable")] >= LEAST_REPEATS]
    for code in rarest_first[:ANCHORS_TRIED]:
        positions = np.flatnonzero(names == code)
        spacing = np.diff(positions)
        values, repeats = np.unique(spacing, return_counts=True)
        period = int(values[repeats.argmax()])
        if repeats.max() < SAME_SPACING * len(spacing) or len(spacing) * period < len(names) / 2:
            continue
        body = names[positions[0] : positions[-1] + period]
        if len(body) > period and (body[period:] == body[:-period]).mean() >= SAME_KERNELS:
            return positions
    return None
