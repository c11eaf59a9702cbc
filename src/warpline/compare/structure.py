"""What the steps of a run are made of, as far as a fix changes it: kernels, launches, copies, waits, streams."""

from __future__ import annotations

from collections import Counter

import polars as pl
from msgspec import Struct

from warpline.analyses.idle.host_activity import SYNCHRONISE
from warpline.api_names import ALLOCATION, COPY, EMPTY_CACHE_FREE, GRAPH_LAUNCH, LAUNCH
from warpline.compare.typical_step import TypicalStep
from warpline.intervals import Spans
from warpline.kernels import identify
from warpline.kernels.identity import MATRIX_CLASSES
from warpline.replay.cold_steps import find_cold_steps
from warpline.trace.names import named
from warpline.trace.trace import Trace


class Structure(Struct, frozen=True):
    """Per step of one run."""

    kernels: Counter[str]
    """By name, in the typical step."""
    step_ns: float
    copy_ns: float
    """Time of copies that no kernel hides."""
    calls: dict[str, float]
    """API calls: launches, graph launches, waits, allocations, frees."""
    copies: dict[tuple[str, str, str], tuple[float, float]]
    """Copies by direction and kinds of memory: how many, and how many bytes."""
    streams: int
    """Streams that run kernels."""
    idle_ns: dict[str, float]
    cold_steps: int

    def count(self, *classes: str) -> int:
        """Kernels of these classes."""
        return sum(times for name, times in self.kernels.items() if identify(name).kernel_class in classes)

    def copied(self, way: str, memory: str | None = None) -> tuple[float, float]:
        """Copies in one direction, with this kind of memory on the host: how many, and how many bytes."""
        chosen = [
            moved for (kind, *ends), moved in self.copies.items() if kind == way and (not memory or memory in ends)
        ]
        return sum(count for count, _ in chosen), sum(size for _, size in chosen)

    @property
    def total(self) -> int:
        """All kernels."""
        return sum(self.kernels.values())

    @property
    def matrix_types(self) -> Counter[str]:
        """Operand types of kernels that may use tensor cores."""
        found: Counter[str] = Counter()
        for name, times in self.kernels.items():
            known = identify(name)
            if known.kernel_class in MATRIX_CLASSES and known.dtype.a:
                found[known.dtype.a] += times
        return found


CALLS = {
    "launches": LAUNCH,
    "graph_launches": GRAPH_LAUNCH,
    "allocations": ALLOCATION,
    "frees": EMPTY_CACHE_FREE,
}


def structure_of(trace: Trace, step: TypicalStep) -> Structure:
    """The structure of a run."""
    steps = step.spans
    api = _within(trace.api, steps)
    gpu = _within(trace.gpu, steps)
    copied = (
        gpu.filter(pl.col("kind").cast(pl.String) == "memcpy")
        .group_by(
            *(pl.col(name).cast(pl.String).fill_null("") for name in ("copy_kind", "source_memory", "target_memory"))
        )
        .agg(pl.len(), pl.col("bytes").fill_null(0).sum())
    )
    kernels = gpu.filter(pl.col("kind").cast(pl.String) == "kernel")
    cold = find_cold_steps(trace) if trace.chosen_steps is None else None
    return Structure(
        kernels=Counter(one.name for one in step.operations if one.kind == "kernel"),
        step_ns=step.step_ns,
        copy_ns=sum(
            float(time) for one, time in zip(step.operations, step.exposed_ns, strict=True) if one.kind == "memcpy"
        ),
        calls={kind: len(api.filter(named(pattern))) / len(steps) for kind, pattern in CALLS.items()}
        | {"waits": len(api.filter(named(SYNCHRONISE) | (named(COPY) & ~named("Async")))) / len(steps)},
        copies={
            (str(kind), str(source), str(target)): (count / len(steps), size / len(steps))
            for kind, source, target, count, size in copied.iter_rows()
        },
        streams=kernels["stream"].n_unique(),
        idle_ns=dict(step.idle_ns),
        cold_steps=cold.count if cold is not None else 0,
    )


def _within(rows: pl.DataFrame, steps: Spans) -> pl.DataFrame:
    first, last = int(steps.starts[0]), int(steps.ends[-1])
    return rows.filter((pl.col("start_ns") >= first) & (pl.col("start_ns") < last))
