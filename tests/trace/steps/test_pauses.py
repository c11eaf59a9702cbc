"""Pauses between steps among those between layers."""

from __future__ import annotations

import numpy as np
import pytest

from warpline.trace.steps.repetition import Regular, regular_pauses


@pytest.mark.parametrize("repeats", [100, 2_000])
def test_pauses_before_every_seventh_repeat_are_found_however_many_there_are(repeats: int) -> None:
    pauses = np.random.default_rng(0).exponential(20_000, (repeats, 3)).astype(np.int64)
    assert regular_pauses(pauses) is None
    pauses[::7, 1] += 60_000
    assert regular_pauses(pauses) == Regular(first=0, every=7, place=1)
