"""Idle time of the device by cause, without a profiler.

Recording makes ops and calls longer, and leaves waits for data or for the device as they are. So the idle time that it
added lies where the host launches, or where it records while it loads; taken from all causes alike, a step whose GPU
waits for data would seem to wait for launches.
"""

from __future__ import annotations

from collections.abc import Mapping

LAUNCHING = ("dispatch", "launch_latency")


def bare_idle_ns(recorded_ns: Mapping[str, float], bare_ns: float, loading_share: float) -> dict[str, float]:
    """The recorded idle time per step by cause, brought to `bare_ns` in all.

    `loading_share` is the part of the recording cost that lies in time in which the host loads data.
    """
    left = {cause: 0.0 if cause == "profiler" else float(length) for cause, length in recorded_ns.items()}
    added = sum(left.values()) - bare_ns
    if added > 0:
        _take(left, ("input",), loading_share * added)
        _take(left, LAUNCHING, sum(left.values()) - bare_ns)
    # What is left beyond that, or missing, has no cause of its own.
    scale = bare_ns / max(sum(left.values()), 1.0)
    return {cause: scale * length for cause, length in left.items()}


def _take(left: dict[str, float], causes: tuple[str, ...], amount: float) -> None:
    """Takes so much from these causes together, in proportion to their lengths, and no more than they have."""
    have = sum(left[cause] for cause in causes)
    part = min(max(amount, 0.0) / have, 1.0) if have else 0.0
    for cause in causes:
        left[cause] *= 1 - part
