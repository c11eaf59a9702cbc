"""How the time of an experiment grows with its shape, and why it does not grow as its work does."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from warpline.bench.result import Result
from warpline.units import size, speedup

AS_EXPECTED = 0.05
"""Within five percent, time grows as the work does."""


@dataclass(frozen=True, slots=True)
class Scaling:
    """One result compared with the one before it, of another shape and the same type."""

    first: str
    second: str
    work_ratio: float
    """FLOPs of the second over the first; bytes where nothing is computed."""
    time_ratio: float
    sentence: str

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


def scalings(results: tuple[Result, ...]) -> list[Scaling]:
    """Each result compared with the one before it of the same data type, where both have known work."""
    found = []
    for place, second in enumerate(results):
        alike = [first for first in results[:place] if _type(first) == _type(second) != ""]
        if alike:
            scaling = _scaling(alike[-1], second)
            found += [scaling] if scaling is not None else []
    return found


def _type(result: Result) -> str:
    return result.judgement.work.dtype if result.judgement is not None else ""


def _scaling(first: Result, second: Result) -> Scaling | None:
    if first.judgement is None or second.judgement is None or not first.median_ns:
        return None
    before, after = first.judgement.work, second.judgement.work
    what, small, large = ("FLOPs", before.flops, after.flops) if before.flops else ("bytes", before.bytes, after.bytes)
    if not small or not large or small == large:
        return None
    work_ratio, time_ratio = large / small, second.median_ns / first.median_ns
    sizes = (
        f"{second.name} has {speedup(work_ratio)} the {what} of {first.name} and takes {speedup(time_ratio)} the time"
    )
    return Scaling(
        first.name, second.name, work_ratio, time_ratio, f"{sizes}: {_why(first, second, work_ratio, time_ratio)}"
    )


def _why(first: Result, second: Result, work_ratio: float, time_ratio: float) -> str:
    """The reason that the two measurements show; what they do not show is not claimed."""
    if abs(time_ratio / work_ratio - 1) <= AS_EXPECTED:
        return "time grows as the work does"
    # Read from the smaller shape to the larger one, whichever came first.
    small, large = (first, second) if work_ratio > 1 else (second, first)
    slower_rate = (time_ratio > work_ratio) == (work_ratio > 1)
    one, other = small.judgement, large.judgement
    assert one is not None
    assert other is not None
    if not slower_rate:
        if small.host is not None and small.host.submit_ns > small.median_ns:
            return "the smaller one takes longer to submit than to run"
        if one.bound == "memory" and other.bound == "compute":
            return "the smaller one is bound by memory and the larger by arithmetic"
        shares = f"{one.roof_pct:.0f} % of the roof, the larger {other.roof_pct:.0f} %" if _known(one, other) else ""
        return f"the smaller one does not fill the device{f' ({shares})' if shares else ''}"
    fell = _clock_fell(small, large)
    if fell:
        return fell
    if one.bound == "compute" and other.bound == "memory":
        return "the larger one is bound by memory"
    return f"the larger one runs at a lower rate; its {size(other.work.bytes)} may no longer fit the cache"


def _known(one: Any, other: Any) -> bool:
    return one.roof_pct is not None and other.roof_pct is not None


def _clock_fell(small: Result, large: Result) -> str:
    before = small.clocks.min_sm_mhz if small.clocks is not None else None
    after = large.clocks.min_sm_mhz if large.clocks is not None else None
    if before is None or after is None or after >= 0.97 * before:
        return ""
    return f"the clock fell from {before:,} to {after:,} MHz in the larger one"
