"""A value as text, in the one notation of all reports: 1.41×, 4.61 ms, 45.6 %, 1,312."""

from __future__ import annotations

from warpline.estimate import Estimate
from warpline.reports.sections import Unit, Value
from warpline.units import count, duration, share, size, speedup

MISSING = "–"


def shown(value: Value, unit: Unit) -> str:
    """The value with its unit; a dash if it is missing."""
    if value is None:
        return MISSING
    if isinstance(value, str):
        return value
    if isinstance(value, Estimate):
        return _range(value, unit)
    return _number(value, unit)


def _number(value: float, unit: Unit) -> str:
    match unit:
        case "ns":
            return duration(value)
        case "change_ns":
            return f"{'+' if value > 0 else ''}{duration(value)}".replace("-", "−")
        case "bytes":
            return size(value)
        case "bytes_per_second":
            return f"{size(value)}/s"
        case "share":
            return share(value, 1)
        case "gain":
            return speedup(value)
        case "count":
            return count(value)
        case _:
            return f"{value:,}"


def _range(value: Estimate, unit: Unit) -> str:
    low, high = _number(value.low, unit), _number(value.high, unit)
    if low == high:
        return low
    # Show the unit once if both ends share it.
    return f"{low.removesuffix('×')}–{high}" if unit == "gain" else f"{low} to {high}"
