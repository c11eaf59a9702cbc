"""Rows in stretches are the same rows."""

from __future__ import annotations

import numpy as np
import pytest

from warpline.stretches import LONG, stretches


@pytest.mark.parametrize(
    "parts",
    [
        [range(LONG)],
        [range(500, 900), range(100, 300)],
        [range(1000), range(2000, 2001), range(1001, 1400)],
        [range(400), range(400)],
    ],
)
def test_the_stretches_of_rows_are_these_rows_in_their_order(parts: list[range]) -> None:
    rows = np.concatenate([np.array(part, np.int64) for part in parts])
    found = stretches(rows)
    assert found is not None
    assert [row for part in found for row in range(part.start, part.stop)] == rows.tolist()
    assert len(found) == len(parts)


@pytest.mark.parametrize("rows", [[], [3, 1, 2], range(0, 2 * LONG, 2), range(LONG, 0, -1)])
def test_short_stretches_are_none(rows: list[int] | range) -> None:
    assert stretches(np.array(rows, np.int64)) is None
