"""What if: replays a trace with one or several fixes applied to its graph, without profiler overhead."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct, to_builtins
from msgspec.structs import replace

from warpline.estimate import Estimate
from warpline.notebook import ShownAsCard
from warpline.replay.bare_step import EXPECTED_STEP, HIGH_STEP, LOW_STEP, MOST_STRAY, BareStep
from warpline.replay.costs.cost import EXPECTED, OPTIMISTIC, PESSIMISTIC
from warpline.replay.fix import GraphFix, chosen_fixes
from warpline.replay.graph.model import Graph, NodeKind
from warpline.replay.graph_edit import Effect, GraphEdit
from warpline.replay.ranges import (
    Calm,
    Idle,
    PredictedRanges,
    RangeLimits,
    doubt_of_bare,
    down_to_no_gain,
    is_host_paced,
    ranges_of,
    spread_of,
)
from warpline.replay.remaining import stream_ns, untouched_ns
from warpline.replay.replay import replay
from warpline.trace.arrays import Bools, Floats, Int64s
from warpline.trace.trace import Trace
from warpline.units import duration, speedup

SCHEMA = "warpline.whatif/1"
UNNAMED = "no finding names {names}: the trace has no evidence that this is the fault, and it may gain nothing"


class AppliedFix(Struct, frozen=True):
    """A fix, and the number of graph nodes that it changed."""

    name: str
    summary: str
    assumptions: tuple[str, ...]
    changed: int


class Trial(Struct, frozen=True):
    """Fixes applied to one of the bare graphs; arrays have one entry per node."""

    step_ns: float
    changed: tuple[int, ...]
    """Number of nodes that each fix changed."""
    duration: Floats
    gone: Bools
    moved: Bools
    freed: Bools
    """Calls that no longer wait for the device."""
    unbounded_ns: float
    """The step without bounds from outside the graph."""
    floor_ns: float
    """Lower bound of the step from outside the graph."""
    effect: Effect
    """Of several fixes together nothing more is known."""


class Prediction(ShownAsCard, Struct, frozen=True):
    """The predicted step time.

    >>> prediction = warpline.whatif("trace.json.gz", "cuda_graph", "tf32")
    >>> prediction.gain.expected, prediction.new_step_ns.expected
    """

    fixes: tuple[AppliedFix, ...]
    measured_step_ns: float
    replayed_step_ns: float
    error_pct: float
    """Error of the unchanged replay: it limits the confidence in everything below."""
    old_step_ns: Estimate
    """The step without a profiler."""
    new_step_ns: Estimate
    gain: Estimate
    """Old over new: the speed-up."""
    replayed_ns: Estimate
    """The new step in the replay itself: with costs and recording at their best, as expected, and at their worst."""
    steps: int
    bare_is_estimated: bool = True
    """Whether the old step is estimated; else the run that made the trace timed it."""
    on_calm_host: bool = False
    """Whether the host has a part in the pace: its load makes the step longer, and by how much is not in the trace."""
    is_outside_steps: bool = False
    """Whether all that the fix removes lies outside the steps, which stay as they are."""
    warnings: tuple[str, ...] = ()

    @property
    def spread(self) -> float:
        """High over low of the replay itself, the best sign of the prediction's error."""
        return spread_of(self.replayed_ns)

    def without_finding(self, names: Sequence[str]) -> Prediction:
        """The same if no finding names these fixes: with a warning, and a range down to no gain at all."""
        wider = down_to_no_gain(PredictedRanges(self.new_step_ns, self.gain), self.old_step_ns.expected)
        warning = UNNAMED.format(names=" and ".join(names))
        return replace(self, new_step_ns=wider.step_ns, gain=wider.gain, warnings=(*self.warnings, warning))

    @property
    def applies(self) -> bool:
        """Whether any fix changed something."""
        return any(fix.changed for fix in self.fixes)

    def to_dict(self) -> dict[str, Any]:
        """The JSON contract `warpline.whatif/1`."""
        return {
            "schema": SCHEMA,
            "fixes": [to_builtins(fix) for fix in self.fixes],
            "replay": {
                "measured_step_ns": round(self.measured_step_ns),
                "replayed_step_ns": round(self.replayed_step_ns),
                "error_pct": round(self.error_pct, 3),
                "bare_step_ns": round(self.old_step_ns.expected),
            },
            "steps": self.steps,
            "old_step_ns": self.old_step_ns.rounded().to_dict(),
            "new_step_ns": self.new_step_ns.rounded().to_dict(),
            "gain": self.gain.rounded(4).to_dict(),
            "warnings": list(self.warnings),
        }

    def __repr__(self) -> str:
        return f"<Prediction {self._names}: {self._change}, {speedup(self.gain.expected)}>"

    @property
    def _names(self) -> str:
        return " + ".join(fix.name for fix in self.fixes)

    @property
    def _change(self) -> str:
        return f"{duration(self.old_step_ns.expected)} → {duration(self.new_step_ns.expected)}"


