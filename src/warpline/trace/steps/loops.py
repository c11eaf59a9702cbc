"""Loops of the program: ranges, or calls of a function, that follow one another with nothing else between them."""

from __future__ import annotations

import numpy as np
import polars as pl

from warpline.library_names import OPTIMIZER_STEP
from warpline.trace.arrays import integers
from warpline.trace.launches import Launches
from warpline.trace.names import by_name, named
from warpline.trace.steps.period import LEAST_REPEATS

FILLED = 0.9
"""Share of the time from the first to the last iteration that the iterations must cover."""
OWN_WORK = 0.5
"""Share of the device's busy time whose launches the loop must hold, or else of its window."""
WORKING = 0.9
"""Share of the iterations in which their thread must launch something."""
GROUPS_TRIED = 32
LIBRARY_RANGE = (
    r"^(Optimizer\.|enumerate\(DataLoader\)|DistributedDataParallel\.|FullyShardedDataParallel|FSDP|nccl:|gloo:|c10d::|"
    r"autograd::|aten::|## Call CompiledFxGraph|CUDAGraphNode\.|Torch-Compiled Region|CompiledFunction|Pregraph|cub::)|"
    r"_data: |compile_id="
)
"""Ranges that torch or a library adds around its own operations."""
PART_OF_A_STEP = r"(?i)layer|block|stage|head|expert|level|attention|attn|mlp|micro|chunk|bucket"
"""Names of ranges that occur several times a step: they may fill the time, but are not steps."""
MOST_LAUNCHES = 1.5
"""Steps between those of an optimizer launch about equally often; several optimizers take turns otherwise."""
LIBRARY_DOMAIN = r"(?i)^(nccl|cccl|cub|thrust|cublas|cublaslt|cudnn|cufft|cusparse|cusolver|nvshmem|mpi|ucx)\b"


def loop_of_ranges(ranges: pl.DataFrame, launches: Launches) -> pl.DataFrame | None:
    """The ranges of the outermost loop, in order; names that differ in a number are of one loop (`step 3`)."""
    own = ranges.filter(
        pl.col("thread").is_in(list(launches.of_thread)),
        pl.col("end_ns") > pl.col("start_ns"),
        ~named(LIBRARY_RANGE),
        ~named(PART_OF_A_STEP),
        ~named(LIBRARY_DOMAIN, "domain"),
    )
    group = by_name(own["name"], lambda names: names.str.replace_all(r"\d+", "").rank("dense"))
    return _outermost_loop(own.with_columns(group=group), launches)


def steps_of_optimizer(ranges: pl.DataFrame, launches: Launches) -> pl.DataFrame | None:
    """Training steps that nothing else marks: from the end of one step of the optimizer to the end of the next.

    The first one begins with the first kernel, after the model was loaded; if it launches far more or less than the
    others, it is not a step.
    """
    own = ranges.filter(
        named(OPTIMIZER_STEP), pl.col("thread").is_in(list(launches.of_thread)), pl.col("end_ns").is_not_null()
    ).sort("end_ns", maintain_order=True)
    if own.select("thread", "name").n_unique() != 1 or len(own) < 2:
        return None
    ends = integers(own["end_ns"])
    thread = int(own["thread"][0])
    marks = np.append(min(launches.first_kernel, ends[0]), ends)
    count = np.diff(np.searchsorted(launches.moments, marks))
    others = count[1:]
    if not others.all() or others.max() > MOST_LAUNCHES * others.min():
        return None
    first = 0 if others.max() <= MOST_LAUNCHES * count[0] and count[0] <= MOST_LAUNCHES * others.min() else 1
    return pl.DataFrame(
        {"name": own["name"][first:].cast(pl.String), "start_ns": marks[first:-1], "end_ns": marks[first + 1 :]}
    ).with_columns(thread=pl.lit(thread))


def _outermost_loop(spans: pl.DataFrame, launches: Launches) -> pl.DataFrame | None:
    """The spans of the group with the longest total time among those that form a loop."""
    length = pl.col("end_ns") - pl.col("start_ns")
    whole = pl.col("end_ns").max() - pl.col("start_ns").min()
    groups = (
        spans.group_by("thread", "group")
        .agg(count=pl.len(), total=length.sum(), whole=whole)
        .filter(pl.col("count") >= LEAST_REPEATS, pl.col("total").is_between(FILLED * pl.col("whole"), pl.col("whole")))
        .sort(["total", "count", "thread", "group"], descending=[True, False, False, False])
        .head(GROUPS_TRIED)
    )
    kept = spans.join(groups.select("thread", "group"), on=["thread", "group"], how="semi")
    for thread, group in groups.select("thread", "group").iter_rows():
        loop = kept.filter(pl.col("thread") == thread, pl.col("group") == group).sort("start_ns", maintain_order=True)
        if _is_loop(loop, thread, launches):
            return loop.drop("group")
    return None


def _is_loop(loop: pl.DataFrame, thread: int, launches: Launches) -> bool:
    """Consecutive spans, with launches in each and most of the launches in total."""
    starts, ends = integers(loop["start_ns"]), integers(loop["end_ns"])
    return bool(
        (starts[1:] >= ends[:-1]).all()
        and launches.share(int(starts[0]), int(ends[-1])) >= OWN_WORK
        and launches.working(thread, starts, ends) >= WORKING
    )
