"""Simulated jobs of many ranks, whose straggler, reason and price are known.

Every rank runs its own list of operations on a CPU thread, a compute stream and communication streams. A collective
starts on a rank when that rank arrives, and ends on all members a little after the last arrival plus its transfer. The
same seed without the fault gives the true step without the straggler. Times are microseconds here, as in the files.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

LATENCY = 4.0
WARM_UP = 2
"""Steps before the recording, so that it starts in the middle of a run."""
FIRST_STEP = 20
BASE_NS = 1_759_276_800_000_000_000
LEAST_GAIN = 1.03
"""A planted fault costs at least this, or it is planted more strongly."""
NONE = "none"


class Fault(Struct, frozen=True):
    """A kind of job: what is planted, and what must be said."""

    name: str
    reason: str
    layouts: tuple[str, ...] = ("ddp", "fsdp", "tp_dp")


FAULTS = {
    fault.name: fault
    for fault in (
        Fault("healthy", NONE),
        Fault("slow_kernels", "kernel"),
        Fault("more_work", "work"),
        Fault("slow_input", "input"),
        Fault("slow_dispatch", "dispatch"),
        Fault("one_pause", "pause"),
        Fault("checkpoint", "pause"),
        Fault("slow_link", "link", ("tp_dp",)),
        Fault("heating_up", "kernel"),
        Fault("slow_node", "kernel"),
        Fault("two_stragglers", "kernel"),
        Fault("late_at_no_cost", NONE, ("ddp",)),  # data comes late, but the CPU launches far ahead
        Fault("jitter", NONE),
        Fault("slow_stage", "kernel", ("pp",)),
        Fault("busy_experts", "work", ("ep",)),
        Fault("stalled_hosts", "pause"),
        Fault("pageable_input", "input"),
        Fault("taking_turns", "kernel"),  # two or three ranks are slow in turn, one in each step
        Fault("uneven_batches", NONE),  # each rank draws other sequence lengths in each step
        Fault("own_metrics", "work"),  # rank 0 runs kernels of its own at the start of each step
    )
}


class Op(Struct, frozen=True):
    """One thing that a rank does in a step."""

    kind: str
    """kernel, join, await, input, copy, sync or save."""
    time: float = 0.0
    """GPU time of a kernel, transfer of a collective."""
    cpu: float = 0.0
    """CPU time before it."""
    name: str = ""
    group: tuple[int, ...] = ()
    tag: str = ""
    """Which collective of the step is joined or awaited."""
    elements: int = 0
    peer: int = -1
    after_compute: bool = True


class Setting(Struct):
    """A random job."""

    seed: int
    fault: Fault
    layout: str
    world: int
    tp: int
    steps: int
    layers: int
    kernel_us: float
    cpu_share: float
    link_gbs: float
    input_us: float
    syncs: bool
    noise: float
    end_jitter_us: float
    contention: float
    severity: float
    culprits: tuple[int, ...]
    offsets_us: list[float]
    drift_ppm: list[float]
    sequence: bool
    arguments: str
    """`kernel`, `op` (on record_param_comms only) or `none`."""
    names: str
    pause_step: int
    period: int
    plain_ranks: tuple[int, ...] = ()
    """Ranks that recorded no arguments of collectives, whatever the others did."""


def random_setting(seed: int, kind: str, world: int | None = None) -> Setting:
    """A job of this kind."""
    rng = np.random.default_rng(seed)
    fault = FAULTS[kind]
    layout = str(rng.choice(fault.layouts))
    size = world or int(rng.choice([8, 8, 16, 16, 24, 32, 48, 64]))
    steps = int(rng.integers(6, 10))
    first = int(rng.integers(size))
    culprits: tuple[int, ...] = (first,)
    if kind == "slow_node":
        node = 8 if size > 16 else 4
        culprits = tuple(range(first // node * node, first // node * node + node))
    elif kind == "two_stragglers":
        culprits = tuple(sorted(rng.choice(size, 2, replace=False).tolist()))
    elif kind == "taking_turns":
        culprits = tuple(sorted(rng.choice(size, int(rng.integers(2, 4)), replace=False).tolist()))
    elif kind in {"checkpoint", "own_metrics"}:
        culprits = (0,)
    elif kind in {"healthy", "jitter", "late_at_no_cost", "uneven_batches"}:
        culprits = (first,) if kind == "late_at_no_cost" else ()
    tp = int(rng.choice([2, 4])) if layout == "tp_dp" else 4 if layout == "pp" else 1
    arguments = str(rng.choice(["kernel", "op", "none"], p=[0.7, 0.2, 0.1]))
    if layout in {"tp_dp", "pp"} and arguments == "none":
        arguments = "op"  # without arguments nobody can tell which ranks form a group
    return Setting(
        seed=seed,
        fault=fault,
        layout=layout,
        world=size,
        tp=tp,
        steps=steps,
        layers=int(rng.integers(6, 14)),
        kernel_us=float(rng.uniform(40, 250)),
        cpu_share=float(rng.uniform(0.3, 1.1)) if kind != "late_at_no_cost" else 0.3,
        link_gbs=float(rng.choice([25, 50, 100, 200, 300])),
        input_us=float(rng.uniform(100, 1500)),
        syncs=bool(rng.random() < 0.5) and kind != "late_at_no_cost",
        noise=float(rng.uniform(0.005, 0.02)),
        end_jitter_us=float(rng.uniform(1, 5)),
        contention=float(rng.uniform(1.0, 1.12)),
        severity=float(rng.uniform(0.08, 0.6)),
        culprits=culprits,
        offsets_us=rng.uniform(-50e3, 50e3, size).tolist(),
        drift_ppm=rng.uniform(-50, 50, size).tolist(),
        sequence=bool(rng.random() < 0.4),
        arguments=arguments,
        names=str(rng.choice(["torchtitan", "megatron", "tensorboard", "serving"])),
        pause_step=int(rng.integers(1, steps - 1)),
        period=int(rng.integers(2, 4)),
    )


class Model:
    """The operations of one step, drawn at random: the same for all ranks of a job."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.everyone = tuple(range(setting.world))
        self.rng = np.random.default_rng([setting.seed, 7])
        self.times = self.rng.lognormal(0, 0.8, 200) * setting.kernel_us
        self.megabytes = self.rng.uniform(2, 40, 64)
        self.drawn = 0

    def kernels(self, count: int) -> Iterator[Op]:
        """The next kernels of the model."""
        for _ in range(count):
            place = self.drawn % 200
            self.drawn += 1
            cpu = self.setting.kernel_us * self.setting.cpu_share * float(self.rng.lognormal(0, 0.3))
            yield Op("kernel", float(self.times[place]), cpu, f"sm90_xmma_gemm_bf16_tn_{64 * (1 + place % 12)}")

    def collective(self, kind: str, tag: str, group: tuple[int, ...], place: int, after_compute: bool = True) -> Op:
        """A collective of a random size."""
        size = int(self.megabytes[place % 64] * 1e6)
        factor = 2.0 if kind == "allreduce" else 1.0
        move = 12 + size * factor * (len(group) - 1) / len(group) / self.setting.link_gbs / 1e3
        return Op("join", move, 20.0, kind, group, tag, size // 2, after_compute=after_compute)

    def ddp(self, _rank: int) -> Iterator[Op]:
        """Gradients in buckets, beside the backward pass."""
        layers = self.setting.layers
        buckets = [f"bucket{layer}" for layer in range(layers) if layer % 3 == 2]
        yield from self.kernels(3 * layers)
        for layer in range(layers):
            yield from self.kernels(5)
            if layer % 3 == 2:
                yield self.collective("allreduce", f"bucket{layer}", self.everyone, layer)
        yield from (Op("await", tag=tag) for tag in buckets)
        yield from self.kernels(6)

    def fsdp(self, _rank: int) -> Iterator[Op]:
        """Weights gathered a layer ahead, gradients scattered."""
        layers = self.setting.layers
        yield self.collective("_allgather_base", "gather0", self.everyone, 0, after_compute=False)
        for layer in range(layers):
            yield Op("await", tag=f"gather{layer}")
            if layer + 1 < layers:
                tag = f"gather{layer + 1}"
                yield self.collective("_allgather_base", tag, self.everyone, layer + 1, after_compute=False)
            yield from self.kernels(8)
            yield self.collective("_reduce_scatter_base", f"scatter{layer}", self.everyone, layer + 20)
        yield Op("await", tag=f"scatter{layers - 1}")
        yield from self.kernels(5)

    def tp_dp(self, rank: int) -> Iterator[Op]:
        """A blocking all-reduce of the tensor-parallel group in each layer, and gradients of the data-parallel one."""
        layers, tp = self.setting.layers, self.setting.tp
        row = tuple(range(rank // tp * tp, rank // tp * tp + tp))
        column = tuple(range(rank % tp, self.setting.world, tp))
        for layer in range(layers):
            yield from self.kernels(6)
            yield self.collective("allreduce", f"tensor{layer}", row, layer)
            yield Op("await", tag=f"tensor{layer}")
            if layer % 4 == 3:
                yield self.collective("allreduce", f"data{layer}", column, layer + 20)
        yield from (Op("await", tag=f"data{layer}") for layer in range(layers) if layer % 4 == 3)
        yield from self.kernels(6)

    def ep(self, _rank: int) -> Iterator[Op]:
        """Tokens sent to their experts and back."""
        for layer in range(self.setting.layers):
            yield from self.kernels(4)
            yield self.collective("all_to_allv", f"out{layer}", self.everyone, layer)
            yield Op("await", tag=f"out{layer}")
            for op in self.kernels(2):
                yield replace(op, name=EXPERT, time=op.time * 3)
            yield self.collective("all_to_allv", f"back{layer}", self.everyone, layer)
            yield Op("await", tag=f"back{layer}")
        yield self.collective("allreduce", "gradients", self.everyone, 40)
        yield Op("await", tag="gradients")
        yield from self.kernels(5)

    def pp(self, rank: int) -> Iterator[Op]:
        """A pipeline of `tp` stages: all micro-batches forward, then backward."""
        world = self.setting.world
        width = world // self.setting.tp
        stage = rank // width
        before, behind = rank - width, rank + width
        for direction, (source, target) in {"forward": (before, behind), "backward": (behind, before)}.items():
            for batch in range(6):
                if 0 <= source < world:
                    tag = f"{direction}{batch}.{min(source, rank)}"
                    pair = (source, rank)
                    yield Op("join", 30.0, 15.0, "recv", pair, tag, 1 << 20, source, after_compute=False)
                    yield Op("await", tag=tag)
                yield from self.kernels(6)
                if 0 <= target < world:
                    tag = f"{direction}{batch}.{min(target, rank)}"
                    yield Op("join", 30.0, 15.0, "send", (rank, target), tag, 1 << 20, target)
        same = tuple(range(stage * width, (stage + 1) * width))
        if width > 1:
            yield self.collective("allreduce", "gradients", same, 40)
            yield Op("await", tag="gradients")
        yield self.collective("allreduce", "norm", self.everyone, 41)
        yield Op("await", tag="norm")
        yield from self.kernels(4)


EXPERT = "moe_expert_grouped_gemm"


def program(setting: Setting, rank: int) -> list[Op]:
    """The operations of one step of one rank."""
    ops: Iterator[Op] = getattr(Model(setting), setting.layout)(rank)
    return [Op("input", setting.input_us), Op("copy", 60.0), *ops, *([Op("sync")] if setting.syncs else [])]


class Row(Struct):
    """One recorded operation; None where there is no such time."""

    op: Op
    cpu_start: float
    launch: float
    start: float | None
    end: float | None
    blocks: int = 64


class StepLog(Struct):
    """One step of one rank."""

    start: float
    rows: list[Row]
    end: float = 0.0
    done: float = 0.0


class Planted:
    """What the fault changes."""

    def __init__(self, setting: Setting, is_planted: bool, gpu_us: float) -> None:
        self.setting, self.gpu_us = setting, gpu_us
        self.name = setting.fault.name if is_planted else "healthy"
        self.jitter = np.random.default_rng([setting.seed, 3])
        self.late = self.jitter.integers(0, setting.world, 64)
        self.experts = self.jitter.dirichlet(np.full(setting.world, 2.0)) * setting.world
        self.stalls = self.jitter.random((setting.world, 64)) < 0.15
        self.batches = np.clip(1 + 0.5 * setting.severity * self.jitter.normal(size=(setting.world, 64)), 0.4, 2.0)

    def program(self, rank: int) -> list[Op]:
        """The operations of one step of one rank."""
        ops = program(self.setting, rank)
        if self.name != "own_metrics" or rank not in self.setting.culprits:
            return ops
        kernels = [op for op in ops if op.kind == "kernel"]
        own = kernels[: max(1, round(self.setting.severity * len(kernels)))]
        return [*ops[:2], *(replace(op, name="metric_reduce_kernel") for op in own), *ops[2:]]

    def kernel(self, rank: int, step: int, op: Op) -> tuple[float, float]:
        """Factors of a kernel's time and grid."""
        culprit, severity = rank in self.setting.culprits, self.setting.severity
        if self.name in {"slow_kernels", "slow_node", "two_stragglers"} and culprit:
            return 1 + severity, 1.0
        if self.name == "more_work" and culprit:
            return 1 + severity, 1 + severity
        if self.name == "taking_turns" and culprit:
            turn = self.setting.culprits.index(rank) == step % len(self.setting.culprits)
            return (1 + 2 * severity, 1.0) if turn else (1.0, 1.0)
        if self.name == "uneven_batches":
            size = float(self.batches[rank, step % 64])
            return size, size
        if self.name == "heating_up" and culprit:
            return 1 + 2 * severity * max(step, 0) / self.setting.steps, 1.0
        if self.name == "slow_stage":
            width = self.setting.world // self.setting.tp
            return (1 + severity, 1.0) if rank // width == self.setting.culprits[0] // width else (1.0, 1.0)
        if op.name == EXPERT and self.name == "busy_experts" and culprit:
            return 1 + 3 * severity, 1 + 3 * severity
        return 1.0, 1.0

    def cpu(self, rank: int) -> float:
        """Factor of the CPU time between launches."""
        slow = self.name == "slow_dispatch" and rank in self.setting.culprits
        return 1.2 + 4 * self.setting.severity if slow else 1.0

    def input(self, rank: int, step: int) -> float:
        """More time for data."""
        if self.name == "slow_input" and rank in self.setting.culprits:
            return 1.2 * self.setting.severity * self.gpu_us
        if self.name == "late_at_no_cost" and rank in self.setting.culprits:
            return 0.03 * self.gpu_us
        return 0.02 * self.gpu_us if self.name == "jitter" and rank == self.late[step % 64] else 0.0

    def copy(self, rank: int) -> float:
        """How long a copy from pageable memory blocks the CPU."""
        slow = self.name == "pageable_input" and rank in self.setting.culprits
        return 1.2 * self.setting.severity * self.gpu_us if slow else 0.0

    def pause(self, rank: int, step: int, share: float) -> float:
        """A pause of the CPU in the middle of a step."""
        culprit = rank in self.setting.culprits
        if self.name == "one_pause" and culprit and step == self.setting.pause_step and share == 0.5:
            return (0.4 + 3 * self.setting.severity) * self.gpu_us
        if self.name == "stalled_hosts" and self.stalls[rank, (step * 4 + int(share * 4)) % 64]:
            return (0.2 + self.setting.severity) * self.gpu_us
        return 0.0

    def transfer(self, group: tuple[int, ...]) -> float:
        """Factor of a transfer."""
        is_row = len(group) == self.setting.tp and group[-1] - group[0] == self.setting.tp - 1
        slow = self.name == "slow_link" and is_row and self.setting.culprits[0] in group
        return 1 + 6 * self.setting.severity if slow else 1.0

    def save(self, rank: int, step: int) -> float:
        """Time of a checkpoint after the step."""
        due = step % self.setting.period == self.setting.period - 1
        if self.name == "checkpoint" and rank in self.setting.culprits and due:
            return (0.3 + 2 * self.setting.severity) * self.gpu_us
        return 0.0


class Meeting(Struct):
    """A collective while it is being joined."""

    op: Op
    arrivals: dict[int, float] = field(default_factory=dict)
    ends: dict[int, float] = field(default_factory=dict)
    """Empty until all members have arrived."""


class Meetings:
    """All collectives of a job."""

    def __init__(self, setting: Setting, planted: Planted) -> None:
        self.setting, self.planted = setting, planted
        self.rng = np.random.default_rng([setting.seed, 5])
        self.bias = np.abs(np.random.default_rng([setting.seed, 4]).normal(0, 1.0, setting.world))
        """A rank that always leaves a little later than the others."""
        self.known: dict[tuple[Any, ...], Meeting] = {}

    def of(self, key: tuple[Any, ...], op: Op) -> Meeting:
        """The collective with this key."""
        return self.known.setdefault(key, Meeting(op))

    def is_over(self, meeting: Meeting) -> bool:
        """Whether all members have arrived, so that its end is known."""
        if not meeting.ends and len(meeting.arrivals) == len(meeting.op.group):
            move = meeting.op.time * self.planted.transfer(meeting.op.group) * float(self.rng.lognormal(0, 0.03))
            end = max(meeting.arrivals.values()) + move
            for rank in meeting.op.group:
                late = self.bias[rank] + float(self.rng.exponential(self.setting.end_jitter_us))
                meeting.ends[rank] = end + late
        return bool(meeting.ends)


def run(setting: Setting, is_planted: bool = True) -> tuple[list[list[StepLog]], float]:
    """The recorded steps of each rank, and the job's true step."""
    gpu_us = sum(op.time for op in program(setting, 0) if op.kind == "kernel")
    planted = Planted(setting, is_planted, gpu_us)
    meetings = Meetings(setting, planted)
    ranks = [RankRun(setting, rank, planted, meetings) for rank in range(setting.world)]
    running = [rank.run() for rank in ranks]
    while running:
        running = [one for one in running if next(one, None) is not None]
    done = [max(rank.log[step].done for rank in ranks) for step in range(setting.steps)]
    return [rank.log for rank in ranks], (done[-1] - done[0]) / (setting.steps - 1)


class RankRun:
    """One rank on its way through its steps."""

    def __init__(self, setting: Setting, rank: int, planted: Planted, meetings: Meetings) -> None:
        self.setting, self.rank, self.planted, self.meetings = setting, rank, planted, meetings
        self.ops = planted.program(rank)
        self.rng = np.random.default_rng([setting.seed, 1000 + rank])
        self.speed = 1 + abs(float(self.rng.normal(0, 0.004)))
        self.cpu = self.compute = float(self.rng.uniform(0, 300))
        self.on_stream: dict[str, Meeting] = {}
        self.log: list[StepLog] = []
        kernels = [place for place, op in enumerate(self.ops) if op.kind == "kernel"]
        self.middle = {kernels[int(len(kernels) * share)]: share for share in (0.25, 0.5, 0.75)}

    def run(self) -> Iterator[bool]:
        """All steps; yields while the rank waits for others."""
        for step in range(-WARM_UP, self.setting.steps):
            now, joined = StepLog(self.cpu, []), {}
            for place, op in enumerate(self.ops):
                if op.kind == "join":
                    joined[op.tag] = self.meetings.of((step, op.tag, tuple(sorted(op.group))), op)
                    previous = self.on_stream.get(_stream(op))
                    while previous is not None and not self.meetings.is_over(previous):
                        yield True
                    now.rows.append(self._join(op, joined[op.tag], previous))
                elif op.kind == "await":
                    while not self.meetings.is_over(joined[op.tag]):
                        yield True
                    self.compute = max(self.compute, joined[op.tag].ends[self.rank] + 2)
                else:
                    now.rows.append(self._do(op, step, self.middle.get(place)))
            now.rows += self._save(step)
            for row in now.rows:
                if row.op.kind == "join":
                    while not self.meetings.is_over(joined[row.op.tag]):
                        yield True
                    row.end = joined[row.op.tag].ends[self.rank]
            now.end, now.done = self.cpu, self.compute
            if step >= 0:
                self.log.append(now)

    def _join(self, op: Op, meeting: Meeting, previous: Meeting | None) -> Row:
        start = self.cpu
        self.cpu += op.cpu * self.planted.cpu(self.rank) * float(self.rng.lognormal(0, 0.1))
        begin = max(self.cpu + LATENCY, self.compute if op.after_compute else 0.0)
        if previous is not None:
            begin = max(begin, previous.ends[self.rank] + 1)
        meeting.arrivals[self.rank] = begin
        self.on_stream[_stream(op)] = meeting
        row = Row(op, start, self.cpu, begin, None)
        self.cpu += 6
        return row

    def _do(self, op: Op, step: int, share: float | None) -> Row:
        start = self.cpu
        if op.kind == "input":
            took = op.time * float(self.rng.lognormal(0, 0.1)) + self.planted.input(self.rank, step)
            self.cpu += took + 8
            return Row(op, start, start + took, None, None)
        if op.kind == "copy":
            blocked = self.planted.copy(self.rank)
            begin = max(start + LATENCY, self.compute) if not blocked else start + 0.2 * blocked
            self.compute = begin + op.time + 0.8 * blocked
            self.cpu = self.compute if blocked else start + 6
            return Row(op, start, start, begin, self.compute)
        if op.kind == "sync":
            self.cpu = max(self.cpu, self.compute) + 10
            return Row(op, start, start, None, self.cpu)
        self.cpu += op.cpu * self.planted.cpu(self.rank) * float(self.rng.lognormal(0, 0.1))
        if share is not None:
            self.cpu += self.planted.pause(self.rank, step, share)
        begin = max(self.cpu + LATENCY, self.compute)
        time, grid = self.planted.kernel(self.rank, step, op)
        beside = any(not one.ends or one.ends[self.rank] > begin for one in self.on_stream.values())
        length = op.time * time * self.speed * float(self.rng.lognormal(0, self.setting.noise))
        self.compute = begin + max(length * (self.setting.contention if beside else 1.0), 1.0)
        row = Row(op, start, self.cpu, begin, self.compute, round(64 * grid))
        self.cpu += 4
        return row

    def _save(self, step: int) -> list[Row]:
        """The checkpoint behind a step: a blocking copy, then time on the CPU."""
        took = self.planted.save(self.rank, step)
        if not took:
            return []
        launch, begin = self.cpu, max(self.cpu, self.compute)
        end = begin + 0.3 * took
        self.cpu, self.compute = begin + took, end
        return [Row(Op("save"), launch, launch, begin + 5, end)]


def _stream(op: Op) -> str:
    return op.name if op.name in {"send", "recv"} else f"{len(op.group)} ranks"


def write(setting: Setting, logs: list[list[StepLog]], folder: Path) -> None:
    """The files of a recording, each by its own clock."""
    for rank in range(setting.world):
        path = folder / _file_name(setting, rank)
        path.parent.mkdir(parents=True, exist_ok=True)
        groups = sorted({row.op.group for row in logs[rank][0].rows if len(row.op.group) > 2})
        config = [
            {"pg_name": str(number), "pg_desc": "mesh", "ranks": list(group)} for number, group in enumerate(groups)
        ]
        info = {"backend": "nccl", "rank": rank, "world_size": setting.world, "pg_config": config}
        header = {"schemaVersion": 1, "distributedInfo": info, "baseTimeNanoseconds": BASE_NS}
        header["deviceProperties"] = [{"id": 0, "name": "NVIDIA H100 80GB HBM3", "numSms": 132}]
        text = json.dumps(header)[:-1] + ',"traceEvents":[\n' + ",\n".join(_events(setting, rank, logs[rank])) + "\n]}"
        with gzip.open(path, "wt", compresslevel=1) as file:
            file.write(text)


def local(setting: Setting, rank: int, time: float) -> float:
    """A true time by the clock of a rank."""
    return time * (1 + setting.drift_ppm[rank] * 1e-6) + setting.offsets_us[rank]


def _events(setting: Setting, rank: int, log: list[StepLog]) -> Iterator[str]:
    correlation = 0
    sequence: dict[tuple[int, ...], int] = {}
    groups = sorted({row.op.group for row in log[0].rows if len(row.op.group) > 2})

    def event(category: str, name: str, start: float, end: float, thread: int, args: dict[str, Any]) -> str:
        begin = local(setting, rank, start)
        length = max(local(setting, rank, end) - begin, 0.0)
        process = 0 if category in {"kernel", "gpu_memcpy"} else 4000 + rank
        shown = {"ph": "X", "cat": category, "name": name, "pid": process, "tid": thread}
        return json.dumps(shown | {"ts": round(begin + 1e12, 3), "dur": round(length, 3), "args": args})

    main = 4000 + rank
    arguments = NONE if rank in setting.plain_ranks else setting.arguments
    for number, step in enumerate(log):
        yield event("user_annotation", f"ProfilerStep#{FIRST_STEP + number}", step.start, step.end, main, {})
        for row in step.rows:
            correlation += 1
            op, link = row.op, {"correlation": correlation, "External id": correlation}
            if op.kind == "input":
                name = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
                yield event("user_annotation", name, row.cpu_start, row.launch, main, {})
                continue
            if op.kind == "sync":
                yield event("cuda_runtime", "cudaStreamSynchronize", row.launch, row.end or 0.0, main, link)
                continue
            start, end = row.start or 0.0, row.end or 0.0
            device = {**link, "device": 0, "stream": 7, "grid": [row.blocks, 1, 1], "block": [256, 1, 1]}
            if op.kind in {"save", "copy"}:
                blocks = op.kind == "save" or end - start > 2 * op.time
                name = "Memcpy DtoH (Device -> Pageable)"
                if op.kind == "copy":
                    name = f"Memcpy HtoD ({'Pageable' if blocks else 'Pinned'} -> Device)"
                call_end = end if blocks else row.launch + 4
                yield event("cuda_runtime", "cudaMemcpyAsync", row.launch, call_end, main, link)
                yield event("gpu_memcpy", name, start, end, 7, device | {"bytes": 1 << 20})
                continue
            yield event("cuda_runtime", "cudaLaunchKernel", row.launch, row.launch + 4, main, link)
            if op.kind == "kernel":
                yield event("cpu_op", "aten::mm", row.launch - 2, row.launch + 5, main, {"External id": correlation})
                yield event("kernel", op.name, start, end, 7, device)
                continue
            sequence[op.group] = sequence.get(op.group, 100) + 1
            meta: dict[str, Any] = {"Collective name": op.name, "In msg nelems": op.elements, "dtype": "BFloat16"}
            meta |= {
                "Out msg nelems": op.elements,
                "Group size": len(op.group),
                "Process Group Ranks": listed(op.group),
            }
            if op.group in groups:
                meta["Process Group Name"] = str(groups.index(op.group))
            if op.peer >= 0:
                meta["Dst Rank" if op.name == "send" else "Src Rank"] = op.peer
            if setting.sequence and op.peer < 0:
                meta["Seq"] = sequence[op.group]
            around = {"External id": correlation, **(meta if arguments != NONE else {})}
            yield event("cpu_op", "record_param_comms", row.launch - 10, row.launch + 8, main, around)
            stream = {"send": 30, "recv": 31}.get(op.name, 20 + len(op.group) % 10)
            own = device | {"stream": stream} | (meta if arguments == "kernel" else {})
            yield event("kernel", _kernel_name(op.name), start, end, stream, own)


def listed(group: tuple[int, ...]) -> str:
    """As torch writes it: lists of more than 30 ranks are shortened."""
    if len(group) <= 30:
        return str(list(group))
    return f"[{', '.join(map(str, group[:29]))}, ..., {group[-1]}]"


def _kernel_name(kind: str) -> str:
    word = {"allreduce": "AllReduce_Sum_bf16", "_allgather_base": "AllGather", "all_to_allv": "SendRecv"}
    word |= {"_reduce_scatter_base": "ReduceScatter_Sum_bf16", "send": "SendRecv", "recv": "SendRecv"}
    return f"ncclDevKernel_{word[kind]}_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def _file_name(setting: Setting, rank: int) -> str:
    if setting.names == "torchtitan":
        return f"profile_traces/iteration_20/rank{rank}_trace.json.gz"
    if setting.names == "megatron":
        return f"torch_profile/rank-{rank}.json.gz"
    if setting.names == "serving":
        return f"1763400000-TP-{rank % setting.tp}-DP-{rank // setting.tp}.trace.json.gz"
    return f"node{rank // 8:02d}_{4000 + rank}.1763400000{rank:03d}.pt.trace.json.gz"


class Truth(Struct, frozen=True):
    """What must be found."""

    setting: Setting
    ranks: tuple[int, ...]
    reason: str
    step_us: float
    step_without_us: float
    offsets_us: list[float]

    @property
    def gain(self) -> float:
        """The true price of the straggler."""
        return self.step_us / self.step_without_us


def make(setting: Setting, folder: Path) -> Truth:
    """Write the job and say what is true of it; a fault that costs too little is planted more strongly."""
    is_faulty = setting.fault.reason != NONE
    _, without = run(setting, is_planted=False) if is_faulty else ([], 0.0)
    for _ in range(8):
        logs, step = run(setting)
        if not is_faulty or step / without >= LEAST_GAIN:
            break
        setting.severity *= 1.4
    write(setting, logs, folder)
    ends = [row.end for log in logs for step_log in log for row in step_log.rows if row.op.kind == "join" and row.end]
    middle = (min(ends) + max(ends)) / 2
    offsets = [local(setting, rank, middle) - middle for rank in range(setting.world)]
    return Truth(setting, _named(setting), setting.fault.reason, step, without if is_faulty else step, offsets)


def _named(setting: Setting) -> tuple[int, ...]:
    if setting.fault.reason == NONE:
        return ()
    if setting.fault.name == "slow_link":
        first = setting.culprits[0] // setting.tp * setting.tp
        return tuple(range(first, first + setting.tp))
    if setting.fault.name == "slow_stage":
        width = setting.world // setting.tp
        first = setting.culprits[0] // width * width
        return tuple(range(first, first + width))
    return setting.culprits
