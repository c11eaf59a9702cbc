"""Synchronisation: which calls make the CPU wait for the GPU, and what the wait costs a step."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import partial
from typing import Any

from warpline.lab.model import LabColumn, LabExperiment, LabTable, LabValue, Observation
from warpline.lab.workbench import Workbench
from warpline.units import duration, speedup

LAYERS = 24
TOKENS, SIZE = 1024, 2048
"""Of a layer that takes the GPU about as long as the CPU needs to launch it: there, a wait costs most."""


def run(lab: Workbench) -> Observation:
    """One step of small layers, with each call in it."""
    torch = lab.torch
    weight = lab.random(SIZE, SIZE, dtype="bfloat16", scale=SIZE**-0.5)
    x = lab.random(TOKENS, SIZE, dtype="bfloat16")

    def step(call: Callable[[Any], object] | None) -> None:
        value = x
        for _ in range(LAYERS):
            value = torch.relu(value @ weight)
            if call is not None:
                call(value)

    with torch.no_grad():
        base = lab.loop(lambda: step(None), "nothing", with_gpu=False)
        rows: list[tuple[LabValue, ...]] = [("nothing", base.step_ns, 1.0, 0.0, "", "")]
        for name, call, why in _calls(torch, lab):
            with_call = partial(step, call)
            time = lab.attempt(name, partial(lab.loop, with_call, name, with_gpu=False))
            if time is None:
                continue
            host = lab.time(with_call, name=name).host
            waits = "" if host is None else "yes" if host.waits else "no"
            extra = (time.step_ns - base.step_ns) / LAYERS
            rows.append((name, time.step_ns, time.step_ns / base.step_ns, extra, waits, why))
    columns = (
        LabColumn("call", "call"),
        LabColumn("time_ns", "step", "ns"),
        LabColumn("times", "as long", "gain"),
        LabColumn("extra_ns", "extra per call", "ns"),
        LabColumn("waits", "waits"),
        LabColumn("why", "why"),
    )
    title = f"A step of {LAYERS} layers, with the call behind each of them"
    table = LabTable("calls", title, columns, tuple(rows))
    return Observation(_seen(table), WHY, (table,))


def _calls(torch: Any, lab: Workbench) -> tuple[tuple[str, Callable[[Any], object], str], ...]:
    target = torch.empty(1, pin_memory=True)
    return (
        ("x.shape", lambda x: x.shape, "shapes are known on the CPU"),
        ("torch.empty_like(x)", torch.empty_like, "memory comes from the cache of the allocator"),
        ("x.sum()", lambda x: x.sum(), "one more kernel in the queue, whose result stays on the GPU"),
        (
            "copy to pinned memory, non_blocking",
            lambda x: target.copy_(x.view(-1)[:1], non_blocking=True),
            "the copy is queued like a kernel",
        ),
        ("x[0, 0].item()", lambda x: x[0, 0].item(), "the value is needed on the CPU now"),
        ("float(x.sum())", lambda x: float(x.sum()), "the value is needed on the CPU now"),
        ("if x.any()", lambda x: bool(x.any()), "the branch depends on the value"),
        ("str(x[0, 0])", lambda x: str(x[0, 0]), "printing needs the value"),
        ("x.cpu()", lambda x: x.cpu(), "the data moves to pageable memory of the host"),
        ("x.nonzero()", lambda x: x.nonzero(), "the size of the result depends on the values"),
        ("x[0].tolist()", lambda x: x[0].tolist(), "the values are needed on the CPU"),
        ("torch.save(x[0])", lambda x: torch.save(x[0].clone(), io.BytesIO()), "the data moves to the host"),
        ("synchronize()", lambda x: lab.synchronise(), "it waits for everything in the queue"),
    )


def _seen(table: LabTable) -> str:
    slow = {str(row[0]): float(row[1]) for row in table.rows if isinstance(row[1], float)}
    item = slow.get("x[0, 0].item()", slow["nothing"])
    waiting = sum(row[4] == "yes" for row in table.rows)
    return (
        f"{LAYERS} calls of .item() make a step of {duration(slow['nothing'])} one of {duration(item)}, "
        f"{speedup(item / slow['nothing'])} as long. {waiting} of {len(table.rows) - 1} calls wait for the GPU."
    )


WHY = (
    "The CPU queues kernels faster than the GPU runs them, so the GPU always has the next one at hand. A call that "
    "needs a value waits until the queue is empty; then the GPU is idle until the CPU has launched again."
)
EXPERIMENT = LabExperiment(
    "synchronisation",
    "Which calls wait for the GPU, and what does a wait cost?",
    run,
    on_cpu="a call on the CPU returns when it has run, so that nothing waits",
)
