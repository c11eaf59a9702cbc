"""A ladder: one program in several versions, a row each, every rung against the one before it.

`Ladder.to_dict` is the JSON contract `warpline.ladder/1`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import log
from typing import Any

import numpy as np
from msgspec import Struct, to_builtins

from warpline.analyses.device import trace_device
from warpline.analyses.roofline.entry import RooflineTable
from warpline.analyses.roofline.table import roofline_table
from warpline.compare.comparison import ComparedRuns, Comparison, Verdict, compare
from warpline.compare.parts import short
from warpline.compare.prediction import Outcome
from warpline.compare.typical_step import MIDDLE, TypicalStep
from warpline.errors import CannotAnswer, UsageError
from warpline.estimate import LEAST_EFFECT, Estimate
from warpline.kernels import identify
from warpline.replay.representative_steps import in_warm_steps
from warpline.trace.trace import Trace

SCHEMA = "warpline.ladder/1"
MIN_MODELLED_SHARE = 0.8
"""If the work of a smaller share of the GPU time is known, a share of the roofline would be that of a few kernels."""
MATMULS = {"matmul", "convolution", "attention"}
"""Work models whose FLOPs are those of matmuls."""
MIN_MORE_WORK = 1.25
"""From this ratio of FLOPs on, two rungs do different work: padding and recomputation add less."""


class RungKernel(Struct, frozen=True):
    """A kernel that one of two neighbouring rungs has and the other has not."""

    name: str
    short: str
    """The name as a person would say it."""
    meaning: str
    """What the name says: class, library, units, tile and data types; empty if it cannot be decoded."""
    count: int
    """Launches in a step."""
    time_ns: int
    """Time in a step that is charged to it."""


class Rung(Struct, frozen=True):
    """One version of the program."""

    name: str
    file: str
    step_ns: int
    """The step: without the profiler if every rung of the ladder was timed so, else as recorded."""
    low_ns: int
    high_ns: int
    """The quartiles of its steps."""
    steps: int
    share: float
    """Of the first rung's step."""
    launches: float
    kernels: float
    roof_share: float | None
    """Minimum time over time of the kernels whose work is known; None without a roofline."""
    new: tuple[RungKernel, ...]
    """Kernels that the rung before does not have; of the first rung, all."""
    gone: tuple[RungKernel, ...]
    """Kernels of the rung before that it does not have."""
    verdict: Verdict | None
    """Against the rung before; None for the first."""
    gain: float | None
    """The step of the rung before over this one."""
    outcome: Outcome | None
    """The fix that was made, read off the contents of the steps, and what the replay of the rung before promises for
    it; None if the fix is not known, or nothing was predicted."""
    flops: float | None
    """Of the matmuls in a step; None if the work of too few kernels is known."""

    @property
    def predicted_ns(self) -> Estimate | None:
        """The step that was predicted: that of the rung before over the predicted gain; None if a step has the
        profiler's cost in it, which the prediction has not."""
        if self.outcome is None or self.outcome.predicted is None or self.gain is None or not self.outcome.timed:
            return None
        before_ns, gain = self.step_ns * self.gain, self.outcome.predicted
        return Estimate(before_ns / gain.high, before_ns / gain.expected, before_ns / gain.low)

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        fields, promised, outcome = to_builtins(self), self.predicted_ns, self.outcome
        del fields["outcome"]
        return {
            **fields,
            "fixes": list(outcome.fixes) if outcome else [],
            "predicted": to_builtins(outcome.predicted) if outcome else None,
            "predicted_ns": promised.rounded().to_dict() if promised is not None else None,
            "as_predicted": outcome.is_within_range if outcome else None,
        }


class Ladder(Struct, frozen=True):
    """All rungs, in the order given."""

    device: str
    timed: bool
    """Whether the times are without the profiler."""
    rungs: tuple[Rung, ...]
    remarks: tuple[str, ...]

    @property
    def comparable(self) -> tuple[Rung, ...]:
        """The rungs that can be compared with the first: those before the first break."""
        breaks = (place for place, rung in enumerate(self.rungs) if rung.verdict == "not_comparable")
        return self.rungs[: next(breaks, None)]

    @property
    def fastest(self) -> Rung:
        """The rung with the shortest step of those that can be compared with the first."""
        return min(self.comparable, key=lambda rung: rung.step_ns)

    @property
    def grows(self) -> bool:
        """Whether the rungs do different work, so that the shortest step is no merit."""
        known = [rung.flops for rung in self.comparable if rung.flops]
        return len(known) > 1 and max(known) > MIN_MORE_WORK * min(known)

    @property
    def unlike_first(self) -> Rung:
        """The rung whose work differs most from that of the first."""
        first = self.rungs[0].flops or 1.0
        return max(self.comparable, key=lambda rung: abs(log(rung.flops / first)) if rung.flops else 0.0)

    def to_dict(self) -> dict[str, Any]:
        """The JSON contract."""
        return {
            "schema": SCHEMA,
            "device": self.device,
            "timed": self.timed,
            "rungs": [rung.to_dict() for rung in self.rungs],
            "remarks": list(self.remarks),
        }