class WhatIf:
    """A trace prepared for what-if questions: its graph, without the profiler and with labels, is built once.

    `fixes` are the available fixes by name, in the order in which they are applied. `ask` predicts: it tries the fixes
    on the graph of the bare step in three cases, and puts ranges around what the replays show.
    """

    def __init__(self, trace: Trace, fixes: Mapping[str, GraphFix]) -> None:
        self.trace, self._fixes = trace, fixes
        self.replay = replay(trace)
        self.bare = BareStep(trace, self.replay)
        self.labelled = self.bare.labelled
        self._tried: dict[tuple[str, ...], Trial] = {}
        self._asked: dict[tuple[str, ...], Prediction] = {}

    def ask(self, *names: str) -> Prediction:
        """Predict the step with these fixes together."""
        if names not in self._asked:
            self._asked[names] = self._predict(names)
        return self._asked[names]

    def _predict(self, names: tuple[str, ...]) -> Prediction:
        chosen, middle = chosen_fixes(self._fixes, names), self.trial(*names)
        best = self._try(chosen, LOW_STEP, OPTIMISTIC)
        worst = self._try(chosen, HIGH_STEP, PESSIMISTIC)
        steps_ns = best.step_ns, middle.step_ns, worst.step_ns
        replayed = Estimate(min(steps_ns), middle.step_ns, max(steps_ns))
        known = self._ranges(names, middle, replayed, best.floor_ns / MOST_STRAY)
        return Prediction(
            fixes=tuple(
                AppliedFix(item.name, item.summary, item.assumptions, changed)
                for item, changed in zip(chosen, middle.changed, strict=True)
            ),
            measured_step_ns=self.replay.measured_step_ns,
            replayed_step_ns=self.replay.replayed_step_ns,
            error_pct=self.replay.error_pct,
            old_step_ns=self.bare.step_ns,
            new_step_ns=known.step_ns,
            gain=known.gain,
            replayed_ns=replayed,
            steps=self.replay.marks.count,
            bare_is_estimated=self.bare.timed_ns is None,
            on_calm_host=is_host_paced(self.bare.idle_share),
            is_outside_steps=middle.effect is Effect.OUTSIDE_STEPS,
        )

    def _ranges(self, names: Sequence[str], trial: Trial, replayed: Estimate, floor_ns: float) -> PredictedRanges:
        if trial.effect is Effect.OUTSIDE_STEPS:
            return PredictedRanges(self.bare.step_ns, Estimate.exactly(1.0))
        idle, most_ns = self.idle_shares(trial), math.inf
        if trial.effect is Effect.CERTAIN:
            most_ns = doubt_of_bare(idle.new).above(replayed.high, 0.0)
        limits = RangeLimits(
            least_ns=max(untouched_ns(self.labelled, trial.duration, trial.gone | trial.moved), floor_ns),
            most_ns=most_ns,
            calm=self.calm(trial),
            may_do_nothing=trial.effect is Effect.DOUBTFUL,
        )
        return ranges_of(names, self.bare.step_ns, trial.step_ns, spread_of(replayed), idle, limits)

    def trial(self, *names: str) -> Trial:
        """What these fixes do in the expected case; found once, since rules and claims both look at it."""
        if names not in self._tried:
            self._tried[names] = self._try(chosen_fixes(self._fixes, names), EXPECTED_STEP, EXPECTED)
        return self._tried[names]

    def _try(self, chosen: list[GraphFix], bare: int, case: int) -> Trial:
        """The fixes applied to one bare graph, in one case of the fixes."""
        edit = GraphEdit(self.labelled, self.bare.graphs[bare])
        if case == PESSIMISTIC:
            # A late start without a recorded reason: whether its launch or its stream was held is not known.
            edit.keep_late_starts()
        changed = tuple(item.apply(edit, case) for item in chosen)
        graph = edit.settle()
        unbounded = self.replay.step_ns(graph, edit.counted)
        return Trial(
            step_ns=max(self._by_stopwatch_ns(unbounded, graph, edit.gone, bare), self._floor_ns(edit, bare)),
            changed=changed,
            duration=graph.duration,
            gone=edit.gone,
            moved=edit.moved,
            freed=edit.freed,
            unbounded_ns=unbounded,
            floor_ns=self._floor_ns(edit, bare),
            effect=edit.effect if len(chosen) == 1 else Effect.AS_REPLAYED,
        )

    def gains(self, name: str, least: float) -> bool:
        """Whether a fix changes something and is expected to gain at least `least`: one replay, not five."""
        found = self.trial(name)
        return any(found.changed) and self.bare.expected_ns / found.step_ns >= least

    def idle_shares(self, trial: Trial) -> Idle:
        """Shares of the bare step, and of a step with fixes, in which the device is idle."""
        busy_ns = self._stream_ns(trial.duration, trial.gone)
        return Idle(self.bare.idle_share, max(0.0, 1 - busy_ns / trial.step_ns))

    def calm(self, trial: Trial) -> Calm:
        """The step and the gain if the host was slow only while it recorded. What the device does then counts for more:
        a host that is fast enough leaves nothing to gain by launching less, and hides nothing."""
        step_ns = self.bare.on_calm_host_ns(trial.step_ns, self._stream_ns(trial.duration, trial.gone))
        return Calm(step_ns, self.bare.calm_ns / step_ns)

    def step_of(self, edit: GraphEdit) -> float:
        """The step of an edited bare graph, as a stopwatch would show it."""
        graph = edit.settle()
        return max(self._by_stopwatch_ns(self.replay.step_ns(graph), graph, edit.gone), self._floor_ns(edit))

    def without_waits_ns(self, calls: Int64s) -> float:
        """The step if these calls (rows of `api`) returned without waiting for the device."""
        edit = GraphEdit(self.labelled, self.bare.graphs[EXPECTED_STEP])
        graph = edit.graph
        edit.stop_waiting(np.flatnonzero((graph.kind == NodeKind.CALL) & np.isin(graph.row, calls)))
        return self.replay.step_ns(edit.settle())

    def _floor_ns(self, edit: GraphEdit, bare: int = EXPECTED_STEP) -> float:
        """The shortest step that loading allows: no longer than the step as it is, which it allows."""
        now_ns = self.bare.timed_ns.expected if self.bare.timed_ns else self.bare.steps_ns[bare]
        return min(edit.step_floor_ns, now_ns)

    def _by_stopwatch_ns(self, step_ns: float, graph: Graph, gone: Bools, bare: int = EXPECTED_STEP) -> float:
        """The replayed step with its part of what the run's stopwatch showed beyond the estimate.

        The estimate is wrong about the host. So the difference stays in proportion to the idle time that a fix leaves:
        all of it for a fix that changes nothing, none of it if the device sets the pace afterwards.
        """
        if not len(self.trace.steps_in_view):
            # What lets the first work begin sooner would seem to make the whole longer.
            step_ns = min(step_ns, self.bare.steps_ns[bare])
        if self.bare.timed_ns is None:
            return step_ns
        estimated = self.bare.estimated_ns
        idle = estimated - self._stream_ns(self.labelled.graph.duration, np.zeros_like(gone))
        if is_host_paced(idle / estimated):
            left = (step_ns - self._stream_ns(graph.duration, gone)) / idle
        else:
            left = step_ns / estimated
        return max(step_ns + min(max(left, 0.0), 1.0) * (self.bare.timed_ns.expected - estimated), 1.0)

    def _stream_ns(self, duration: Floats, gone: Bools) -> float:
        """GPU time of a step on its busiest stream."""
        return float(np.median(stream_ns(self.labelled, duration, ~gone)))
