"""Dispatch: what the CPU spends on one op, layer by layer, and from which size on the GPU sets the pace."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from warpline.lab.layer import as_graph
from warpline.lab.model import LabColumn, LabExperiment, LabTable, LabValue, Observation
from warpline.lab.workbench import Step, Workbench
from warpline.units import duration

OPS = 100
"""Ops of a step: far below the 1,024 launches that the driver queues before a launch waits."""
SIZES = (1, 1 << 16, 1 << 20, 1 << 22, 1 << 24, 1 << 26)
"""Elements of float32: a small kernel, a large one, and the place between them where the GPU begins to set the pace."""


def run(lab: Workbench) -> Observation:
    """The layers of one op, ways to launch many, and the curve over sizes."""
    layers = _layers(lab)
    ways = _ways(lab)
    curve = _curve(lab, ways)
    return Observation(_seen(layers, ways, curve), WHY, (layers, ways, curve))


def _repeated(call: Callable[[], object]) -> Step:
    def step() -> None:
        for _ in range(OPS):
            call()

    return step


def _layers(lab: Workbench) -> LabTable:
    """The time until one call returns, for calls that go one layer deeper each."""
    torch, x = lab.torch, lab.random(1)
    weight, out = lab.random(64, 64, dtype="bfloat16"), torch.empty(1, device=lab.device)
    rows = lab.random(1, 64, dtype="bfloat16")
    learned = lab.random(1).requires_grad_()
    calls: tuple[tuple[str, str, Callable[[], object]], ...] = (
        ("Python", "a call of an empty function", lambda: None),
        ("C++", "x.dim(): into C++ and back", x.dim),
        ("dispatcher", "x.view(1): the dispatcher and a new tensor, no kernel", lambda: x.view(1)),
        ("allocator", "torch.empty_like(x): memory from the cache", lambda: torch.empty_like(x)),
        ("launch", "torch.add(x, x, out=y): and a kernel", lambda: torch.add(x, x, out=out)),
        ("new result", "x + x: and memory for its result", lambda: x + x),
        ("autograd", "x + x with requires_grad: and a node for the backward pass", lambda: learned + learned),
        ("library", "a matmul: and the library's choice of a kernel", lambda: rows @ weight),
    )
    found: list[tuple[LabValue, ...]] = []
    for name, meaning, call in calls:
        time = lab.loop(_repeated(call), f"{OPS} × {name}", with_gpu=False)
        found.append((name, time.step_ns / OPS, meaning))
    columns = (LabColumn("layer", "down to"), LabColumn("time_ns", "per call", "ns"), LabColumn("meaning", "call"))
    return LabTable("layers", "One op, layer by layer: time per call in a loop", columns, tuple(found))


def _ways(lab: Workbench) -> LabTable:
    """The same chain of small ops, eager, compiled and as a graph."""
    torch, x = lab.torch, lab.random(1024)

    def chain(value: Any) -> Any:
        for _ in range(OPS // 2):
            value = (value + 1.0) * 0.5
        return value

    def compiled() -> Step:
        torch.compiler.reset()
        function = torch.compile(chain)
        with lab.quiet():
            function(x)
        return lambda: function(x)

    ways: tuple[tuple[str, Callable[[], Step]], ...] = (
        ("eager", lambda: lambda: chain(x)),
        ("CUDA graph", lambda: as_graph(lab, lambda: chain(x))),
        ("compile", compiled),
    )
    rows: list[tuple[LabValue, ...]] = []
    for name, build in ways:
        step = lab.attempt(f"a chain of {OPS} ops, {name}", build)
        if step is None:
            continue
        time = lab.loop(step, name)
        rows.append((name, time.step_ns, time.step_ns / OPS, time.gpu_ns, time.submit_ns))
    columns = (
        LabColumn("way", "way"),
        LabColumn("time_ns", f"{OPS} ops", "ns"),
        LabColumn("per_op_ns", "per op", "ns"),
        LabColumn("gpu_ns", "GPU alone", "ns"),
        LabColumn("submit_ns", "CPU alone", "ns"),
    )
    return LabTable("ways", f"A chain of {OPS} ops on 1,024 elements", columns, tuple(rows))


def _curve(lab: Workbench, ways: LabTable) -> LabTable:
    """The measured time of one op beside the longer of dispatch and kernel."""
    submitted = next(row[4] for row in ways.rows if row[0] == "eager")
    dispatch = submitted / OPS if isinstance(submitted, int | float) else None
    rows: list[tuple[LabValue, ...]] = []
    for elements in SIZES if lab.has_gpu else SIZES[:2]:
        x = lab.random(elements)
        step = _repeated(partial(x.mul_, 1.0))
        time = lab.loop(step, f"{elements:,} elements")
        gpu_ns = time.gpu_ns / OPS if time.gpu_ns is not None else None
        budget = max(dispatch, gpu_ns) if dispatch is not None and gpu_ns is not None else None
        bound = "" if budget is None else "CPU" if budget == dispatch else "GPU"
        rows.append((elements, time.step_ns / OPS, gpu_ns, budget, bound))
    columns = (
        LabColumn("elements", "elements", "count"),
        LabColumn("time_ns", "measured per op", "ns"),
        LabColumn("gpu_ns", "GPU alone", "ns"),
        LabColumn("budget_ns", "longer of dispatch and GPU", "ns"),
        LabColumn("bound", "set by"),
    )
    return LabTable("curve", "x.mul_(1.0) by size: the measured points of the dispatch budget", columns, tuple(rows))


def _seen(layers: LabTable, ways: LabTable, curve: LabTable) -> str:
    per_call = {row[0]: float(row[1]) for row in layers.rows if isinstance(row[1], float)}
    per_op = {str(row[0]): float(row[2]) for row in ways.rows if isinstance(row[2], float)}
    sentences = [
        f"One small op costs the CPU {duration(per_call['new result'])}, a matmul {duration(per_call['library'])}."
    ]
    others = [f"{duration(time)} per op as {name}" for name, time in per_op.items() if name != "eager"]
    if others:
        sentences.append(f"In a chain the op costs {duration(per_op['eager'])} eager, {' and '.join(others)}.")
    large = [row for row in curve.rows if row[4] == "GPU"]
    if large:
        sentences.append(f"From about {large[0][0]:,} elements on the GPU sets the pace.")
    return " ".join(sentences)


WHY = (
    "Every op goes through Python, the dispatcher, the allocator and the driver before its kernel starts, and that "
    "costs the same whatever the kernel's size. A graph replays recorded launches and a compiler makes one kernel of "
    "many, so both pay it once."
)
EXPERIMENT = LabExperiment(
    "dispatch", "What does the CPU spend to launch one op, and when does that set the pace?", run
)
