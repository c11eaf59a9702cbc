"""Whether a variant computes what the program computes: its first results against the baseline's.

Equal seeds make some programs repeat their results to the last bit, so that every reordering would be "different". The
first run therefore is a rounding twin: each weight is moved by one rounding error. How far its results move is what
rounding alone does in this program, and a variant may move a few times as far.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from msgspec import Struct

from warpline.capture.trial.results import FIRST_INPUT

TWIN_FACTOR = 8
"""One twin is one sample of rounding: results may move by so many times as much."""
SMALLEST = 1e-6
"""Relative differences that always count as rounding: about that of FP32."""
REPEATS = 0.1
"""A baseline whose own results differ by more does not repeat them."""
SAME_INPUT = 1e-5
PRECISION_STEPS = {"bfloat16": 2.0**-8, "TF32": 2.0**-11}
"""Relative rounding error of one number."""
EXPECTED_FACTOR = 16
"""Rounding of many numbers: the first result may differ by so many errors of one."""

Samples = Mapping[str, Sequence[Sequence[float]]]
"""By name, the first results, each as some of its numbers."""


class Sameness(Struct, frozen=True):
    """How the results of a variant compare with the baseline's."""

    same: bool | None
    """None if that is not known."""
    sentence: str
    largest_difference: float | None = None


def compare_results(
    key: str, baselines: Sequence[Samples], twin: Samples, variant: Samples | None, precision: str, random_differs: bool
) -> Sameness:
    """Compare results of this name. `random_differs`: whether random ops gave other numbers."""
    if variant is None or not variant.get(key) or not baselines or not baselines[0].get(key):
        return Sameness(None, "cannot tell: no results were recorded")
    reference = baselines[0]
    found = differences(reference[key], variant[key])
    largest = max(found)
    own = [
        max(some)
        for some in zip(
            *(differences(reference[key], other[key]) for other in (twin, *baselines[1:]) if other.get(key)),
            strict=False,
        )
    ]
    if max(differences(reference.get(FIRST_INPUT, ())[:1], variant.get(FIRST_INPUT, ())[:1]), default=0.0) > SAME_INPUT:
        return Sameness(None, "cannot tell: the first batch is another one, drawn at random elsewhere", largest)
    if largest <= SMALLEST:
        return Sameness(True, f"same (largest relative difference {largest:.1e})", largest)
    if max(own, default=1.0) > REPEATS:
        return Sameness(None, "cannot tell: rounding alone, or another run, changes the results as much", largest)
    allowed = [max(TWIN_FACTOR * max(own[: place + 1]), SMALLEST) for place in range(len(own))]
    if all(one <= limit for one, limit in zip(found, allowed, strict=False)):
        return Sameness(True, f"same (largest relative difference {largest:.1e})", largest)
    if random_differs:
        return Sameness(None, "cannot tell: its random ops give other numbers", largest)
    expected = precision and found[0] <= EXPECTED_FACTOR * PRECISION_STEPS[precision]
    said = f"different, as expected of {precision}" if expected else "different"
    return Sameness(
        False, f"{said} (largest relative difference {largest:.1e}, by rounding alone {max(own):.1e})", largest
    )


def differences(some: Sequence[Sequence[float]], others: Sequence[Sequence[float]]) -> list[float]:
    """The relative difference of each pair of results; 1 where their shapes differ or one is not a number."""
    return [_difference(one, other) for one, other in zip(some, others, strict=False)]


def _difference(one: Sequence[float], other: Sequence[float]) -> float:
    if len(one) != len(other):
        return 1.0
    if one == other:
        return 0.0
    apart = math.dist(one, other) / max(math.hypot(*one), 1e-30)
    return min(apart, 1.0) if math.isfinite(apart) else 1.0
