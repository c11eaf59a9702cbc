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
        "graph, fused, gate+up as one matmul", ("cuda_graph", "fused_silu_mul", "one_matmul"), _graph(one_matmul_fused)
    ),
    OptimisationRung("graph, fused, two streams", ("cuda_graph", "fused_silu_mul", "streams"), _streams),
    OptimisationRung("compile", ("torch_compile",), _compiled(plain, None)),
    OptimisationRung("compile, max-autotune", ("torch_compile", "cuda_graph"), _compiled(plain, "max-autotune")),
    OptimisationRung("all", ("torch_compile", "cuda_graph", "one_matmul"), _compiled(one_matmul, "max-autotune")),
)
COLUMNS = (
    LabColumn("rung", "rung"),
    LabColumn("step_ns", "step", "ns"),
    LabColumn("interval_ns", "95 % interval", "ns"),
    LabColumn("gpu_ns", "GPU alone", "ns"),
    LabColumn("submit_ns", "CPU alone", "ns"),
    LabColumn("share", "of first", "share"),
    LabColumn("predicted_gain", "predicted gain", "gain"),
    LabColumn("predicted_range", "its range", "gain"),
    LabColumn("gain", "measured gain", "gain"),
    LabColumn("new_kernels", "new kernels"),
)


@dataclass(frozen=True, slots=True)
class RungOutcome:
    """What was promised for a rung and what came of it."""

    name: str
    promised: LabRange | None
    gain: float

    @property
    def error(self) -> float | None:
        """Predicted over measured time, less one."""
        return self.gain / self.promised.expected - 1 if self.promised is not None else None

    @property
    def held(self) -> bool:
        """Whether the gain is within the range."""
        return self.promised is not None and self.promised.low <= self.gain <= self.promised.high


def run(lab: Workbench) -> Observation:
    """Every rung at every shape."""
    layer, tables, outcomes = make_layer(lab), [], {}
    with lab.torch.no_grad():
        for shape, tokens in SHAPES if lab.has_gpu else SHAPES[1:]:
            lab.report(f"  {shape}, {tokens} tokens")
            x = lab.random(1, tokens, layer.hidden, dtype="float16")
            table, found = _climbed(lab, layer, x, shape, tokens)
            tables.append(table)
            outcomes[shape] = found
    return Observation(_seen(outcomes), WHY, tuple(tables))


def _climbed(lab: Workbench, layer: Layer, x: Any, shape: str, tokens: int) -> tuple[LabTable, list[RungOutcome]]:
    ladder = f"optimisation-{shape.replace(' ', '-')}"
    promised: dict[str, LabRange] = {}
    rows: list[tuple[LabValue, ...]] = []
    outcomes: list[RungOutcome] = []
    first: LoopTime | None = None
    known: list[str] = []
    for number, rung in enumerate(RUNGS):
        step = lab.attempt(f"{shape}, {rung.name}", partial(_ready, lab, rung, layer, x))
        if step is None:
            continue
        time = lab.loop(step, rung.name)
        trace = lab.record(ladder, f"{number}-{_file_name(rung.name)}", step)
        if first is None:
            first = time
            if trace is not None and lab.has_gpu:
                promised = lab.attempt(f"{shape}, predictions", partial(_promises, trace)) or {}
        kernels = kernels_of(trace)
        promise, gain = promised.get(rung.name), first.step_ns / time.step_ns
        rows.append(
            (
                rung.name,
                time.step_ns,
                LabRange(time.low_ns, time.step_ns, time.high_ns),
                time.gpu_ns,
                time.submit_ns,
                time.step_ns / first.step_ns,
                promise.expected if promise else None,
                promise,
                gain,
                new_kernels(kernels, known),
            )
        )
        known = kernels
        if rung.changes:
            outcomes.append(RungOutcome(rung.name, promise, gain))
    title = f"{shape}: {tokens} {'token' if tokens == 1 else 'tokens'}, hidden {layer.hidden}, FFN {layer.wide}"
    return LabTable(shape, title, COLUMNS, tuple(rows)), outcomes


def _ready(lab: Workbench, rung: OptimisationRung, layer: Layer, x: Any) -> Step:
    """The step of a rung, after its first call: compiling and capturing may fail here."""
    lab.report(f"    {rung.name} …")
    step = rung.build(lab, layer, x)
    for _ in range(3):
        step()
    lab.synchronise()
    return step


def _promises(trace: Path) -> dict[str, LabRange]:
    """What the first rung's recording promises for each of the others."""
    from warpline.lab.predictions import Forecast  # noqa: PLC0415 - the analysis side; measuring needs none of it

    forecast = Forecast(trace)
    return {rung.name: forecast.gain(*rung.changes) for rung in RUNGS}


def _file_name(rung: str) -> str:
    words = rung.lower().replace("·", " ").replace("+", " ").replace(",", " ").split()
    return "-".join(words)


def _seen(outcomes: dict[str, list[RungOutcome]]) -> str:
    sentences = []
    for shape, found in outcomes.items():
        if found:
            best = max(found, key=lambda one: one.gain)
            sentences.append(f"At {shape} the best rung is {best.name}, {speedup(best.gain)} as fast as eager.")
    every = [one for found in outcomes.values() for one in found if one.promised is not None]
    errors = [abs(one.error) for one in every if one.error is not None]
    if errors:
        held = sum(one.held for one in every)
        pairs = [pair for found in outcomes.values() for pair in combinations(_promised(found), 2)]
        sentences.append(
            f"Of {len(every)} predictions {held} hold the measured gain in their range; the median error of the "
            f"step time is {100 * statistics.median(errors):.0f} %, and {sum(map(_in_order, pairs))} of {len(pairs)} "
            "pairs of rungs are in the order that was predicted."
        )
    return " ".join(sentences)


def _promised(found: Sequence[RungOutcome]) -> list[RungOutcome]:
    return [one for one in found if one.promised is not None]


def _in_order(pair: tuple[RungOutcome, RungOutcome]) -> bool:
    """Whether the one that was promised more gains at least as much."""
    one, other = sorted(pair, key=lambda outcome: outcome.promised.expected if outcome.promised else 0.0)
    return one.gain <= other.gain * 1.01


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
