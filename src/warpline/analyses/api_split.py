"""API time that is spent once against API time that every step spends.

A profile of a short program is full of loading and creating: the largest rows of `cuda_api_sum` then say nothing about
the steps. Calls are told apart by what they do (`warpline.analyses.words`). A launch that loads its kernel first is
longer: what the first launch of each kernel takes beyond the median launch counts as spent once.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from msgspec import Struct

from warpline.analyses.words import words_of
from warpline.trace.arrays import NONE, Bools, Int64s, integers
from warpline.trace.trace import Trace

KINDS = {
    "once": "loading, creating, allocating: once per process or object",
    "first": "first launch of each kernel, beyond the median launch",
    "step": "launches and copies",
    "wait": "waiting for the GPU",
    "ask": "queries",
    "other": "calls without a description",
}
ONE_TIME = ("once", "first")


class ApiPart(Struct, frozen=True):
    """The calls of one kind."""

    kind: str
    """A key of KINDS."""
    time_ns: int
    calls: int
    in_steps_ns: int | None
    """Part of the time within steps; None without steps."""


class ApiSplit(Struct, frozen=True):
    """All API time of a trace in parts that sum to it."""

    parts: tuple[ApiPart, ...]
    steps: int

    @property
    def total_ns(self) -> int:
        """Time in all calls."""
        return sum(part.time_ns for part in self.parts)

    @property
    def one_time_ns(self) -> int:
        """Time that is spent once."""
        return sum(part.time_ns for part in self.parts if part.kind in ONE_TIME)


def api_split(trace: Trace) -> ApiSplit:
    """The time of all API calls by kind; an empty tuple of parts without calls."""
    api = trace.api
    starts = api.start_ns
    lengths = api.end_ns - starts
    names = api.name.texts
    kind_of = {name: _kind(name) for name in set(names.tolist())}
    kinds = np.array([kind_of[name] for name in names.tolist()], dtype=object)
    beyond = _first_launches(trace, lengths)
    lengths = lengths - beyond
    steps = trace.all_steps
    inside = _within(starts, steps.start_ns, steps.end_ns) if len(steps) else None
    parts = []
    for kind in KINDS:
        mine, spent = (beyond > 0, beyond) if kind == "first" else (kinds == kind, lengths)
        if mine.any():
            within = int(spent[mine & inside].sum()) if inside is not None else None
            parts.append(ApiPart(kind, int(spent[mine].sum()), int(mine.sum()), within))
    return ApiSplit(tuple(parts), len(steps))


def _kind(name: str) -> str:
    words = words_of(name, "api")
    return words.when if words is not None else "other"


def _first_launches(trace: Trace, lengths: Int64s) -> Int64s:
    """For each call, its time beyond the median launch, if it is the first launch of its kernel and longer."""
    excess = np.zeros(len(lengths), np.int64)
    launched = trace.stored("gpu").filter((pl.col("kind") == "kernel") & pl.col("api_id").is_not_null())
    if not len(launched):
        return excess
    calls = integers(launched["api_id"])
    median = int(np.median(lengths[np.unique(calls[calls != NONE])]))
    first = integers(launched.group_by("name").agg(pl.col("api_id").min())["api_id"])
    excess[first] = np.maximum(lengths[first] - median, 0)
    return excess


def _within(moments: Int64s, starts: Int64s, ends: Int64s) -> Bools:
    """Which moments lie in a step; steps are in order."""
    at = np.searchsorted(starts, moments, side="right") - 1
    found: Bools = (at >= 0) & (moments < ends[at])
    return found
