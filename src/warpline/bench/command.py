"""The implementation of `warpline bench` and of `python -m warpline.bench`."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from warpline.bench.api import Device, bench, compare
from warpline.bench.cold import ColdStartTimes, Orders, cold_start
from warpline.bench.experiments import EXPERIMENTS, Experiment, forms, precision, shape_of
from warpline.bench.failures import failures_said, prints_on_stderr
from warpline.bench.program import load, names_a_program
from warpline.bench.result import PairedComparison, Result, document
from warpline.bench.scaling import Scaling, scalings
from warpline.errors import EXIT_INCONCLUSIVE, CannotAnswer, UsageError, meant

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class BenchRequest:
    """The arguments."""

    what: str
    """An experiment, or file.py:function."""
    shapes: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    against: str | None = None
    cold: bool = False
    graph: bool = False
    hot: bool = False
    copies: int = 1
    seconds: float = 0.5
    repeats: int = 3
    flops: float | None = None
    bytes: float | None = None
    device: str = "auto"


def data_types(text: str) -> tuple[str, ...]:
    """Those of `--dtype fp32,bf16`."""
    return tuple(filter(None, text.split(",")))


@dataclass(frozen=True, slots=True)
class BenchAnswer:
    """The results."""

    results: tuple[Result, ...] = ()
    comparison: PairedComparison | None = None
    cold: tuple[ColdStartTimes, ...] = ()
    ways: tuple[str, ...] = ()
    """Where one experiment is done in several ways: which is the fastest, a sentence for each shape and type."""

    @property
    def exit_code(self) -> int:
        """4 if a time is impossible, otherwise 0."""
        return EXIT_INCONCLUSIVE if any(result.verdict == "impossible" for result in self.results) else 0

    def to_dict(self) -> dict[str, Any]:
        """A document of schema `warpline.bench/1`."""
        answer = document(list(self.results), self.comparison, [each.to_dict() for each in self.cold])
        return {**answer, "scaling": [scaling.to_dict() for scaling in self.scaling], "ways": list(self.ways)}

    def __str__(self) -> str:
        blocks = [str(self.comparison)] if self.comparison else [str(result) for result in self.results]
        scaling = ["\n".join(each.sentence for each in self.scaling)] if self.scaling else []
        return "\n\n".join([*blocks, *scaling, *self.ways, *map(str, self.cold)])

    @property
    def scaling(self) -> list[Scaling]:
        """How the time grows from one shape to the next."""
        return scalings(self.results) if self.comparison is None else []


def answer(request: BenchRequest, report: Report = lambda line: None) -> BenchAnswer:
    """Run the requested measurement."""
    with failures_said(), prints_on_stderr():
        return _measured(request, report)


def _measured(request: BenchRequest, report: Report) -> BenchAnswer:
    if request.device not in ("auto", "cuda", "cpu"):
        raise UsageError("bad-device", f"there is no device {request.device!r}", "auto, cuda or cpu")
    if names_a_program(request.what):
        return _program(request, report)
    if request.what not in EXPERIMENTS:
        known = meant(request.what, (*EXPERIMENTS, "file.py:function"))
        raise UsageError("unknown-experiment", f"there is no experiment {request.what!r}", known)
    if request.against is not None:
        hint = "warpline bench a.py:f --against a.py:g"
        raise UsageError("no-comparison", "--against compares two functions given as file.py:function", hint)
    if request.flops is not None or request.bytes is not None:
        raise UsageError("work-known", f"the work of {request.what} is already known", "omit --flops and --bytes")
    return _experiment(request, EXPERIMENTS[request.what], report)


def _experiment(request: BenchRequest, experiment: Experiment, report: Report) -> BenchAnswer:
    shapes = [shape_of(experiment, shape) for shape in request.shapes or (None,)]
    dtypes = request.dtypes or experiment.dtypes[:1]
    pairs = [(shape, dtype) for shape in shapes for dtype in dtypes]
    if request.cold:
        return BenchAnswer(cold=tuple(_cold_experiment(request, experiment, *pair, report) for pair in pairs))
    torch = _torch()
    device = "cuda" if request.device != "cpu" and torch.cuda.is_available() else "cpu"
    if request.device == "cuda" and device == "cpu":
        raise CannotAnswer("no-gpu", "torch finds no CUDA device", "run it on a GPU machine, or with --device cpu")
    results: list[Result] = []
    ways: list[str] = []
    for shape, dtype in pairs:
        with precision(torch, dtype):
            try:
                prepared = forms(experiment, torch, shape, dtype, device)
            except (RuntimeError, MemoryError) as error:
                reason = (str(error).splitlines() or ["out of memory"])[0]
                message = f"its inputs cannot be created: {reason}"
                raise CannotAnswer("does-not-fit", message, "try a smaller --shape") from error
            for ready in prepared:
                report(f"timing {ready.name}")
                results.append(
                    bench(
                        ready.function,
                        *ready.args,
                        copies=request.copies,
                        name=ready.name,
                        flops=ready.work.flops,
                        bytes=ready.work.bytes,
                        dtype=dtype,
                        flush=not request.hot,
                        graph=request.graph,
                        seconds=request.seconds,
                        device=cast(Device, request.device),
                    )
                )
        ways += [_fastest(results[-len(prepared) :])] if len(prepared) > 1 else []
    return BenchAnswer(tuple(results), ways=tuple(ways))


def _fastest(results: list[Result]) -> str:
    """Which way takes the least time, beside the first one and the slowest."""
    usual, best = results[0], min(results, key=lambda result: result.median_ns)
    slowest = max(results, key=lambda result: result.median_ns)
    last = f"the slowest, {slowest.name}, takes {slowest.median_ns / usual.median_ns:.2f} times as long"
    if best is usual:
        second = min(results[1:], key=lambda result: result.median_ns)
        near = f"the next, {second.name}, takes {second.median_ns / usual.median_ns:.2f} times as long"
        return f"{usual.name} is the fastest of {len(results)}; {near}; {last}"
    share = best.median_ns / usual.median_ns
    return f"{best.name} is the fastest of {len(results)}: it takes {share:.2f} times as long as {usual.name}; {last}"


def _cold_experiment(
    request: BenchRequest, experiment: Experiment, shape: tuple[int, ...], dtype: str, report: Report
) -> ColdStartTimes:
    if dtype not in experiment.dtypes:
        raise UsageError("bad-dtype", f"{experiment.name} does not support {dtype!r}", ", ".join(experiment.dtypes))
    name = f"{experiment.name} {'x'.join(map(str, shape))} {dtype}"
    orders = Orders(name, "", experiment.name, shape, dtype, experiment.library, request.device)
    return cold_start(orders, repeats=request.repeats, report=report)


def _program(request: BenchRequest, report: Report) -> BenchAnswer:
    if request.shapes:
        raise UsageError("no-shape", "a function from a file defines its own inputs", "omit --shape")
    if request.cold:
        orders = Orders(request.what, program=request.what, device=request.device)
        return BenchAnswer(cold=(cold_start(orders, repeats=request.repeats, report=report),))
    if len(request.dtypes) > 1:
        raise UsageError("one-dtype", "--flops needs exactly one data type", "--dtype bf16")
    program = load(request.what)
    device = cast(Device, request.device)
    if request.against is not None:
        other = load(request.against)
        report(f"timing {program.name} and {other.name} alternately")
        found = compare(
            program.function,
            other.function,
            inputs=program.inputs,
            copies=request.copies,
            names=(program.name, other.name),
            flush=not request.hot,
            graph=request.graph,
            seconds=request.seconds,
            device=device,
        )
        return BenchAnswer((found.first, found.second), found)
    report(f"timing {program.name}")
    result = bench(
        program.function,
        inputs=program.inputs,
        copies=request.copies,
        name=program.name,
        flops=request.flops,
        bytes=request.bytes,
        dtype=request.dtypes[0] if request.dtypes else None,
        flush=not request.hot,
        graph=request.graph,
        seconds=request.seconds,
        device=device,
    )
    return BenchAnswer((result,))


def _torch() -> Any:
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        message = "the experiments need torch, which is not installed"
        raise CannotAnswer("no-torch", message, "pip install torch") from error
