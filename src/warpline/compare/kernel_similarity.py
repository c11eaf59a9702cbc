"""How alike two operations of a device are: the same kernel, a variant of it, or another kernel for the same job."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from warpline.compare.typical_step import Operation
from warpline.kernels import identify
from warpline.kernels.identity import MATRIX_CLASSES, KernelIdentity
from warpline.trace.arrays import Floats, Int64s

SAME, SAME_NAME, SAME_FUNCTION, SAME_JOB = 9.0, 8.0, 5.0, 3.0
"""Name and grid; name; function in another form (vector width, kind of host memory); another kernel for the same job.
The order matters, not the size: one better pair is worth more than one poorer, and less than two."""
ALONE = MATRIX_CLASSES | {"comm"}
"""Classes whose kernels do one job each. Others may be fused, so a kernel of the class need not replace one of it."""


LEVELS = (SAME, SAME_NAME, SAME_FUNCTION, SAME_JOB)


class KernelSimilarity(Struct, frozen=True):
    """How alike each of some operations is to each of others: by marks, because the table of all pairs can be large."""

    left: Int64s
    """A row for each level of similarity: the marks of the first operations."""
    right: Int64s
    """Those of the second; equal marks are alike, and negative ones are like nothing."""

    def row(self, operation: int) -> Floats:
        """The similarity of one of the first to each of the second; zero if they have nothing in common."""
        found = np.zeros(self.right.shape[1])
        for level, score in reversed(list(enumerate(LEVELS))):
            found[self.right[level] == self.left[level, operation]] = score
        return found

    def of(self, operation: int, other: int) -> float:
        """The similarity of one of the first to one of the second."""
        for level, score in enumerate(LEVELS):
            if self.left[level, operation] == self.right[level, other]:
                return score
        return 0.0

    def twins(self) -> dict[int, int]:
        """For each of the first that is also one of the second, which one."""
        places = {mark: place for place, mark in enumerate(self.right[0].tolist())}
        return {place: places[mark] for place, mark in enumerate(self.left[0].tolist()) if mark in places}

    def best(self) -> Floats:
        """The largest similarity of each of the first."""
        found = np.zeros(self.left.shape[1])
        for level, score in reversed(list(enumerate(LEVELS))):
            found[np.isin(self.left[level], self.right[level])] = score
        return found


def kernel_similarity(left: list[Operation], right: list[Operation]) -> KernelSimilarity:
    """The similarity of each of the first to each of the second."""
    codes: dict[object, int] = {}
    none = iter(range(-1, -len(LEVELS) * (len(left) + len(right)) - 1, -1))  # a mark that nothing else has

    def coded(operations: list[Operation]) -> Int64s:
        marks = [
            [
                next(none) if mark is None else codes.setdefault((level, mark), len(codes))
                for level, mark in enumerate(_marks(one))
            ]
            for one in operations
        ]
        return np.array(marks, np.int64).reshape(-1, len(LEVELS)).T.copy()

    return KernelSimilarity(coded(left), coded(right))


def _marks(one: Operation) -> tuple[object, object, object, object]:
    """What must be equal for each level of similarity, the highest first; None matches nothing."""
    exact, name = one.key, (one.kind, one.spelling)
    if one.kind != "kernel":
        return exact, name, (one.kind, one.name.partition("(")[0].strip()), None
    known = identify(one.name)
    return exact, name, _function(known), _job(known)


def work_kind(one: Operation) -> object:
    """What kind of work it is, whatever its precision and size: it changes less than kernels when a program changes."""
    known = identify(one.name)
    if one.kind != "kernel" or not known.known or known.kernel_class == "other":
        return one.kind, one.spelling
    if known.functor:
        return known.kernel_class, known.functor
    return (known.kernel_class,) if known.kernel_class in MATRIX_CLASSES else (known.kernel_class, one.spelling)


def _function(known: KernelIdentity) -> object:
    if not known.known or known.kernel_class == "other":
        return None
    if known.functor:
        return (known.kernel_class, known.library, known.functor, known.dtype)
    if known.kernel_class in MATRIX_CLASSES and known.library:
        return (known.kernel_class, known.library, known.op, known.direction, known.dtype)
    return None


def _job(known: KernelIdentity) -> object:
    return (known.kernel_class, known.direction) if known.kernel_class in ALONE else None
