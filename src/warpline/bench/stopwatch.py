"""Two stopwatches: CUDA events on the current stream for the GPU, and the process's clock for the CPU.

The GPU stopwatch reads the time between two events around each call. Before each call it optionally flushes the L2, and
blocks the stream with a spinning kernel while the host submits the call: otherwise the gap between the first event and
the launch would count as kernel time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from warpline.errors import CannotAnswer

Call = Callable[[], object]
Now = Callable[[], int]
SPIN_HZ = 2_000_000_000
"""Assumed clock of the spinning kernel: no chip is much faster, and on a slower one the kernel only spins longer."""
FLUSH_L2_MULTIPLE = 2
"""The buffer that flushes the L2 has this multiple of its size, so that every line is replaced under any policy."""
DEFAULT_L2_BYTES = 64 << 20
MIN_HOLD_NS = 20_000
MAX_PROBE_NS = 100_000_000
CLOCK_READS_PER_SAMPLE = 200
"""A CPU sample is so long that reading the clock, about 50 ns, takes half a percent of it."""


MAX_TICK_READS = 1_000_000
"""A tenth of a second: a usable clock ticks at least this often."""


class CallStopwatch(Protocol):
    """Times calls one by one."""

    def time(self, calls: Sequence[Call], meanwhile: Call | None = None) -> list[float]:
        """Nanoseconds of each call; `meanwhile` runs on the host during execution."""


@dataclass(frozen=True, slots=True)
class HostTimes:
    """The same call as the host sees it, from an idle device: until it returns, and until its work is done."""

    submit_ns: float
    wall_ns: float


class GpuStopwatch:
    """Reads CUDA events."""

    def __init__(self, torch: Any, *, flush: bool, now: Now = time.perf_counter_ns) -> None:
        self._torch = torch
        self._now = now
        self.hold_ns = 0.0
        self.l2_bytes = l2_bytes(torch)
        buffer_bytes = FLUSH_L2_MULTIPLE * self.l2_bytes
        self._buffer = torch.empty(buffer_bytes, dtype=torch.uint8, device="cuda") if flush else None
        self._events: list[tuple[Any, Any]] = []

    def time(self, calls: Sequence[Call], meanwhile: Call | None = None) -> list[float]:
        """GPU time of each call: all are enqueued, then synchronised once."""
        cuda = self._torch.cuda
        while len(self._events) < len(calls):
            self._events.append((cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)))
        pairs = self._events[: len(calls)]
        for call, (start, end) in zip(calls, pairs, strict=True):
            self._prepare()
            start.record()
            call()
            end.record()
        if meanwhile is not None:
            meanwhile()
        cuda.synchronize()
        return [start.elapsed_time(end) * 1e6 for start, end in pairs]

    def host(self, call: Call) -> HostTimes:
        """One call on an idle device, timed on the host."""
        if self._buffer is not None:
            self._buffer.zero_()
        self._torch.cuda.synchronize()
        began = self._now()
        call()
        returned = self._now()
        self._torch.cuda.synchronize()
        return HostTimes(returned - began, self._now() - began)

    def waits(self, call: Call, submit_ns: float) -> bool:
        """Whether the call itself synchronises with the GPU: then it does not return while the stream is blocked."""
        if not self.can_hold or submit_ns > MAX_PROBE_NS:
            return False
        hold_ns = 2 * submit_ns + 1e6
        self._torch.cuda.synchronize()
        self._torch.cuda._sleep(int(hold_ns * SPIN_HZ / 1e9))
        began = self._now()
        call()
        call_ns = self._now() - began
        self._torch.cuda.synchronize()
        return call_ns - submit_ns > hold_ns / 2

    @property
    def can_hold(self) -> bool:
        """Whether this torch has the spinning kernel."""
        return hasattr(self._torch.cuda, "_sleep")

    def _prepare(self) -> None:
        if self._buffer is not None:
            self._buffer.zero_()
        if self.hold_ns:
            self._torch.cuda._sleep(int(self.hold_ns * SPIN_HZ / 1e9))


class WallStopwatch:
    """Reads the host's clock, from an idle device until it is idle again: for work on several streams."""

    def __init__(self, gpu: GpuStopwatch) -> None:
        self._gpu = gpu

    def time(self, calls: Sequence[Call], meanwhile: Call | None = None) -> list[float]:
        """Wall time of each call, including all its GPU work."""
        samples = [self._gpu.host(call).wall_ns for call in calls]
        if meanwhile is not None:
            meanwhile()
        return samples


class CpuStopwatch:
    """Reads the process's clock around each call."""

    def __init__(self, now: Now = time.perf_counter_ns) -> None:
        self._now = now

    def time(self, calls: Sequence[Call], meanwhile: Call | None = None) -> list[float]:
        """Wall time of each call."""
        samples = []
        for call in calls:
            began = self._now()
            call()
            samples.append(float(self._now() - began))
        if min(samples) < 0:
            raise CannotAnswer("bad-clock", "the clock went backwards during the measurement", "measure again")
        if meanwhile is not None:
            meanwhile()
        return samples

    def resolution_ns(self) -> float:
        """The median time between two readings with nothing between them; a whole tick of a coarse clock."""
        readings = sorted(self.time([_nothing] * 101))
        return readings[50] or self._tick_ns()

    def _tick_ns(self) -> float:
        began = self._now()
        for _ in range(MAX_TICK_READS):
            passed = self._now() - began
            if passed > 0:
                return float(passed)
        return 0.0


class Repeated:
    """Several calls as one."""

    def __init__(self, call: Call, times: int) -> None:
        self._call = call
        self._times = times

    def __call__(self) -> None:
        """Run all calls."""
        call = self._call
        for _ in range(self._times):
            call()


def event_overhead_ns(watch: GpuStopwatch) -> float:
    """The median reading of two events with nothing between them, without waiting for the host."""
    before, watch.hold_ns = watch.hold_ns, MIN_HOLD_NS if watch.can_hold else 0.0
    watch.time([_nothing] * 5)
    readings = sorted(watch.time([_nothing] * 21))
    watch.hold_ns = before
    return readings[10]


def overhead_ns(watch: CallStopwatch) -> float:
    """The median reading of a stopwatch with nothing to time."""
    return sorted(watch.time([_nothing] * 21))[10]


def l2_bytes(torch: Any) -> int:
    """The size of the device's L2; if torch does not report it, a guess that is at least as large as most."""
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    return int(getattr(properties, "L2_cache_size", 0) or DEFAULT_L2_BYTES)


def _nothing() -> None:
    pass
