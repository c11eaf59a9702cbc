"""ncu's units: scaled ones (Kbyte, usecond, sector/us) to base units, by their words."""

from __future__ import annotations

from functools import lru_cache

_PREFIXES = {"K": 1e3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
"""ncu counts in thousands: 49,152 bytes are 49.15 Kbyte."""
_SCALED = ("byte", "hz", "Hz", "inst", "sector", "cycle", "request", "flop", "op", "warp", "thread", "block", "sample")
_SECONDS = {
    **dict.fromkeys(("s", "second", "sec", "seconds"), 1.0),
    **dict.fromkeys(("ms", "msecond"), 1e-3),
    **dict.fromkeys(("us", "usecond", "µs"), 1e-6),
    **dict.fromkeys(("ns", "nsecond"), 1e-9),
    **dict.fromkeys(("ps", "psecond"), 1e-12),
}
_NS = 1e9


@lru_cache(maxsize=10_000)
def base_unit(unit: str) -> tuple[str, float]:
    """The base unit of a unit as printed, and the factor: ``("byte/s", 1e9)`` for ``Gbyte/second``."""
    words = unit.strip().split("/")
    if len(words) == 1 and words[0] in _SECONDS:
        return "ns", _SECONDS[words[0]] * _NS
    name, factor = _without_prefix(words[0])
    parts = [name]
    for word in words[1:]:
        if word in _SECONDS:
            parts.append("s")
            factor /= _SECONDS[word]
        else:
            below, scale = _without_prefix(word)
            parts.append(below)
            factor *= scale  # ncu scales the number, and puts the prefix on the only word that takes one
    joined = "/".join(parts)
    return ("hz" if joined in {"cycle/s", "Hz"} else joined), factor


def _without_prefix(word: str) -> tuple[str, float]:
    rest = word[1:]
    if word[:1] in _PREFIXES and rest in _SCALED:
        return rest, _PREFIXES[word[0]]
    return word, 1.0
