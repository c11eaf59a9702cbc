"""Readable numbers: nanoseconds, bytes and shares, with at most four significant digits."""

from __future__ import annotations

_TIME_STEPS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"))
_BYTE_STEPS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def _digits(value: float) -> str:
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def duration(value_ns: float) -> str:
    """Nanoseconds in a readable unit: 950 ns, 12.3 µs, 4.56 ms, 1.20 s."""
    for size, unit in _TIME_STEPS:
        if abs(value_ns) >= size:
            return f"{_digits(value_ns / size)} {unit}"
    return f"{value_ns:.0f} ns"


def size(value_bytes: float) -> str:
    """Bytes with decimal prefixes, as bandwidths are quoted."""
    for step, unit in _BYTE_STEPS:
        if abs(value_bytes) >= step:
            return f"{_digits(value_bytes / step)} {unit}"
    return f"{value_bytes:.0f} B"


def share(part: float, whole: float) -> str:
    """A part of a whole in percent; a dash if the whole is zero."""
    return f"{100 * part / whole:.1f} %" if whole else "–"
