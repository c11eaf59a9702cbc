"""Optimisation ladder: one layer made faster step by step, and what was promised before each step was made.

The first rung is recorded and replayed with the changes of all the others before any of them runs. Then each is
measured. At prefill the matmuls fill the GPU, so little helps; at one token the CPU sets the pace.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

from warpline.errors import CannotAnswer
from warpline.lab.layer import (
    Layer,
    Mlp,
    as_graph,
    fused,
    make_layer,
    one_matmul,
    one_matmul_fused,
    plain,
    two_streams,
)
from warpline.lab.model import LabColumn, LabExperiment, LabRange, LabTable, LabValue, Observation
from warpline.lab.rungs import kernels_of, new_kernels
from warpline.lab.workbench import LoopTime, Step, Workbench
from warpline.units import speedup

SAME = 1.01
"""Steps that differ by less are equally long."""
SHAPES = (("prefill", 2048), ("small batch", 64), ("decode", 1))
"""Tokens of a pass."""


@dataclass(frozen=True, slots=True)
class OptimisationRung:
    """A way to run the layer, and the changes that lead from the first rung to it."""

    name: str
    changes: tuple[str, ...]
    build: Callable[[Workbench, Layer, Any], Step]


def _eager(mlp: Mlp) -> Callable[[Workbench, Layer, Any], Step]:
    return lambda lab, layer, x: lambda: layer(x, mlp)


def _graph(mlp: Mlp) -> Callable[[Workbench, Layer, Any], Step]:
    return lambda lab, layer, x: as_graph(lab, lambda: layer(x, mlp))


def _streams(lab: Workbench, layer: Layer, x: Any) -> Step:
    if not lab.has_gpu:
        raise CannotAnswer("no-gpu", "streams need a GPU")
    mlp = two_streams(lab.torch.cuda.Stream())
    return as_graph(lab, lambda: layer(x, mlp))


def _compiled(mlp: Mlp, mode: str | None) -> Callable[[Workbench, Layer, Any], Step]:
    def build(lab: Workbench, layer: Layer, x: Any) -> Step:
        if mode is not None and not lab.has_gpu:
            raise CannotAnswer("no-gpu", "max-autotune tries matmul kernels on a GPU")
        lab.torch.compiler.reset()
        for weight in layer.weights:  # else a graph would copy them all in every pass, as it does with other inputs
            lab.torch._dynamo.mark_static_address(weight)
        compiled = lab.torch.compile(lambda value: layer(value, mlp), mode=mode, dynamic=False)
        return lambda: compiled(x)

    return build


RUNGS = (
    OptimisationRung("eager", (), _eager(plain)),
    OptimisationRung("CUDA graph", ("cuda_graph",), _graph(plain)),
    OptimisationRung("graph, fused SiLU·mul", ("cuda_graph", "fused_silu_mul"), _graph(fused)),
    OptimisationRung(
        "graph, fused, one matmul", ("cuda_graph", "fused_silu_mul", "one_matmul"), _graph(one_matmul_fused)
    ),
    OptimisationRung("graph, fused, two streams", ("cuda_graph", "fused_silu_mul", "streams"), _streams),
    OptimisationRung("compile", ("torch_compile",), _compiled(plain, None)),
    OptimisationRung("compile, max-autotune", ("torch_compile", "cuda_graph"), _compiled(plain, "max-autotune")),
    OptimisationRung("all", ("torch_compile", "cuda_graph", "one_matmul"), _compiled(one_matmul, "max-autotune")),
)
COMPILED = 5
"""The first rung that is compiled. Compilers leave processes behind that slow the host, so all others come first."""
COLUMNS = (
    LabColumn("rung", "rung"),
    LabColumn("step_ns", "step", "ns"),
    LabColumn("interval_ns", "95 % interval", "ns"),
    LabColumn("share", "of first", "share"),
    LabColumn("predicted_ns", "predicted", "ns"),
    LabColumn("predicted_range_ns", "its range", "ns"),
    LabColumn("error", "its error", "share"),
    LabColumn("gpu_ns", "GPU alone", "ns"),
    LabColumn("submit_ns", "CPU alone", "ns"),
    LabColumn("new_kernels", "new kernels"),
)


@dataclass(frozen=True, slots=True)
class RungOutcome:
    """What was promised for a rung and what came of it."""

    name: str
    promised: LabRange | None
    """Its step, from the recording of the first rung."""
    time: LoopTime
    kernels: tuple[str, ...]

    @property
    def error(self) -> float | None:
        """Predicted over measured time, less one."""
        return self.promised.expected / self.time.step_ns - 1 if self.promised is not None else None

    @property
    def is_in_range(self) -> bool:
        """Whether the step is within the range."""
        return self.promised is not None and self.promised.low <= self.time.step_ns <= self.promised.high

    def row(self, first_ns: float, before: Sequence[str]) -> tuple[LabValue, ...]:
        """As a row of the table, beside the first rung and the kernels of the rung before."""
        return (
            self.name,
            self.time.step_ns,
            LabRange(self.time.low_ns, self.time.step_ns, self.time.high_ns),
            self.time.step_ns / first_ns,
            self.promised.expected if self.promised else None,
            self.promised,
            self.error,
            self.time.gpu_ns,
            self.time.submit_ns,
            new_kernels(self.kernels, before),
        )


class Climb:
    """The ladder at one shape."""

    def __init__(self, lab: Workbench, layer: Layer, shape: str, tokens: int) -> None:
        self.shape, self.tokens, self.outcomes = shape, tokens, list[RungOutcome]()
        self._lab, self._layer = lab, layer
        self._x = lab.random(1, tokens, layer.hidden, dtype="float16")
        self._promised: dict[str, LabRange] = {}

    def climb(self, number: int) -> None:
        """Measure and record a rung; after the first, predict all others."""
        lab, rung = self._lab, RUNGS[number]
        lab.report(f"  {self.shape}, {rung.name}")
        step = lab.attempt(f"{self.shape}, {rung.name}", partial(self._ready, rung))
        if step is None:
            return
        time = lab.loop(step, rung.name)
        trace = lab.record(f"optimisation-{self.shape.replace(' ', '-')}", f"{number}-{_file_name(rung.name)}", step)
        if not self.outcomes and trace is not None:
            self._promised = lab.attempt(f"{self.shape}, predictions", partial(_promises, trace)) or {}
        promise = self._promised.get(rung.name) if rung.changes else None
        self.outcomes.append(RungOutcome(rung.name, promise, time, tuple(kernels_of(trace))))

    def _ready(self, rung: OptimisationRung) -> Step:
        """The step of a rung, after its first calls: compiling and capturing may fail here."""
        step = rung.build(self._lab, self._layer, self._x)
        with self._lab.quiet():
            for _ in range(3):
                step()
        self._lab.synchronise()
        return step

    def table(self) -> LabTable:
        """All rungs."""
        first_ns = self.outcomes[0].time.step_ns
        before: list[Sequence[str]] = [(), *(one.kernels for one in self.outcomes)]
        rows = tuple(one.row(first_ns, kernels) for one, kernels in zip(self.outcomes, before, strict=False))
        many = f"{self.tokens} {'token' if self.tokens == 1 else 'tokens'}"
        title = f"{self.shape}: {many}, hidden {self._layer.hidden}, FFN {self._layer.wide}"
        return LabTable(self.shape, title, COLUMNS, rows)


def run(lab: Workbench) -> Observation:
    """Every rung at every shape."""
    layer = make_layer(lab)
    climbs = [Climb(lab, layer, *shape) for shape in (SHAPES if lab.has_gpu else SHAPES[1:])]
    with lab.torch.no_grad():
        for numbers in (range(COMPILED), range(COMPILED, len(RUNGS))):
            for climb in climbs:
                for number in numbers:
                    climb.climb(number)
    return Observation(_seen({one.shape: one.outcomes for one in climbs}), WHY, tuple(one.table() for one in climbs))


def _promises(trace: Path) -> dict[str, LabRange]:
    """What the first rung's recording promises for each of the others."""
    from warpline.lab.predictions import Forecast  # noqa: PLC0415 - the analysis side; measuring needs none of it

    forecast = Forecast(trace)
    return {rung.name: forecast.step_ns(*rung.changes) for rung in RUNGS}


