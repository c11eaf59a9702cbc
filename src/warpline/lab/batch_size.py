"""Batch size: the same layer for 1 to 8,192 tokens. Up to a knee, more tokens are nearly free."""

from __future__ import annotations

from functools import partial
from itertools import takewhile

from warpline.lab.layer import make_layer, plain
from warpline.lab.model import LabColumn, LabExperiment, LabTable, LabValue, Observation
from warpline.lab.workbench import Workbench
from warpline.units import duration, several

TOKENS = (1, 4, 16, 64, 256, 1024, 4096, 8192)
FREE = 1.5
"""While a batch takes less than this many times the time of one token, its tokens are called nearly free."""


def run(lab: Workbench) -> Observation:
    """The layer at every batch size."""
    layer, rows = make_layer(lab), []
    first_ns = 0.0
    with lab.torch.no_grad():
        for tokens in TOKENS if lab.has_gpu else TOKENS[:5]:
            x = lab.random(tokens, layer.hidden, dtype="float16")
            time = lab.loop(partial(layer, x, plain), several(tokens, "token"))
            work_ns = time.gpu_ns or time.step_ns
            first_ns = first_ns or time.step_ns
            moved = layer.weight_bytes() + 2.0 * tokens * layer.hidden * x.element_size()
            row: tuple[LabValue, ...] = (
                tokens,
                time.step_ns,
                time.gpu_ns,
                time.step_ns / first_ns,
                round(tokens / time.step_ns * 1e9),
                round(layer.flops(tokens) / work_ns / 1e3, 2),
                moved / work_ns * 1e9,
            )
            rows.append(row)
    columns = (
        LabColumn("tokens", "tokens", "count"),
        LabColumn("time_ns", "step", "ns"),
        LabColumn("gpu_ns", "GPU alone", "ns"),
        LabColumn("times", "of one token", "gain"),
        LabColumn("tokens_per_second", "tokens/s", "count"),
        LabColumn("tflops", "TFLOP/s", "number"),
        LabColumn("rate", "weights and activations", "bytes_per_second"),
    )
    table = LabTable("sweep", f"The layer: hidden {layer.hidden}, FFN {layer.wide}", columns, tuple(rows))
    return Observation(_seen(table), WHY, (table,))


def _seen(table: LabTable) -> str:
    steps = {int(row[0]): float(row[1]) for row in table.rows if isinstance(row[0], int) and isinstance(row[1], float)}
    one, most = steps[1], max(steps)
    free = [tokens for tokens, _ in takewhile(lambda pair: pair[1] <= FREE * one, steps.items())][-1]
    ends = f"{most:,} tokens {duration(steps[most])}"
    if free == 1:
        return f"One token takes {duration(one)}, {ends}: each token costs, from the second on."
    return (
        f"One token takes {duration(one)}, {free:,} tokens {duration(steps[free])}, {ends}: "
        f"up to about {free:,} tokens, more of them are nearly free."
    )


WHY = (
    "A pass reads all weights however many tokens it has, so with few tokens memory (or the CPU that launches) sets "
    "the time. Each token adds arithmetic; when that takes longer than reading the weights, time grows with the tokens."
)
EXPERIMENT = LabExperiment("batch-size", "How many tokens can a pass take before it becomes slower?", run)
