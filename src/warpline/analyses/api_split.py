"""API time that is spent once against API time that every step spends.

A profile of a short program is full of loading and creating: the largest rows of `cuda_api_sum` then say nothing about
the steps. Calls are told apart by what they do (`warpline.analyses.words`). A launch that loads its kernel first is
longer: what the first launch of each kernel takes beyond the median launch counts as spent once.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from warpline.analyses.words import words_of
from warpline.trace.arrays import NONE, Int64s, containing
from warpline.trace.trace import Trace

KINDS = {
    "once": "loading, creating, allocating: once per process or object",
    "first": "first launch of each kernel, beyond the median launch",
    "step": "launches and copies",
    "wait": "waiting for the GPU",
    "ask": "queries",
    "other": "calls without a description",
}
ORDER = tuple(KINDS)
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
    api, steps = trace.api, trace.all_steps
    kinds = api.name.numbers(lambda name: ORDER.index(_kind(name)))
    beyond = _beyond_usual_launch(trace)
    lengths = api.end_ns - api.start_ns - beyond
    inside = containing(steps.start_ns, steps.end_ns, api.start_ns) != NONE
    parts = []
    for number, kind in enumerate(ORDER):
        calls, spent = (beyond > 0, beyond) if kind == "first" else (kinds == number, lengths)
        if calls.any():
            within = int(spent[calls & inside].sum()) if len(steps) else None
            parts.append(ApiPart(kind, int(spent[calls].sum()), int(calls.sum()), within))
    return ApiSplit(tuple(parts), len(steps))


def _kind(name: str) -> str:
    words = words_of(name, "api")
    return words.when if words is not None else "other"


def _beyond_usual_launch(trace: Trace) -> Int64s:
    """For each call, its time beyond the median launch, if it is the first launch of its kernel and longer."""
    lengths = trace.api.end_ns - trace.api.start_ns
    launched = trace.gpu[trace.gpu.kind.equal("kernel") & (trace.gpu.api_id != NONE)]
    excess = np.zeros(len(lengths), np.int64)
    if len(launched):
        first = np.full(len(launched.name.words), len(lengths))
        np.minimum.at(first, launched.name.codes, launched.api_id)
        first = first[first < len(lengths)]
        median = int(np.median(lengths[np.unique(launched.api_id)]))
        excess[first] = np.maximum(lengths[first] - median, 0)
    return excess
