"""Costs of the CPU that recorded a trace.

Each cost comes from the trace itself where it shows enough samples, else from a calibration of the host, else from a
default that was measured on another host. A default is scaled by how fast this trace's kernel launches are against the
reference host's, and has a wider range.
"""

from __future__ import annotations

import math
from typing import Any

from msgspec import Struct
from msgspec.structs import fields

from warpline.analyses.device import trace_device
from warpline.capture.run_folder import COSTS, COSTS_SCHEMA, recorded_entry
from warpline.errors import WarplineError
from warpline.hardware.ceilings import measured_for
from warpline.replay.costs.cost import Cost
from warpline.replay.costs.own_costs import EventTimes, OwnCosts
from warpline.trace.trace import Trace

REFERENCE = "default: H200 host, torch 2.11"
UNKNOWN_HOST = 1.8
"""The CPU time of one program varied by 1.8 times between two hosts of the same kind (and between moments of one): a
default for a host of unknown speed is known no better."""
SCALED_HOST = 1.35
"""Half of that (in the logarithm) if launches in the trace show how fast the host is."""
REFERENCE_LAUNCH_NS = 5_000.0
"""A launch that follows another call closely, recorded by torch.profiler on the reference host: lower quartile of each
profile, median over 424 profiles. Nsight Systems shows about the same: 4.2 to 8.2 µs in ten profiles."""
FIXED_LAUNCH_NS = 1_700.0
"""Part of a recorded launch that the CPU's speed does not change: the driver writes to the device over the bus.
With it, a host whose launches take 1.3 times the reference's is 1.45 times slower: what recording costs an event grows
with the launch to the power 1.5 (52 dispatch-bound programs, recorded and timed on H200 hosts)."""
MIN_SLOWNESS = 0.4
"""No host is faster than this against the reference; shorter launches are another driver's."""
DISPATCH_IN_OPS = 4.0
"""An op may need the time of four usual ops before its launch: backward ops call others, and views come before them."""
OWN_WORK_IN_OPS, LONG_WORK_IN_OPS = 50.0, 200.0
"""No op dispatches this many others without a launch among them."""
LONG_KERNEL_IN_OPS = 2.0
"""A kernel that takes as long as two ops of the host hides the next launch; a shorter one is bound by launches."""
SMALL_CPU_OP_NS = 20_000
"""An op on the CPU with less time of its own mostly pays for being called: 2 to 5 µs, and as much for recording."""
SLOW_CORE_WORK_PER_NS = 1.0
"""FLOPs and bytes that a slow core does in a nanosecond on FP32 data in memory; usual ones do ten times as much."""

SAME_CHIP = 1.35
"""A stored calibration with the same GPU may be from another host: the range is wider by this factor."""
MIN_SPREAD = 1.1
"""Costs that were measured within a second vary by more than that over a program."""


class RecordingCosts(Struct, frozen=True):
    """CPU time of the profiler per recorded event."""

    op: Cost
    call: Cost
    """An API call, its GPU activity included."""
    frame: Cost
    memory: Cost
    graph_node: Cost
    """A node of a CUDA graph, in the call that launches the graph."""
    step: Cost
    """A call of the profiler's step()."""

    def at(self, level: int) -> EventTimes:
        """The low (0), expected (1) or high (2) cost of the frequent events."""
        costs = (self.op, self.call, self.frame, self.graph_node)
        return EventTimes(*(cost.at(level) for cost in costs))


class HostCosts(Struct, frozen=True):
    """Costs of the CPU of one host, in nanoseconds, without a profiler."""

    launch: Cost
    """A kernel launch call."""
    op: Cost
    """Dispatch of a framework op, without its launch."""
    call: Cost
    """An API call that neither launches nor waits nor copies nor allocates."""
    frame: Cost
    """A call of a small Python function."""
    region: Cost
    """A call of a compiled region: guards and wrapper, without its launches."""
    compiled_launch: Cost
    """A kernel of a compiled region: its launcher and its launch."""
    graph_launch: Cost
    """A launch of a CUDA graph."""
    graph_node: Cost
    """The same, for each node of the graph."""
    copy_call: Cost
    """A call that starts an asynchronous copy."""
    host_byte: Cost
    """A byte copied by one thread within host memory."""
    list_tensor: Cost
    """A tensor in the list that a torch._foreach_ function takes."""
    fused_step: Cost
    """A step of a fused optimizer, without its parameters."""
    fused_parameter: Cost
    """The same, for each parameter."""
    worker_tensor: Cost
    """A tensor received from a DataLoader worker; the low cost is that of a tensor pinned by the pinning thread."""
    recording: RecordingCosts
    slowness: float = 1.0
    """How many times slower launches are in this trace than on the reference host; 1 if that is not known."""

    @property
    def excess(self) -> float:
        """The same if it is more than launches can tell, else 1. Then the CPU is slow, or something else kept it busy
        at that moment: the trace cannot tell which."""
        return self.slowness if self.slowness >= SCALED_HOST else 1.0

    @property
    def launched_op(self) -> Cost:
        """A framework op with one launch."""
        return self.op.plus(self.launch)

    @property
    def longest_dispatch(self) -> Cost:
        """Maximum dispatch time between two calls: more is the program's own work, or a cold start."""
        return self.launched_op.times(DISPATCH_IN_OPS)

    @property
    def own_work(self) -> Cost:
        """CPU time between two calls that is the program's own work, or a library's, rather than dispatch."""
        return self.launched_op.times(OWN_WORK_IN_OPS)

    @property
    def long_work(self) -> Cost:
        """CPU time between two calls that is too long for any dispatch."""
        return self.launched_op.times(LONG_WORK_IN_OPS)

    @property
    def long_kernel(self) -> Cost:
        """Time of a kernel from which on the device, and not its launch, is the limit."""
        return self.launched_op.times(LONG_KERNEL_IN_OPS)


