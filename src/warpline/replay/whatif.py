"""What if: replays a trace with one or several fixes applied to its graph, without profiler overhead."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from msgspec import Struct, to_builtins
from msgspec.structs import replace

from warpline.analyses.idle.gaps import CAUSES, Gaps, idle_gaps
from warpline.estimate import Estimate
from warpline.intervals import union
from warpline.notebook import ShownAsCard
from warpline.replay.bare_step import EXPECTED_STEP, HIGH_STEP, LAUNCHING, LOW_STEP, bare_idle_ns, find_bare_steps
from warpline.replay.costs.cost import EXPECTED, OPTIMISTIC, PESSIMISTIC
from warpline.replay.fix import GraphFix, chosen_fixes
from warpline.replay.graph.model import Graph, NodeKind
from warpline.replay.graph_edit import Effect, GraphEdit
from warpline.replay.labelled_graph import LabelledGraph
from warpline.replay.ranges import (
    Calm,
    Idle,
    PredictedRanges,
    RangeLimits,
    bare_range,
    calm_step_ns,
    doubt_of_bare,
    down_to_no_gain,
    is_host_paced,
    ranges_of,
    spread_of,
)
from warpline.replay.remaining import stream_ns, untouched_ns
from warpline.replay.replay import Replay, are_uneven, replay
from warpline.replay.simulate import simulate
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

    `fixes` are the available fixes by name, in the order in which they are applied.
    """

    def __init__(self, trace: Trace, fixes: Mapping[str, GraphFix], done: Replay | None = None) -> None:
        self.trace, self._fixes = trace, fixes
        self.replay = done or replay(trace)
        self._uneven = are_uneven(self.replay.measured_ns)
        costs = self.replay.costs
        self._bare = find_bare_steps(trace, self.replay.graph, costs.host.recording, self.step_ns, self._uneven)
        self.labelled = LabelledGraph(trace, self._bare.graphs[EXPECTED_STEP], self.replay.marks, costs)
        self._tried: dict[tuple[str, ...], Trial] = {}
        self._asked: dict[tuple[str, ...], Prediction] = {}

    @property
    def bare_step_ns(self) -> Estimate:
        """The step without the profiler."""
        return self._bare.timed_ns or bare_range(self._bare.estimated_ns, self.bare_idle_share, self.calm_step_ns)

    @property
    def slowness(self) -> float:
        """How many times slower than usual the host was, where that leaves the step in doubt: no stopwatch ran."""
        return 1.0 if self._bare.timed_ns else self.replay.costs.host.excess

    @cached_property
    def calm_step_ns(self) -> float:
        """The bare step if the host was slow only while it recorded."""
        step_ns, waits_ns = self._bare.expected_ns, self._waits_ns
        return calm_step_ns(step_ns, (1 - self.bare_idle_share) * step_ns, waits_ns, self.slowness)

    @cached_property
    def idle(self) -> dict[str, int]:
        """Recorded idle time of the busiest device by cause, over the window."""
        return self._gaps[0].totals() if self._gaps else dict.fromkeys(CAUSES, 0)

    @property
    def captured_ns(self) -> int:
        """The part of it in which a graph is captured."""
        return self._gaps[0].captured_ns if self._gaps else 0

    @property
    def unrecorded_ns(self) -> int:
        """The part of it in which what is launched waits for what was not recorded."""
        return self._gaps[0].unrecorded_ns if self._gaps else 0

    @cached_property
    def _gaps(self) -> list[Gaps]:
        return idle_gaps(self.trace, self.labelled.host_time, busiest=True)

    @cached_property
    def _waits_ns(self) -> float:
        """Idle time of the bare step that a faster host would not shorten: it is not spent on launches."""
        if self.slowness == 1.0:
            return 0.0
        return sum(length for cause, length in self.bare_idle_ns.items() if cause not in LAUNCHING)

    @cached_property
    def bare_idle_ns(self) -> dict[str, float]:
        """Idle time of the bare step by cause."""
        recorded = {cause: length / max(self.replay.marks.count, 1) for cause, length in self.idle.items()}
        recording = np.where(self.labelled.is_work, 0.0, self.replay.graph.duration - self.labelled.graph.duration)
        loading = float((recording * self.labelled.input_share).sum()) / max(float(recording.sum()), 1.0)
        return bare_idle_ns(recorded, self.bare_idle_share * self._bare.expected_ns, loading)

    @property
    def bare_step_from(self) -> str:
        """`measured` by the run that made the trace, or `estimated`."""
        return "measured" if self._bare.timed_ns else "estimated"

    @cached_property
    def bare_idle_share(self) -> float:
        """Share of the bare step in which the busiest device is idle; overlapping streams count once."""
        graph, work = self.labelled.graph, np.flatnonzero(self.labelled.is_work & self.labelled.has_step)
        device = self.labelled.work_number("device")[work]
        of_devices = (work[device == number] for number in np.unique(device))
        busy_ns = max(
            (union(graph.measured_start[of], graph.measured_end[of]).total_ns() for of in of_devices), default=0
        )
        return max(0.0, 1 - busy_ns / max(self.replay.marks.count, 1) / self._bare.expected_ns)

    def step_ns(self, graph: Graph, counted: Bools | None = None) -> float:
        """The step of a graph: by the mean where that is how the measured steps are taken."""
        lengths = self.replay.marks.lengths(graph, simulate(graph))
        lengths = lengths if counted is None else lengths[counted]
        typical = float(np.mean(lengths) if self._uneven else np.median(lengths))
        return max(typical, 1.0)

    def bare_graph(self, case: int) -> Graph:
        """The graph without a profiler, where recording cost little, as expected, or much."""
        return self._bare.graphs[case]

    def step_of(self, edit: GraphEdit) -> float:
        """The step of an edited bare graph, as a stopwatch would show it."""
        graph = edit.settle()
        return self._as_timed(self._at_most_bare(self.step_ns(graph), EXPECTED_STEP), graph, edit.gone)

    def ask(self, *names: str) -> Prediction:
        """Predict the step with these fixes together."""
        if names not in self._asked:
            self._asked[names] = self._predict(names)
        return self._asked[names]

    def _predict(self, names: tuple[str, ...]) -> Prediction:
        chosen, middle = chosen_fixes(self._fixes, names), self.trial(*names)
        best, worst = (
            self._try(chosen, bare, case).step_ns for bare, case in ((LOW_STEP, OPTIMISTIC), (HIGH_STEP, PESSIMISTIC))
        )
        replayed = _around(best, middle.step_ns, worst)
        old = self.bare_step_ns
        known = ranges_of(
            [item.name for item in chosen],
            old,
            middle.step_ns,
            spread=spread_of(replayed),
            idle=self.idle_shares(middle),
            limits=RangeLimits(
                least_ns=untouched_ns(self.labelled, middle.duration, middle.gone | middle.moved),
                most_ns=self._most_ns(middle, replayed.high),
                calm=self.calm(middle),
                may_do_nothing=middle.effect is Effect.DOUBTFUL,
            ),
        )
        if middle.effect is Effect.OUTSIDE_STEPS:
            known = PredictedRanges(old, Estimate.exactly(1.0))
        return Prediction(
            fixes=tuple(
                AppliedFix(item.name, item.summary, item.assumptions, changed)
                for item, changed in zip(chosen, middle.changed, strict=True)
            ),
            measured_step_ns=self.replay.measured_step_ns,
            replayed_step_ns=self.replay.replayed_step_ns,
            error_pct=self.replay.error_pct,
            old_step_ns=old,
            new_step_ns=known.step_ns,
            gain=known.gain,
            replayed_ns=replayed,
            steps=self.replay.marks.count,
            bare_is_estimated=self._bare.timed_ns is None,
            on_calm_host=is_host_paced(self.bare_idle_share),
            is_outside_steps=middle.effect is Effect.OUTSIDE_STEPS,
        )

    def idle_shares(self, trial: Trial) -> Idle:
        """Shares of the bare step, and of a step with fixes, in which the device is idle."""
        busy_ns = self._stream_ns(trial.duration, trial.gone)
        return Idle(self.bare_idle_share, max(0.0, 1 - busy_ns / trial.step_ns))

    def _most_ns(self, trial: Trial, worst_ns: float) -> float:
        """The longest step that fixes can leave: the replay's worst one on a slow host, if what goes is certain to."""
        if trial.effect is not Effect.CERTAIN:
            return math.inf
        return doubt_of_bare(self.idle_shares(trial).new).above(worst_ns, 0.0)

    def calm(self, trial: Trial) -> Calm:
        """The step and the gain if the host was slow only while it recorded. What the device does then counts for more:
        a host that is fast enough leaves nothing to gain by launching less, and hides nothing."""
        busy_ns = self._stream_ns(trial.duration, trial.gone)
        waits_ns = min(self._waits_ns, max(trial.step_ns - busy_ns, 0.0))
        step_ns = calm_step_ns(trial.step_ns, busy_ns, waits_ns, self.slowness)
        return Calm(step_ns, self.calm_step_ns / step_ns)

    def without_waits_ns(self, calls: Int64s) -> float:
        """The step if these calls (rows of `api`) returned without waiting for the device."""
        edit = GraphEdit(self.labelled, self._bare.graphs[EXPECTED_STEP])
        graph = edit.graph
        nodes = np.flatnonzero((graph.kind == NodeKind.CALL) & np.isin(graph.row, calls))
        edit.stop_waiting(nodes)
        return self.step_ns(edit.settle())

    def gains(self, name: str, least: float) -> bool:
        """Whether a fix changes something and is expected to gain at least `least`: one replay, not five."""
        found = self.trial(name)
        return any(found.changed) and self._bare.expected_ns / found.step_ns >= least

    def trial(self, *names: str) -> Trial:
        """What these fixes do in the expected case; found once, since rules and claims both look at it."""
        if names not in self._tried:
            self._tried[names] = self._try(chosen_fixes(self._fixes, names), EXPECTED_STEP, EXPECTED)
        return self._tried[names]

    def _try(self, chosen: list[GraphFix], bare: int, case: int) -> Trial:
        """The fixes applied to one bare graph, in one case of the fixes."""
        edit = GraphEdit(self.labelled, self._bare.graphs[bare])
        changed = tuple(item.apply(edit, case) for item in chosen)
        graph = edit.settle()
        # Loading in the background takes no longer than in the foreground.
        floor = min(edit.step_floor_ns, max(self._bare.steps_ns))
        unbounded = self.step_ns(graph, edit.counted)
        return Trial(
            step_ns=self._as_timed(self._at_most_bare(max(unbounded, floor), bare), graph, edit.gone),
            changed=changed,
            duration=graph.duration,
            gone=edit.gone,
            moved=edit.moved,
            freed=edit.freed,
            unbounded_ns=unbounded,
            floor_ns=edit.step_floor_ns,
            effect=edit.effect if len(chosen) == 1 else Effect.AS_REPLAYED,
        )

    def _at_most_bare(self, step_ns: float, bare: int) -> float:
        """Without steps, the bare time is the most: what lets the first work begin sooner would seem to make the whole
        longer."""
        return step_ns if len(self.trace.steps_in_view) else min(step_ns, self._bare.steps_ns[bare])

    def _as_timed(self, step_ns: float, graph: Graph, gone: Bools) -> float:
        """The step with its part of what the run's stopwatch showed beyond the estimate.

        The estimate is wrong about the host. So the difference stays in proportion to the idle time that a fix leaves:
        all of it for a fix that changes nothing, none of it if the device sets the pace afterwards.
        """
        if self._bare.timed_ns is None:
            return step_ns
        estimated = self._bare.estimated_ns
        idle = estimated - self._stream_ns(self.labelled.graph.duration, np.zeros_like(gone))
        if is_host_paced(idle / estimated):
            left = (step_ns - self._stream_ns(graph.duration, gone)) / idle
        else:
            left = step_ns / estimated
        return max(step_ns + min(max(left, 0.0), 1.0) * (self._bare.timed_ns.expected - estimated), 1.0)

    def _stream_ns(self, duration: Floats, gone: Bools) -> float:
        return float(np.median(stream_ns(self.labelled, duration, ~gone)))


def _around(one: float, middle: float, other: float) -> Estimate:
    """The middle value with the extremes of all three around it."""
    return Estimate(min(one, middle, other), middle, max(one, middle, other))
