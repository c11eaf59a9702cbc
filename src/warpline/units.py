"""Numbers for people, in one notation: 950 ns, 4.56 ms, 1.20 GB, 45.6 %, 1.41×, with three significant digits."""

from __future__ import annotations

_TIME_STEPS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"))
_BYTE_STEPS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
_FLOP_STEPS = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_ROUNDS_UP = 0.9995
"""From this part of a unit on, three digits round to the whole unit: 999.6 µs are 1.00 ms."""


def _digits(value: float) -> str:
    if abs(value) >= 99.95:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 9.995 else f"{value:.2f}"


def duration(value_ns: float) -> str:
    """Nanoseconds in a readable unit: 950 ns, 12.3 µs, 4.56 ms, 1.20 s."""
    for size, unit in _TIME_STEPS:
        if abs(value_ns) >= size * _ROUNDS_UP:
            return f"{_digits(value_ns / size)} {unit}"
    return f"{value_ns:.0f} ns"


def size(value_bytes: float) -> str:
    """Bytes with decimal prefixes, as bandwidths are quoted."""
    for step, unit in _BYTE_STEPS:
        if abs(value_bytes) >= step * _ROUNDS_UP:
            return f"{_digits(value_bytes / step)} {unit}"
    return f"{value_bytes:.0f} B"


def flop_rate(value: float) -> str:
    """FLOPs per second: 35.3 TFLOP/s, 0.729 TFLOP/s, 2,164 TFLOP/s."""
    tera = value / 1e12
    return f"{_digits(tera) if tera >= 1 else f'{tera:.3g}'} TFLOP/s"


def flops(value: float) -> str:
    """Floating-point operations: 950, 30.7 k, 12.4 T."""
    for step, unit in _FLOP_STEPS:
        if abs(value) >= step * _ROUNDS_UP:
            return f"{_digits(value / step)} {unit}"
    return f"{value:.0f}"


def share(part: float, whole: float) -> str:
    """A part of a whole in percent; a dash if the whole is zero."""
    return f"{100 * part / whole:.1f} %" if whole else "–"


def speedup(value: float) -> str:
    """Old time over new time: 1.41×, 12.3×, 1,252×."""
    return f"{_digits(value)}×"


def count(value: float) -> str:
    """How many: whole where it is whole, with one decimal where a step has only a part of one."""
    near = round(value)
    return f"{near:,}" if abs(value - near) < 0.05 or value >= 100 else f"{value:,.1f}"


def several(value: float, one: str, many: str | None = None) -> str:
    """The number with its noun: 1 step, 4 steps, 0.5 copies, and about 1 copy for 0.8."""
    number = count(value)
    if number == "1":
        return f"1 {one}"
    return f"about 1 {one}" if 0.75 <= value <= 1.25 else f"{number} {many or one + 's'}"


def capitalised(text: str) -> str:
    """With a capital first letter; the rest stays."""
    return text[:1].upper() + text[1:]


def uncapitalised(text: str) -> str:
    """With a small first letter; the rest stays."""
    return text[:1].lower() + text[1:]
