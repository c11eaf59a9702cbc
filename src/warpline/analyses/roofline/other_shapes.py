"""What if a dimension were another: the ops of a trace with other shapes, by work models and rooflines."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from warpline.analyses.device import trace_device
from warpline.analyses.roofline.entry import LATENCY_NS
from warpline.analyses.roofline.floors import floor_of_call, math_of
from warpline.analyses.roofline.pieces import GpuWork, Piece
from warpline.errors import CannotAnswer, UsageError
from warpline.hardware import Roof, roof_of
from warpline.trace.trace import Trace
from warpline.work import Work, call_from_kineto, work_of
from warpline.work.parse import recorded_sizes

SCHEMA = "warpline.scaled/1"
SEQUENCE = "seq"


class ScaledOp(Struct, frozen=True):
    """One op with its shapes, now and then."""

    name: str
    shapes: str
    new_shapes: str
    count: int
    time_ns: float
    low_ns: float
    """If only the minimum time grows."""
    expected_ns: float
    high_ns: float
    """If the share of the roofline stays the same."""
    flops: float
    new_flops: float
    bound: str
    """What bounds it at the new size; empty if it is not predicted."""


class OtherShapes(Struct, frozen=True):
    """The GPU time of a trace with another size of one dimension."""

    old: int
    new: int
    inferred: str
    """How the old size was found; empty if it was given."""
    device: str
    rows: tuple[ScaledOp, ...]
    """Longest at the new size first."""
    unscaled_ns: int
    """GPU time without a work model: kept as it is."""
    steps: int | None

    @property
    def time_ns(self) -> float:
        """GPU time now."""
        return sum(row.time_ns for row in self.rows) + self.unscaled_ns

    @property
    def low_ns(self) -> float:
        """GPU time then, at least."""
        return sum(row.low_ns for row in self.rows) + self.unscaled_ns

    @property
    def expected_ns(self) -> float:
        """GPU time then."""
        return sum(row.expected_ns for row in self.rows) + self.unscaled_ns

    @property
    def high_ns(self) -> float:
        """GPU time then, at most."""
        return sum(row.high_ns for row in self.rows) + self.unscaled_ns

    def to_dict(self) -> dict[str, Any]:
        """The JSON contract `warpline.scaled/1`."""
        return {
            "schema": SCHEMA,
            "old": self.old,
            "new": self.new,
            "inferred": self.inferred or None,
            "device": self.device,
            "steps": self.steps,
            "gpu_ns": round(self.time_ns),
            "new_gpu_ns": {"low": round(self.low_ns), "expected": round(self.expected_ns), "high": round(self.high_ns)},
            "unscaled_ns": self.unscaled_ns,
            "ops": [
                {
                    "name": row.name,
                    "shapes": row.shapes,
                    "new_shapes": row.new_shapes,
                    "count": row.count,
                    "time_ns": round(row.time_ns),
                    "new_time_ns": {
                        "low": round(row.low_ns),
                        "expected": round(row.expected_ns),
                        "high": round(row.high_ns),
                    },
                    "flops": round(row.flops),
                    "new_flops": round(row.new_flops),
                    "bound": row.bound or None,
                }
                for row in self.rows
            ],
        }


def other_shapes(trace: Trace, wanted: str, device: str | None = None) -> OtherShapes:
    """The GPU time if a dimension had another size: `seq=4096`, or `512:4096` where the old size is named."""
    gpu_work = GpuWork(trace)
    pieces = gpu_work.pieces
    known = [piece for piece in pieces if piece.work is not None and piece.shapes]
    if not known:
        raise CannotAnswer("no-shapes", "the trace has no shapes to scale", "record with record_shapes=True")
    old, new, inferred = _sizes(wanted, known)
    change = _Change(old, new, known)
    name, chip = trace_device(trace, device)
    roof = roof_of(chip) if chip else None
    if roof is None:
        raise CannotAnswer("unknown-device", f"no peaks are known for {name}", "name a chip with --device")
    groups: dict[tuple[str, str, str], list[Piece]] = {}
    for piece in known:
        groups.setdefault((piece.op, piece.shapes, piece.dtypes), []).append(piece)
    rows = [_row(group, change, gpu_work, roof) for group in groups.values()]
    return OtherShapes(
        old=old,
        new=new,
        inferred=inferred,
        device=chip.name if chip else name,
        rows=tuple(sorted(rows, key=lambda row: -row.expected_ns)),
        unscaled_ns=sum(piece.time_ns for piece in pieces if piece.work is None or not piece.shapes),
        steps=len(trace.steps_in_view) or None,
    )


def _sizes(wanted: str, pieces: list[Piece]) -> tuple[int, int, str]:
    name, equals, value = wanted.partition("=")
    first, colon, second = (value if equals else wanted).partition(":")
    numbers = [
        int(part) for part in ((first, second) if colon else (first,)) if part.isdigit() and 0 < int(part) < 1 << 30
    ]
    if len(numbers) != (2 if colon else 1) or (equals and name != SEQUENCE) or (not equals and not colon):
        raise UsageError("bad-scale", f"{wanted!r} is not a change of a dimension", "write seq=4096 or 512:4096")
    if colon:
        return numbers[0], numbers[1], ""
    old, how = sequence_of(pieces)
    return old, numbers[0], how


def sequence_of(pieces: list[Piece]) -> tuple[int, str]:
    """The sequence length that the shapes show, and how; an error where they show none or several."""
    for how, candidates in (
        ("the queries of attention", _attention_lengths),
        ("square softmax inputs", _square_lengths),
        ("the second of three dimensions of activations", _middle_lengths),
    ):
        weights: Counter[int] = Counter()
        for piece in pieces:
            for length in candidates(piece):
                weights[length] += piece.time_ns
        if len(weights) == 1:
            return next(iter(weights)), f"from {how}"
        if weights:
            listed = ", ".join(f"{length}:NEW" for length, _ in weights.most_common(4))
            raise CannotAnswer("several-lengths", f"{how} show several lengths", f"name one: --scale {listed}")
    raise CannotAnswer(
        "no-sequence", "the shapes do not show which dimension is the sequence", "name it: --scale OLD:NEW"
    )


def _attention_lengths(piece: Piece) -> Iterator[int]:
    shapes = recorded_sizes(piece.shapes)
    if "attention" in piece.op and shapes and len(shapes[0]) == 4:
        yield shapes[0][2] if "scaled_dot_product" in piece.op else shapes[0][1]


def _square_lengths(piece: Piece) -> Iterator[int]:
    shapes = recorded_sizes(piece.shapes)
    if "softmax" in piece.op and shapes and len(shapes[0]) >= 3 and shapes[0][-1] == shapes[0][-2]:
        yield shapes[0][-1]


def _middle_lengths(piece: Piece) -> Iterator[int]:
    if "norm" in piece.op:
        yield from (shape[1] for shape in recorded_sizes(piece.shapes)[:1] if len(shape) == 3)


class _Change:
    """The dimensions that change: the size itself, and rows that are a batch times the size."""

    def __init__(self, old: int, new: int, pieces: list[Piece]) -> None:
        shapes = [shape for piece in pieces for shape in recorded_sizes(piece.shapes)]
        if not any(old in shape for shape in shapes):
            raise CannotAnswer("no-dimension", f"no tensor has a dimension of {old}", "name another: --scale OLD:NEW")
        fixed = {shape[0] for shape in shapes if len(shape) == 1}
        batches = {shape[0] for shape in shapes if len(shape) == 3 and shape[1] == old}
        self.sizes = {old: new, **{batch * old: batch * new for batch in batches}}
        clash = sorted(fixed & self.sizes.keys())
        if clash:
            what = f"{clash[0]} is also the size of a weight, so its dimensions cannot be told apart"
            raise CannotAnswer("same-size", what, "record with a sequence of another length")

    def of(self, shapes: Any) -> Any:
        """A recorded list of shapes with the new sizes."""
        if isinstance(shapes, list):
            return [self.of(item) for item in shapes]
        return self.sizes.get(shapes, shapes) if type(shapes) is int else shapes


def _row(group: list[Piece], change: _Change, gpu_work: GpuWork, roof: Roof) -> ScaledOp:
    first = group[0]
    time_ns = float(sum(piece.time_ns for piece in group))
    new_shapes = json.dumps(change.of(json.loads(first.shapes)), separators=(", ", ": "))
    before = work_of(call_from_kineto(first.op, first.shapes, first.dtypes))
    after = work_of(call_from_kineto(first.op, new_shapes, first.dtypes))
    work = first.work
    assert work is not None
    if before is None or after is None or new_shapes == first.shapes:
        flops = float(len(group) * work.total_flops)
        return ScaledOp(
            first.op, first.shapes, first.shapes, len(group), time_ns, time_ns, time_ns, time_ns, flops, flops, ""
        )
    math = math_of(work, gpu_work.kernel_names(first))
    old_ns, new_ns = (floor_of_call(each, math, roof) for each in (before, after))
    if not old_ns or not new_ns:
        ratio = _ratio(before, after)
        times = (time_ns * min(1.0, ratio), time_ns * ratio, time_ns * ratio)
    else:
        # However little it has to do, a kernel takes the latency of one, if it took that long before.
        shortest = min(time_ns, len(group) * LATENCY_NS)
        added = max(shortest, time_ns + len(group) * (new_ns - old_ns))
        scaled = time_ns * new_ns / old_ns
        expected = added if new_ns < LATENCY_NS else scaled
        times = (min(added, scaled), expected, max(added, scaled))
    return ScaledOp(
        name=first.op,
        shapes=first.shapes,
        new_shapes=new_shapes,
        count=len(group),
        time_ns=time_ns,
        low_ns=times[0],
        expected_ns=times[1],
        high_ns=times[2],
        flops=float(len(group) * before.total_flops),
        new_flops=float(len(group) * after.total_flops),
        bound="latency" if new_ns and new_ns < LATENCY_NS else "roof",
    )


def _ratio(before: Work, after: Work) -> float:
    """Growth of the work where no ceiling is known."""
    pairs = [(before.total_flops, after.total_flops), (before.bytes, after.bytes)]
    return max((new / old for old, new in pairs if old), default=1.0)