def ladder(traces: Sequence[Trace], names: Sequence[str], least_effect: float = LEAST_EFFECT) -> Ladder:
    """The ladder of these recordings, one a rung.

    >>> ladder([warpline.open(path) for path in paths], ["eager", "graph", "compiled"]).fastest.name
    """
    if len(traces) < 2:
        raise UsageError("two-rungs", "a ladder needs two recordings or more", "warpline ladder A B C")
    pairs = [compare([a], [b], least_effect, same_program=True) for a, b in pairwise(traces)]
    runs = [pairs[0].a, *(pair.b for pair in pairs)]
    timed = all(run.timed for run in runs)
    times = [_times(run, timed) for run in runs]
    recorded = [
        _Recorded(name, trace.file.name, run, time, _roofline(trace, traces[0]))
        for name, trace, run, time in zip(names, traces, runs, times, strict=False)
    ]
    rungs = tuple(
        _rung(one, recorded[0], before, pair)
        for one, before, pair in zip(recorded, [None, *recorded], [None, *pairs], strict=False)
    )
    devices = dict.fromkeys(trace_device(trace)[0] or "?" if len(trace.gpu) else "the CPU" for trace in traces)
    return Ladder(" and ".join(devices), timed, rungs, tuple(_remarks(rungs, runs, pairs, timed)))


class _StepTime(Struct, frozen=True):
    typical_ns: float
    quartiles_ns: tuple[float, float]
    steps: int


def _times(run: ComparedRuns, timed: bool) -> _StepTime:
    stopwatch = run.measurements[0].stopwatch
    if timed and stopwatch is not None:
        typical, lengths = stopwatch.step_ns, np.array(stopwatch.laps_ns)
    else:
        typical, lengths = run.step.step_ns, run.step.lengths_ns
    low, high = np.quantile(lengths, MIDDLE)
    return _StepTime(typical, (min(float(low), typical), max(float(high), typical)), len(lengths))


class _Recorded(Struct, frozen=True):
    """One recording of the ladder, by itself."""

    name: str
    file: str
    run: ComparedRuns
    time: _StepTime
    roofline: RooflineTable | None


def _rung(one: _Recorded, first: _Recorded, before: _Recorded | None, pair: Comparison | None) -> Rung:
    """The rung of a recording; `pair` compares it with the one before."""
    step, time, table = one.run.step, one.time, one.roofline
    return Rung(
        name=one.name,
        file=one.file,
        step_ns=round(time.typical_ns),
        low_ns=round(time.quartiles_ns[0]),
        high_ns=round(time.quartiles_ns[1]),
        steps=time.steps,
        share=time.typical_ns / first.time.typical_ns,
        launches=one.run.counts["launches"],
        kernels=one.run.counts["kernels"],
        roof_share=table.floor_ns / table.modelled_ns if table is not None else None,
        new=kernels_only_in(step, pair.a.step if pair is not None else None),
        gone=kernels_only_in(pair.a.step, step) if pair is not None else (),
        verdict=pair.verdict if pair is not None else None,
        gain=before.time.typical_ns / time.typical_ns if before is not None else None,
        outcome=pair.outcome if pair is not None and pair.outcome is not None and pair.outcome.predicted else None,
        flops=_matmul_flops(table) if table is not None else None,
    )


def kernels_only_in(step: TypicalStep, other: TypicalStep | None) -> tuple[RungKernel, ...]:
    """The kernels of a step that the other has not, the longest first."""
    known = {one.spelling for one in other.operations} if other is not None else set()
    found: dict[str, list[float]] = {}
    for one, charged in zip(step.operations, step.exposed_ns.tolist(), strict=True):
        if one.kind == "kernel" and one.spelling not in known:
            found.setdefault(one.name, []).append(charged)
    kernels = [RungKernel(name, short(name), _meaning(name), len(ns), round(sum(ns))) for name, ns in found.items()]
    return tuple(sorted(kernels, key=lambda kernel: -kernel.time_ns))


def _meaning(name: str) -> str:
    known = identify(name)
    if not known.known:
        return ""
    units = {True: "tensor cores", False: "CUDA cores", None: ""}[known.tensor_core]
    operands = known.dtype.a or known.dtype.out or known.dtype.acc or ""
    tile = f"tile {known.tile}" if known.tile else ""
    what = known.op if known.op not in {None, known.kernel_class} else ""
    return ", ".join(word for word in (known.kernel_class, what, known.library, tile, operands, units) if word)


def _roofline(trace: Trace, first: Trace) -> RooflineTable | None:
    """Where most of the work is known; the first rung lends shapes, which the kernels of a graph do not have."""
    try:
        table = roofline_table(in_warm_steps(trace), shapes_from=None if trace is first else first)
    except CannotAnswer:
        return None
    if table.roof is None or table.modelled_ns < MIN_MODELLED_SHARE * max(table.total_ns, 1):
        return None
    return table


def _matmul_flops(table: RooflineTable) -> float:
    """Of a step: what no optimisation changes, unlike the arithmetic between matmuls, which fusion hides."""
    return sum(entry.flops for entry in table.entries if entry.model in MATMULS) / (table.steps or 1)


def _remarks(
    rungs: Sequence[Rung], runs: Sequence[ComparedRuns], pairs: Sequence[Comparison], timed: bool
) -> list[str]:
    remarks = []
    if not timed:
        which = [rung.name for rung, run in zip(rungs, runs, strict=True) if not run.timed]
        few = f"{', '.join(which)} {'was' if len(which) == 1 else 'were'} not timed" if len(which) < len(rungs) else ""
        why = few or "no rung was timed without the profiler"
        remarks.append(f"the times are those of recorded steps, with the profiler's cost in them: {why}")
    for (before, rung), pair in zip(pairwise(rungs), pairs, strict=True):
        if pair.verdict == "not_comparable":
            remarks += [f"{before.name} is A, {rung.name} is B: {reason}" for reason in pair.reasons]
    return remarks
