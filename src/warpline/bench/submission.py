"""How a call reaches the GPU: its host time, how long to block the stream, and which stream it uses."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from warpline.bench.result import Host, Note
from warpline.bench.stopwatch import MIN_HOLD_NS, Call, GpuStopwatch, HostTimes, Now
from warpline.bench.subject import Subject

HOST_CALLS, HOST_SECONDS = 21, 0.5
MAX_HOLD_NS = 5_000_000
OTHER_STREAM_FACTOR, OTHER_STREAM_NS = 1.5, 50_000
"""If the host waits this much longer than for submission and execution, the events do not cover all work."""
MIN_DETECTABLE_NS = 1_000
"""The smallest kernel adds over 2 µs to what two events read on an H200; two events alone vary by half of one."""


def host_view(stopwatch: GpuStopwatch, call: Call, now: Now) -> Host:
    """Medians of some calls on an idle device."""
    began = now()
    times: list[HostTimes] = []
    while len(times) < HOST_CALLS and (len(times) < 3 or now() - began < HOST_SECONDS * 1e9):
        times.append(stopwatch.host(call))
    submit_ns = statistics.median(each.submit_ns for each in times)
    wall_ns = statistics.median(each.wall_ns for each in times)
    return Host(submit_ns, wall_ns, stopwatch.waits(call, submit_ns))


def hold_needed_ns(stopwatch: GpuStopwatch, subjects: Sequence[Subject]) -> float:
    """How long to block the stream so that a call is submitted before the GPU reaches it; 0 if impossible."""
    hold_ns = 0.0
    for subject in subjects:
        assert subject.host is not None
        submit_ns = stopwatch.host(subject.call).submit_ns if subject.clock == "graph" else subject.host.submit_ns
        needed_ns = _needed_ns(submit_ns)
        if not stopwatch.can_hold or subject.host.waits:
            continue
        if needed_ns > MAX_HOLD_NS:
            message = "submission takes too long to block the stream meanwhile: the time may include launch gaps"
            subject.notes.append(Note("not-held", "info", message))
            continue
        hold_ns = max(hold_ns, needed_ns)
    return hold_ns


def _needed_ns(submit_ns: float) -> float:
    return 2 * submit_ns + MIN_HOLD_NS


def runs_elsewhere(subject: Subject, events: GpuStopwatch, overhead_ns: float, idle_ns: float) -> bool:
    """Whether the host waits much longer than the current stream: then the events do not cover all work.

    If they read nothing, the host must not wait longer than for an idle device.
    """
    host = subject.host
    assert host is not None
    events.hold_ns = min(_needed_ns(host.submit_ns), MAX_HOLD_NS) if events.can_hold else 0.0
    seen_ns = statistics.median(events.time([subject.calls] * 5))
    events.hold_ns = 0.0
    if seen_ns - overhead_ns < MIN_DETECTABLE_NS:
        return host.wall_ns - host.submit_ns > 2 * idle_ns
    return host.wall_ns > OTHER_STREAM_FACTOR * (host.submit_ns + seen_ns) + OTHER_STREAM_NS
