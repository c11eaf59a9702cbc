"""Numbers have three significant digits and the unit that a person would choose."""

from __future__ import annotations

import pytest

from warpline.units import count, duration, several, share, size, speedup


@pytest.mark.parametrize(
    ("value_ns", "text"),
    [
        (0, "0 ns"),
        (950, "950 ns"),
        (999.7, "1.00 µs"),
        (9_996, "10.0 µs"),
        (12_340, "12.3 µs"),
        (99_960, "100 µs"),
        (999_700, "1.00 ms"),
        (4_560_000, "4.56 ms"),
        (1_200_000_000, "1.20 s"),
        (3_600_000_000_000, "3,600 s"),
        (-12_340, "-12.3 µs"),
    ],
)
def test_times(value_ns: float, text: str) -> None:
    assert duration(value_ns) == text


def test_sizes_shares_gains_and_counts() -> None:
    assert size(16_400) == "16.4 kB"
    assert size(999_960_000) == "1.00 GB"
    assert share(1, 3) == "33.3 %"
    assert share(1, 0) == "–"
    assert [speedup(value) for value in (1.409, 9.999, 15.62, 1252.4)] == ["1.41×", "10.0×", "15.6×", "1,252×"]
    assert [count(value) for value in (1312, 0.5, 2.01, 150.4)] == ["1,312", "0.5", "2", "150"]
    assert [several(value, "step") for value in (1, 4, 0)] == ["1 step", "4 steps", "0 steps"]
    assert several(2, "fix", "fixes") == "2 fixes"
