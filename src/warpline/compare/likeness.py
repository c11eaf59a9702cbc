"""How alike two operations of a device are: the same kernel, a variant of it, or another kernel for the same job."""

from __future__ import annotations

import numpy as np

from warpline.compare.typical_step import Operation
from warpline.kernels import identify
from warpline.kernels.identity import MATRIX_CLASSES, KernelIdentity
from warpline.trace.columns import Floats

SAME, SAME_NAME, SAME_FUNCTION, SAME_JOB = 9.0, 8.0, 5.0, 3.0
"""Name and grid; name; function in another form (vector width, kind of host memory); another kernel for the same job.
The order matters, not the size: one better pair is worth more than one poorer, and less than two."""
ALONE = MATRIX_CLASSES | {"comm"}
"""Classes whose kernels do one job each. Others may be fused, so a kernel of the class need not replace one of it."""


def likeness(left: list[Operation], right: list[Operation]) -> Floats:
    """The likeness of each of the first to each of the second; zero if they have nothing in common."""
    if not left or not right:
        return np.zeros((len(left), len(right)))
    mine, others = [_marks(one) for one in left], [_marks(one) for one in right]
    table = np.zeros((len(left), len(right)))
    for level, (own, other) in enumerate(zip(zip(*mine, strict=True), zip(*others, strict=True), strict=True)):
        places: dict[object, list[int]] = {}
        for position, mark in enumerate(other):
            if mark is not None:
                places.setdefault(mark, []).append(position)
        for position, mark in enumerate(own):
            if mark in places:
                alike = table[position, places[mark]]
                table[position, places[mark]] = np.maximum(alike, (SAME, SAME_NAME, SAME_FUNCTION, SAME_JOB)[level])
    return table


def _marks(one: Operation) -> tuple[object, object, object, object]:
    """What must be equal for each level of likeness, the highest first; None matches nothing."""
    exact, name = (one.kind, one.name, one.grid), (one.kind, one.name)
    if one.kind != "kernel":
        return exact, name, (one.kind, one.name.partition("(")[0].strip()), None
    known = identify(one.name)
    return exact, name, _function(known), _job(known, one.op)


def _function(known: KernelIdentity) -> object:
    if not known.known or known.kernel_class == "other":
        return None
    if known.functor:
        return (known.kernel_class, known.library, known.functor, known.dtype)
    if known.kernel_class in MATRIX_CLASSES and known.library:
        return (known.kernel_class, known.library, known.op, known.direction, known.dtype)
    return None


def _job(known: KernelIdentity, op: str) -> object:
    return (known.kernel_class, known.direction) if known.kernel_class in ALONE else None