DEFAULT_KINETO = RecordingCosts(
    op=Cost(1_500, 2_500, 3_500, REFERENCE),
    call=Cost(3_000, 5_000, 7_000, REFERENCE),
    frame=Cost(300, 600, 1_000, REFERENCE),
    memory=Cost(100, 200, 400, REFERENCE),
    graph_node=Cost(500, 1_000, 1_500, REFERENCE),
    step=Cost(50_000, 100_000, 150_000, REFERENCE),
)
"""Bare and recorded steps of 40 programs differ by 2 to 4 µs for each event; launches of graphs of 20 to 800 nodes by
0.6 to 1.5 µs for each node. Near that, round values were chosen on
the 215 recorded faults (`docs/replay.md`). A calibration bounds those of ops, calls and frames
from below."""
DEFAULT_NSYS = RecordingCosts(
    op=Cost(100, 400, 1_000, "guess: nsys 2025.3 records less for an event"),
    call=Cost(1_500, 5_000, 10_000, "nsys 2025.3 on an H200, 2026-11-16: 7.9 µs a call in one program on a slow host"),
    frame=Cost(100, 400, 1_000, "guess: nsys 2025.3 records less for an event"),
    memory=Cost(0, 0, 0, "nsys records no such event on the CPU"),
    graph_node=Cost(500, 1_400, 1_700, "nsys 2025.3 on an H200, 2026-11-18: 264 to 314 µs for 186 nodes, bare 3 to 5"),
    step=Cost(0, 0, 0, "nsys has no step()"),
)
DEFAULT = HostCosts(
    launch=Cost(1_500, 2_500, 5_800, REFERENCE),
    op=Cost(4_500, 6_500, 10_000, REFERENCE),
    call=Cost(500, 1_000, 3_000, REFERENCE),
    frame=Cost(50, 150, 500, "guess: a call of a small Python function"),
    region=Cost(20_000, 45_000, 90_000, REFERENCE),
    compiled_launch=Cost(5_000, 8_000, 13_000, REFERENCE),
    graph_launch=Cost(3_500, 4_600, 12_000, REFERENCE),
    graph_node=Cost(5, 30, 110, REFERENCE),
    copy_call=Cost(3_000, 5_000, 8_000, REFERENCE),
    host_byte=Cost(1 / 20, 1 / 12, 1 / 6, "guess: 6 to 20 GB/s"),
    list_tensor=Cost(100, 180, 400, REFERENCE),
    fused_step=Cost(35_000, 42_000, 130_000, REFERENCE),
    fused_parameter=Cost(2_000, 2_500, 4_000, REFERENCE),
    worker_tensor=Cost(50_000, 650_000, 1_100_000, REFERENCE),
    recording=DEFAULT_KINETO,
)
"""By `warpline device measure` and benchmarks/replay_constants.py. A small op takes 8.9 to 10.4 µs with its launch, of
which an empty kernel's launch through a bare binding is 5.8 at most; a graph of 200 nodes takes 4.6 µs to launch,
and 1,000 nodes 40 to 110; a compiled function takes 21 µs with one kernel, 30 with three. A compiled module with one
kernel takes 59 to 80 µs without gradients, 78 to 96 with them and 109 to 143 in backward(), on a host 1.4 times
slower than the reference (2026-11-19), of which the kernel is 11. A copy that does not wait takes 8 to 9 µs with its
op. Lists of 64 and 128 tensors take 35 and 38 µs. A fused AdamW takes 57 to 69 µs for 7 parameters, 163 for 48, 541
for 200. A loop takes a tensor from a worker through a socket, in 0.48 to 1.10 ms; 30 to 60 µs if a thread has taken
it before."""


