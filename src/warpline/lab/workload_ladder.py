"""Workload ladder: from one matmul to a transformer block, one kind of op at a time, and which kernels appear."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from warpline.bench.result import Result
from warpline.bench.work import CallWork
from warpline.lab.layer import make_layer, plain
from warpline.lab.model import LabColumn, LabExperiment, LabRange, LabTable, LabValue, Observation
from warpline.lab.rungs import kernels_of, new_kernels
from warpline.lab.workbench import Step, Workbench
from warpline.units import duration

LAYERS = 5
PRECISIONS = (("tf32", "float32"), ("bf16", "bfloat16"))
COLUMNS = (
    LabColumn("workload", "workload"),
    LabColumn("time_ns", "time", "ns"),
    LabColumn("interval_ns", "95 % interval", "ns"),
    LabColumn("share", "of the block", "share"),
    LabColumn("tflops", "TFLOP/s", "number"),
    LabColumn("roof_share", "of roofline", "share"),
    LabColumn("kernels", "different kernels", "count"),
    LabColumn("new_kernels", "new kernels"),
)


@dataclass(frozen=True, slots=True)
class Block:
    """The tensors of all workloads: batch 16, sequence 512, hidden 4,096, FFN 16,384."""

    torch: Any
    x: Any
    squares: tuple[Any, ...]
    """Matrices from hidden to hidden."""
    expand: Any
    contract: Any

    @property
    def tokens(self) -> int:
        """Rows of the matmuls."""
        return int(self.x.shape[0] * self.x.shape[1])

    def matmul(self) -> Any:
        """One matmul."""
        return self.x @ self.squares[0]

    def layers(self) -> Any:
        """Five matmuls, each on the result of the last."""
        value = self.x
        for weight in self.squares:
            value = value @ weight
        return value

    def relu(self) -> Any:
        """The same with a ReLU behind each."""
        value = self.x
        for weight in self.squares:
            value = (value @ weight).relu()
        return value

    def residual(self) -> Any:
        """The same with a residual add."""
        value = self.x
        for weight in self.squares:
            value = value + (value @ weight).relu()
        return value

    def qkv(self) -> tuple[Any, Any, Any]:
        """The three projections of attention."""
        query, key, value = (self.x @ weight for weight in self.squares[:3])
        return query, key, value

    def scores(self) -> Any:
        """The projections, then every query with every key."""
        query, key, _ = self.qkv()
        return query @ key.transpose(-1, -2)

    def softmax(self) -> Any:
        """The same, scaled and normalised."""
        return (self.scores() * self.x.shape[-1] ** -0.5).softmax(-1)

    def block(self) -> Any:
        """Attention, its output projection, and the feed-forward part, with residuals."""
        query, key, value = self.qkv()
        weights = (query @ key.transpose(-1, -2) * self.x.shape[-1] ** -0.5).softmax(-1)
        middle = self.x + (weights @ value) @ self.squares[3]
        return middle + (middle @ self.expand).relu() @ self.contract

    def flops(self) -> dict[str, float]:
        """Of the matmuls of each workload."""
        batch, length, hidden = self.x.shape
        square = 2.0 * self.tokens * hidden**2
        attention = 2.0 * batch * length**2 * hidden
        feed_forward = 4.0 * self.tokens * hidden * self.expand.shape[1]
        five, three = LAYERS * square, 3 * square
        scores = three + attention
        return {
            "matmul": square,
            "layers": five,
            "relu": five,
            "residual": five,
            "qkv": three,
            "scores": scores,
            "softmax": scores,
            "block": scores + attention + square + feed_forward,
        }


WORKLOADS: tuple[tuple[str, str, Callable[[Block], Any]], ...] = (
    ("matmul", "one matmul", Block.matmul),
    ("layers", "five matmuls", Block.layers),
    ("relu", "+ ReLU", Block.relu),
    ("residual", "+ residual add", Block.residual),
    ("qkv", "QKV projections", Block.qkv),
    ("scores", "+ attention scores", Block.scores),
    ("softmax", "+ softmax", Block.softmax),
    ("block", "whole block", Block.block),
)


def make_block(lab: Workbench, dtype: str) -> Block:
    """The tensors, scaled so that values stay near one."""
    batch, length = lab.sized(16, 2), lab.sized(512, 64)
    hidden, wide = lab.sized(4096, 128), lab.sized(16384, 512)
    squares = tuple(lab.random(hidden, hidden, dtype=dtype, scale=hidden**-0.5) for _ in range(LAYERS))
    return Block(
        lab.torch,
        lab.random(batch, length, hidden, dtype=dtype),
        squares,
        lab.random(hidden, wide, dtype=dtype, scale=hidden**-0.5),
        lab.random(wide, hidden, dtype=dtype, scale=wide**-0.5),
    )


def run(lab: Workbench) -> Observation:
    """All workloads in TF32 and bf16, and the fp16 layer."""
    tables = []
    with lab.torch.no_grad():
        for precision, dtype in PRECISIONS if lab.has_gpu else (("fp32", "float32"),):
            lab.report(f"  {precision}")
            with lab.precision(precision):
                tables.append(_climbed(lab, precision, make_block(lab, dtype)))
        tables.append(_layer(lab))
    return Observation(_seen(tables), WHY, tuple(tables))


@dataclass(frozen=True, slots=True)
class WorkloadTime:
    """One workload as measured."""

    name: str
    result: Result
    kernels: tuple[str, ...]

    def row(self, whole_ns: float, before: Sequence[str]) -> tuple[LabValue, ...]:
        """As a row of the table, beside the whole block and the kernels of the workload before."""
        judgement, interval, time_ns = self.result.judgement, self.result.interval, self.result.median_ns
        return (
            self.name,
            time_ns,
            LabRange(interval.low_ns, time_ns, interval.high_ns) if interval else None,
            time_ns / whole_ns,
            round(judgement.flops_per_second / 1e12, 3) if judgement is not None else None,
            judgement.roof_pct / 100 if judgement is not None and judgement.roof_pct is not None else None,
            len(self.kernels) or None,
            new_kernels(self.kernels, before),
        )


def _measured(lab: Workbench, file: tuple[str, str], name: str, step: Step, work: CallWork) -> WorkloadTime:
    """Time a workload and record it; `file` is the ladder and the rung."""
    result = lab.time(step, name=name, flops=work.flops, dtype=work.dtype)
    return WorkloadTime(name, result, tuple(kernels_of(lab.record(*file, step))))


def _climbed(lab: Workbench, precision: str, block: Block) -> LabTable:
    flops = block.flops()
    found = [
        _measured(
            lab,
            (f"workload-{precision}", f"{number}-{key}"),
            name,
            partial(workload, block),
            CallWork(flops[key], 0.0, precision),
        )
        for number, (key, name, workload) in enumerate(WORKLOADS)
    ]
    whole_ns = found[-1].result.median_ns
    before: list[Sequence[str]] = [(), *(one.kernels for one in found)]
    batch, length, hidden = block.x.shape
    title = f"{precision}: batch {batch}, sequence {length}, hidden {hidden}, FFN {block.expand.shape[1]}"
    return LabTable(
        precision,
        title,
        COLUMNS,
        tuple(one.row(whole_ns, kernels) for one, kernels in zip(found, before, strict=False)),
    )


def _layer(lab: Workbench) -> LabTable:
    """The fp16 layer of another guide: sequence 2,048, FFN 11,008."""
    tokens = lab.sized(2048, 64)
    layer = make_layer(lab)
    x = lab.random(1, tokens, layer.hidden, dtype="float16")
    work = CallWork(layer.flops(tokens), 0.0, "fp16")
    found = _measured(lab, ("layer-fp16", "0-layer"), "layer", lambda: layer(x, plain), work)
    dtype = "fp16" if lab.has_gpu else "fp32"
    title = f"{dtype} layer without attention: {tokens} tokens, hidden {layer.hidden}, FFN {layer.wide}"
    return LabTable("fp16 layer", title, COLUMNS, (found.row(found.result.median_ns, ()),))


def _seen(tables: list[LabTable]) -> str:
    sentences = []
    for table in tables[:-1]:
        times = {str(row[0]): row[1] for row in table.rows if isinstance(row[1], float)}
        block, relu = times["whole block"], times["+ ReLU"] - times["five matmuls"]
        sentences.append(
            f"In {table.name} one matmul takes {duration(times['one matmul'])} and the block {duration(block)}; "
            f"five ReLUs add {duration(max(relu, 0.0))}."
        )
    return " ".join(sentences)


WHY = (
    "Nearly all of a block is matmuls: the feed-forward part has 8 of its 12.25 units of work. ReLU, add and softmax "
    "only read and write memory, and add little at this length. Another shape or a transposed operand gets another "
    "kernel."
)
EXPERIMENT = LabExperiment(
    "workload-ladder",
    "Which kernels does each part of a transformer block add, and what do they cost?",
    run,
)