def _file_name(rung: str) -> str:
    words = rung.lower().replace("·", " ").replace("+", " ").replace(",", " ").split()
    return "-".join(words)


def _seen(outcomes: dict[str, list[RungOutcome]]) -> str:
    sentences = []
    for shape, found in outcomes.items():
        if len(found) > 1:
            best = min(found[1:], key=lambda one: one.time.step_ns)
            gain = speedup(found[0].time.step_ns / best.time.step_ns)
            sentences.append(f"At {shape} the best rung is {best.name}, {gain} as fast as {found[0].name}.")
    every = [one for found in outcomes.values() for one in found if one.promised is not None]
    errors = [abs(one.error) for one in every if one.error is not None]
    if errors:
        in_range = sum(one.is_in_range for one in every)
        pairs = [pair for found in outcomes.values() for pair in combinations(_promised(found), 2)]
        sentences.append(
            f"Of {len(every)} predictions {in_range} hold the measured step in their range; their median error is "
            f"{100 * statistics.median(errors):.0f} %, and {sum(map(_in_order, pairs))} of {len(pairs)} pairs of rungs "
            "are in the order that was predicted."
        )
    return " ".join(sentences)


def _promised(found: Sequence[RungOutcome]) -> list[RungOutcome]:
    return [one for one in found if one.promised is not None]


def _in_order(pair: tuple[RungOutcome, RungOutcome]) -> bool:
    """Whether the one that was promised the shorter step has it, or one within a percent of the other's."""
    one, other = sorted(pair, key=lambda outcome: outcome.promised.expected if outcome.promised else 0.0)
    return one.time.step_ns <= other.time.step_ns * SAME


WHY = (
    "A step in a loop takes as long as the slower of the CPU that launches it and the GPU that runs it. With many "
    "tokens the matmuls fill the GPU: removing launches changes nothing, and two matmuls side by side share the same "
    "units. With one token the GPU waits for launches, and what removes them helps."
)
EXPERIMENT = LabExperiment(
    "optimisation-ladder",
    "How much faster does each optimisation make a transformer layer, and could that be known before it was made?",
    run,
)
