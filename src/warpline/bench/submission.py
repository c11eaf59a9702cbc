"""How a call reaches the GPU: what the host spends on it, how long to hold the stream, which stream it is on."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from warpline.bench.result import Host, Note
from warpline.bench.stopwatch import SHORTEST_HOLD_NS, Call, GpuStopwatch, HostTimes, Now
from warpline.bench.subject import Subject

HOST_CALLS, HOST_SECONDS = 21, 0.5
LONGEST_HOLD_NS = 5_000_000
ELSEWHERE_TIMES, ELSEWHERE_NS = 1.5, 50_000
"""Work that the host waits for by this factor and time longer than for submission and execution is not all seen."""
NOTHING_NS = 1_000
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
    """How long to hold the stream so that a call is submitted before the GPU reaches it; 0 where that cannot be."""
    hold_ns = 0.0
    for subject in subjects:
        assert subject.host is not None
        submit_ns = stopwatch.host(subject.call).submit_ns if subject.clock == "graph" else subject.host.submit_ns
        needed_ns = _needed_ns(submit_ns)
        if not stopwatch.can_hold or subject.host.waits:
            continue
        if needed_ns > LONGEST_HOLD_NS:
            message = "submitting it takes too long to hold the GPU meanwhile: its time may contain gaps for launches"
            subject.notes.append(Note("not-held", "info", message))
            continue
        hold_ns = max(hold_ns, needed_ns)
    return hold_ns


def _needed_ns(submit_ns: float) -> float:
    return 2 * submit_ns + SHORTEST_HOLD_NS


def runs_elsewhere(subject: Subject, events: GpuStopwatch, overhead_ns: float, idle_ns: float) -> bool:
    """Whether the host waits for far more than the current stream does: then the events do not see all of the work.

    Where they see nothing at all, the host must not wait for longer than it does for an idle device.
    """
    host = subject.host
    assert host is not None
    events.hold_ns = min(_needed_ns(host.submit_ns), LONGEST_HOLD_NS) if events.can_hold else 0.0
    seen_ns = statistics.median(events.time([subject.calls] * 5))
    events.hold_ns = 0.0
    if seen_ns - overhead_ns < NOTHING_NS:
        return host.wall_ns - host.submit_ns > 2 * idle_ns
    return host.wall_ns > ELSEWHERE_TIMES * (host.submit_ns + seen_ns) + ELSEWHERE_NS