def host_costs(trace: Trace) -> HostCosts:
    """Costs of the host that recorded this trace."""
    calibration = find_calibration(trace)
    recorded = OwnCosts(trace)
    slowness = _slowness(recorded.launch_ns, calibration)
    recording = _recording(trace, slowness, calibration)
    chosen = {}
    for name in (field.name for field in fields(HostCosts) if field.name not in ("recording", "slowness")):
        measured = calibration.cost(name) if calibration else None
        chosen[name] = recorded.cost(name, recording) or measured or _default(getattr(DEFAULT, name), slowness)
    return HostCosts(**chosen, recording=recording, slowness=slowness or 1.0)


def _slowness(launch_ns: float | None, calibration: Calibration | None) -> float | None:
    """How many times slower the host is than the reference; None if unknown."""
    if launch_ns is not None:
        return max((launch_ns - FIXED_LAUNCH_NS) / (REFERENCE_LAUNCH_NS - FIXED_LAUNCH_NS), MIN_SLOWNESS)
    op, launch = (calibration.cost(name) if calibration else None for name in ("op", "launch"))
    return op.plus(launch).expected / DEFAULT.launched_op.expected if op and launch else None


def _recording(trace: Trace, slowness: float | None, calibration: Calibration | None) -> RecordingCosts:
    """Recording costs, by default and not below what the calibration's loops show.

    A loop of one op finds its code and buffers in the caches: five calibrations on an H200 host (2026-11-16) gave
    1.5 to 2.8 µs an op, and 0.4 to 2.0 µs a call; recording a training step of 160 launches cost three times as much.
    """
    is_nsys, chosen = trace.source == "nsys", {}
    for field in fields(RecordingCosts):
        measured = calibration.cost(f"recording_{field.name}") if calibration and not is_nsys else None
        default = _default(getattr(DEFAULT_NSYS if is_nsys else DEFAULT_KINETO, field.name), slowness)
        chosen[field.name] = default.at_least(measured) if measured else default
    return RecordingCosts(**chosen)


def _default(cost: Cost, slowness: float | None) -> Cost:
    if slowness is None:
        return cost.widened(UNKNOWN_HOST).from_(f"{cost.source}; the speed of this host is not known")
    source = f"{cost.source}, × {slowness:.2f} for the speed of this trace's launches"
    return cost.times(slowness).widened(SCALED_HOST).from_(source)


class Calibration(Struct, frozen=True):
    """What ops, launches and their recording cost on a host, measured by loops of tiny ops: costs by name.

    `warpline run` stores a short one with each capture, in its manifest; `warpline device measure` stores one with the
    ceilings of the GPU.
    """

    costs: dict[str, Cost]

    def cost(self, name: str) -> Cost | None:
        """A cost by its name in `HostCosts`, or `recording_` and its name in `RecordingCosts`; None if not measured."""
        return self.costs.get(name)


def find_calibration(trace: Trace) -> Calibration | None:
    """The calibration stored with this capture, else one of a host with the same GPU."""
    return _of_run(trace) or _of_device(trace)


def read_calibration(document: Any, source: str, widening: float = 1.0) -> Calibration | None:
    """A calibration from its document; None if it is damaged or of another kind."""
    try:
        if document["schema"] != COSTS_SCHEMA:
            return None
        entries = document["costs_ns"].items()
        costs = {name: _cost(entry, source).widened(widening) for name, entry in entries if name in COSTS}
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    return Calibration(costs) if costs else None


def _cost(entry: dict[str, Any], source: str) -> Cost:
    low, middle, high = (float(entry[key]) for key in ("low", "expected", "high"))
    if not all(map(math.isfinite, (low, middle, high))) or middle <= 0:
        raise ValueError("a measured cost is a positive number")
    return Cost(min(low, middle / MIN_SPREAD), middle, max(high, middle * MIN_SPREAD), source)


def _of_run(trace: Trace) -> Calibration | None:
    stored = recorded_entry(trace.file).get("host_costs")
    return read_calibration(stored, "calibration of this host, stored with the capture")


def _of_device(trace: Trace) -> Calibration | None:
    try:
        _, chip = trace_device(trace)
        ceilings = measured_for(chip) if chip else None
    except WarplineError:
        return None
    if ceilings is None or ceilings.host is None:
        return None
    source = f"calibration of a host with this GPU ({ceilings.date})"
    return read_calibration(ceilings.host, source, SAME_CHIP)
