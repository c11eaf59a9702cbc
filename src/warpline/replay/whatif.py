"""What if: a trace with one or several fixes applied to its graph, replayed without the profiler's cost."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from warpline.errors import CannotAnswer
from warpline.replay.bare import find_bare_steps
from warpline.replay.bench import Bench
from warpline.replay.interventions import Intervention, find_interventions, interventions
from warpline.replay.interventions.registry import EXPECTED, OPTIMISTIC, PESSIMISTIC
from warpline.replay.model import CALL, Graph, Int64s
from warpline.replay.overhead import EXPECTED_STEP, HIGH_STEP, LOW_STEP
from warpline.replay.replay import Replay, replay
from warpline.replay.scene import Scene
from warpline.replay.simulate import simulate
from warpline.trace.trace import Trace

SCHEMA = "warpline.whatif/1"


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its range."""

    low: float
    expected: float
    high: float

    def rounded(self) -> dict[str, int]:
        """As whole nanoseconds."""
        return {key: round(value) for key, value in asdict(self).items()}


@dataclass(frozen=True, slots=True)
class AppliedFix:
    """A fix, and how many nodes of the graph it changed."""

    name: str
    summary: str
    assumptions: tuple[str, ...]
    changed: int


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the step would take."""

    fixes: tuple[AppliedFix, ...]
    measured_step_ns: float
    replayed_step_ns: float
    error_pct: float
    """Of the unchanged replay: the confidence in everything below."""
    old_step_ns: Estimate
    """Bare: as a stopwatch would show it without a profiler."""
    new_step_ns: Estimate
    gain: Estimate
    """Old over new: the speed-up."""
    steps: int

    @property
    def applies(self) -> bool:
        """Whether any fix found something to change."""
        return any(fix.changed for fix in self.fixes)

    def to_dict(self) -> dict[str, Any]:
        """The JSON contract `warpline.whatif/1`."""
        return {
            "schema": SCHEMA,
            "fixes": [asdict(fix) for fix in self.fixes],
            "replay": {
                "measured_step_ns": round(self.measured_step_ns),
                "replayed_step_ns": round(self.replayed_step_ns),
                "error_pct": round(self.error_pct, 3),
                "bare_step_ns": round(self.old_step_ns.expected),
            },
            "steps": self.steps,
            "old_step_ns": self.old_step_ns.rounded(),
            "new_step_ns": self.new_step_ns.rounded(),
            "gain": {key: round(value, 4) for key, value in asdict(self.gain).items()},
        }


class WhatIf:
    """A trace made ready for questions: its graph, its bare versions and its scene are found once."""

    def __init__(self, trace: Trace, done: Replay | None = None) -> None:
        self.trace = trace
        self.replay = done or replay(trace)
        self._uneven = self.replay.measured_step_ns > float(np.median(self.replay.measured_ns))
        self._scale = 1.0
        self._bare = find_bare_steps(trace, self.replay.graph, self.step_ns)
        self.scene = Scene(trace, self._bare.graphs[EXPECTED_STEP], self.replay.marks)
        if self._bare.measured:
            # What the replay misses of the measured step, it misses of the mended one too.
            self._scale = self._bare.expected_ns / self.step_ns(self._bare.graphs[EXPECTED_STEP])
        self._tried: dict[tuple[tuple[str, ...], int, int], tuple[float, list[int]]] = {}

    @property
    def bare_step_ns(self) -> Estimate:
        """The step without the profiler."""
        return Estimate(*sorted(self._bare.steps_ns))

    @property
    def bare_step_from(self) -> str:
        """`measured` by the run that made the trace, or `estimated`."""
        return "measured" if self._bare.measured else "estimated"

    def step_ns(self, graph: Graph, floor_ns: float = 0.0, *, best: bool = False) -> float:
        """The step of a graph: by the mean where that is how the measured steps are taken."""
        lengths = self.replay.marks.lengths(graph, simulate(graph))
        typical = float(np.mean(lengths)) if self._uneven else float(np.median(lengths))
        typical = float(lengths.min()) if best else typical
        return max(typical * self._scale, floor_ns, 1.0)

    def ask(self, *names: str) -> Prediction:
        """Predicts the step with these fixes together."""
        chosen = find_interventions(list(names))
        cases = [(EXPECTED_STEP, case) for case in (PESSIMISTIC, EXPECTED, OPTIMISTIC)]
        extremes = [(LOW_STEP, OPTIMISTIC), (HIGH_STEP, PESSIMISTIC)]
        results = {(bare, case): self._try(chosen, bare, case) for bare, case in (*cases, *extremes)}
        new = {key: step for key, (step, _) in results.items()}
        middle = self._bare.expected_ns
        gains = [middle / new[key] for key in cases]
        times = [new[LOW_STEP, OPTIMISTIC], new[EXPECTED_STEP, EXPECTED], new[HIGH_STEP, PESSIMISTIC]]
        return Prediction(
            fixes=tuple(
                AppliedFix(item.name, item.summary, item.assumptions, changed)
                for item, changed in zip(chosen, results[EXPECTED_STEP, EXPECTED][1], strict=True)
            ),
            measured_step_ns=self.replay.measured_step_ns,
            replayed_step_ns=self.replay.replayed_step_ns,
            error_pct=self.replay.error_pct,
            old_step_ns=self.bare_step_ns,
            new_step_ns=_around(times),
            gain=_around(gains),
            steps=self.replay.marks.count,
        )

    def without_waits_ns(self, calls: Int64s) -> float:
        """The step if these calls (rows of `api`) returned without waiting for the device."""
        bench = Bench(self.scene, self._bare.graphs[EXPECTED_STEP])
        graph = bench.graph
        nodes = np.flatnonzero((graph.kind == CALL) & np.isin(graph.row, calls))
        bench.stop_waiting(nodes)
        return self.step_ns(bench.settle())

    def gains(self, name: str, least: float) -> bool:
        """Whether a fix finds something to change and is expected to gain at least so much: one replay, not five."""
        step, changed = self._try(find_interventions([name]), EXPECTED_STEP, EXPECTED)
        return any(changed) and self._bare.expected_ns / step >= least

    def _try(self, chosen: list[Intervention], bare: int, case: int) -> tuple[float, list[int]]:
        """The step with the fixes, for one bare step and one case of the fixes; each is tried once."""
        key = (tuple(item.name for item in chosen), bare, case)
        if key not in self._tried:
            bench = Bench(self.scene, self._bare.graphs[bare])
            changed = [item.apply(bench, case) for item in chosen]
            # Loading in the background cannot take longer than it took in the foreground.
            floor = min(bench.step_floor_ns, max(self._bare.steps_ns))
            self._tried[key] = self.step_ns(bench.settle(), floor, best=bench.best_step), changed
        return self._tried[key]


def _around(values: list[float]) -> Estimate:
    """The middle value with the extremes of all three around it."""
    return Estimate(min(values), values[1], max(values))


def whatif(trace: Trace, fixes: list[str]) -> Prediction:
    """Predicts the step time with the fixes applied, all on one graph.

    >>> whatif(warpline.open("trace.json.gz"), ["cuda_graph", "tf32"]).gain
    """
    prediction = WhatIf(trace).ask(*fixes)
    if not prediction.applies:
        raise CannotAnswer(
            "nothing-to-fix", f"the steps in view hold nothing that {' or '.join(fixes)} would change",
            "`warpline diagnose` says what costs the time",
        )
    return prediction


def every_fix(trace: Trace) -> list[Prediction]:
    """Each fix alone, those that change something, the largest gain first."""
    question = WhatIf(trace)
    predictions = [question.ask(name) for name in interventions()]
    return sorted((one for one in predictions if one.applies), key=lambda one: (-one.gain.expected, one.fixes[0].name))
