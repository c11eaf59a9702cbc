"""ByteDance's three published jobs by our joint replay, against their answers.

    python -m benchmarks.ranks.bytedance FOLDER

FOLDER is `data/` of github.com/ByteDance-Seed/StragglerAnalysis (Apache-2.0; not part of this project). A worker is one
pipeline stage of one data-parallel rank; each step is replayed by itself. A transfer runs from the last arrival to the
median end of all members, as in every job here; they give each member a transfer of its own. The ideal step follows
their rule: all operations of a type take the mean (compute) or median (transfer) of all workers and steps. They call a
worker slow by the step in which only it is as slow as recorded, and all others are ideal; we name a rank by the step in
which only it is fixed. Both are shown.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl
from msgspec import Struct

from warpline.ranks.program import NOTHING, InstructionKind, Program, Segment
from warpline.ranks.replay import JointReplay, RankChange, Scenario
from warpline.trace.arrays import Floats

Worker = tuple[int, int]
"""Data-parallel rank and stage."""
Name = tuple[str, int]
"""Type of an operation and its number in the step."""
COMPUTE = ("forward-compute", "backward-compute")
TAIL = (
    "gc",
    "layernorm-grads-all-reduce",
    "embedding-grads-all-reduce",
    "grads-reduce-scatter",
    "optimizer-clip-main-grad",
    "optimizer",
)
"""What follows the last compute, in this order."""


class Span(Struct, frozen=True):
    """When an operation ran, in seconds."""

    start: float
    end: float


Step = dict[Worker, dict[Name, Span]]
"""What each worker did in one step."""


def read(path: Path) -> list[Step]:
    """The steps of a job."""
    steps: dict[int, Step] = {}
    columns = ("step", "dp_rank", "stage", "optype", "seq_id", "start_ts", "duration")
    table = pl.read_parquet(path).with_columns(pl.col("optype").cast(pl.String)).select(columns)
    for step, replica, stage, kind, number, start, length in table.iter_rows():
        steps.setdefault(step, {}).setdefault((replica, stage), {})[kind, number] = Span(start, start + length)
    return list(steps.values())


def meeting(worker: Worker, name: Name, stages: int) -> tuple[object, ...] | None:
    """What the members of one collective share; None for an operation of one worker."""
    (replica, stage), (kind, number) = worker, name
    if kind in {"params-all-gather", "grads-reduce-scatter"}:
        return kind, stage
    if kind == "optimizer-clip-main-grad":
        return (kind,)
    if kind == "embedding-grads-all-reduce" and stage in {0, stages - 1}:
        return kind, replica
    way, _, what = kind.partition("-")
    if what not in {"send", "recv"}:
        return None
    return way, number, replica, stage - (what == "recv") * (1 if way == "forward" else -1)


class StepReplay:
    """One step as programs."""

    def __init__(self, step: Step, ideal: Mapping[str, float] | None = None) -> None:
        """`ideal` gives the length of each type of operation; without it all take their own time."""
        self.step, self.ideal = step, ideal
        self.stages = 1 + max(stage for _, stage in step)
        self.workers = sorted(step)
        members: dict[tuple[object, ...], dict[int, Name]] = {}
        for rank, worker in enumerate(self.workers):
            for name in step[worker]:
                key = meeting(worker, name, self.stages)
                if key:
                    members.setdefault(key, {})[rank] = name
        self.number = {key: number for number, key in enumerate(members)}
        self.kinds = [sorted(kind for kind, _ in names.values())[0] for names in members.values()]
        self.transfers = [self._transfer(names) for names in members.values()]
        arrived = np.array([len(names) for names in members.values()])
        transfer = [self.ideal[kind] for kind in self.kinds] if self.ideal else self.transfers
        self.replay = JointReplay(
            [self._program(rank, ideal) for rank in range(len(self.workers))], arrived, np.array(transfer)
        )

    def _transfer(self, names: Mapping[int, Name]) -> float:
        spans = [self.step[self.workers[rank]][name] for rank, name in names.items()]
        return max(float(np.median([span.end for span in spans])) - max(span.start for span in spans), 0.0)

    def seconds(self, sets: Sequence[Collection[Worker]] = ((),), ideal: Mapping[str, float] | None = None) -> Floats:
        """The step with the compute of each set of workers as long as the ideal."""
        scenarios = []
        for fixed in sets:
            programs = [self._program(self.workers.index(worker), ideal) for worker in fixed]
            scenarios.append(
                Scenario({one.rank: RankChange(one.segments, one.lag_ns, one.start_ns) for one in programs})
            )
        return np.array([replayed.step_ns for replayed in self.replay.run_all(scenarios)])

    def seconds_with(self, recorded: StepReplay, workers: Sequence[Worker]) -> Floats:
        """The step of an ideal job in which each of these workers in turn takes its recorded time."""
        scenarios = []
        for worker in workers:
            one = recorded._program(self.workers.index(worker), None)
            scenarios.append(Scenario({one.rank: RankChange(one.segments, one.lag_ns, one.start_ns)}))
        return np.array([replayed.step_ns for replayed in self.replay.run_all(scenarios)])

    def compute(self) -> list[tuple[str, float]]:
        """Type and length of all operations of one worker alone."""
        return [
            (name[0], span.end - span.start)
            for worker, ops in self.step.items()
            for name, span in ops.items()
            if meeting(worker, name, self.stages) is None
        ]

    def _program(self, rank: int, ideal: Mapping[str, float] | None) -> Program:
        worker = self.workers[rank]
        ops = self.step[worker]
        written = _Writer(worker, self, ideal)
        order = sorted((name for name in ops if name[0] in COMPUTE), key=lambda name: ops[name].start)
        turn = next(place for place, name in enumerate(order) if name[0] == "backward-compute")
        written.join(("params-all-gather", 0))
        written.join(("forward-recv", 0))
        if turn < 2:
            written.join(("backward-recv", 0))
        written.wait(("params-all-gather", 0))
        for place, (kind, number) in enumerate(order):
            way = kind.removesuffix("-compute")
            written.wait((f"{way}-recv", number))
            written.run((kind, number))
            written.join((f"{way}-send", number))
            written.join((f"{way}-recv", number + 1))
            if place == turn - 2:
                written.join(("backward-recv", 0))
        for kind in TAIL:
            if meeting(worker, (kind, 0), self.stages) is None:
                written.run((kind, 0))
            else:
                written.join((kind, 0))
                written.wait((kind, 0))
        return written.program(rank)


class _Writer:
    """Writes the program of a worker; operations that it does not have are left out."""

    def __init__(self, worker: Worker, step: StepReplay, ideal: Mapping[str, float] | None) -> None:
        self.worker, self.step, self.ideal = worker, step, ideal
        self.ops = step.step[worker]
        self.instructions = bytearray([InstructionKind.STEP, InstructionKind.SEGMENT])
        self.segments: list[Segment] = [NOTHING]
        self.collectives: list[int] = []
        self.streams: list[int] = []
        self.kinds = sorted({kind for kind, _ in self.ops})

    def run(self, name: Name) -> None:
        """Compute."""
        if name in self.ops:
            length = self.ideal[name[0]] if self.ideal else self.ops[name].end - self.ops[name].start
            self.instructions.append(InstructionKind.SEGMENT)
            self.segments.append((length, -np.inf, -np.inf, 0.0))

    def join(self, name: Name) -> None:
        """Start a collective after the compute so far and the collective of this type before."""
        if name in self.ops:
            self.instructions.append(InstructionKind.JOIN)
            self.collectives.append(self._number(name))
            self.streams.append(self.kinds.index(name[0]))

    def wait(self, name: Name) -> None:
        """Compute nothing more until a collective has ended."""
        if name in self.ops:
            self.instructions.append(InstructionKind.AWAIT_GPU)
            self.collectives.append(self._number(name))

    def program(self, rank: int) -> Program:
        """The program."""
        count = len(self.streams)
        segments, streams = np.array(self.segments), np.array(self.streams, np.int64)
        numbers = np.array(self.collectives, np.int64)
        return Program(
            rank, bytes(self.instructions), segments, numbers, np.zeros(count), streams, np.ones(count, bool), 0.0, 0.0
        )

    def _number(self, name: Name) -> int:
        key = meeting(self.worker, name, self.step.stages)
        assert key is not None
        return self.step.number[key]


def ideal_lengths(steps: list[StepReplay]) -> dict[str, float]:
    """The mean of each type of compute, the median of each type of transfer."""
    found: dict[str, list[float]] = {}
    moved: dict[str, list[float]] = {}
    for step in steps:
        for kind, length in step.compute():
            found.setdefault(kind, []).append(length)
        for kind, length in zip(step.kinds, step.transfers, strict=True):
            moved.setdefault(kind, []).append(length)
    return {kind: float(np.mean(all_)) for kind, all_ in found.items()} | {
        kind: float(np.median(all_)) for kind, all_ in moved.items()
    }


def slowest(result: Mapping[str, Mapping[str, float]], workers: list[Worker]) -> list[Worker]:
    """Their slowest 3 % of workers: large by data-parallel rank and by stage."""
    by_replica, by_stage = result["blocking_decompose_by_dp_rank"], result["blocking_decompose_by_stage"]
    score = {worker: min(by_replica[str(worker[0])], by_stage[str(worker[1])]) for worker in workers}
    return sorted(workers, key=lambda worker: -score[worker])[: -(-len(workers) * 3 // 100)]


def main() -> None:
    """Print published / ours for each job."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    print(
        "| job | step in s, published / ours | ideal step | their slowest workers | step without them | slow alone | "
        "fixed alone |"
    )
    print("|---|---|---|---|---|---|---|")
    for job in ("AR", "SE", "ST"):
        result, fixed = (json.loads((folder / f"{kind}-{job}.json").read_text()) for kind in ("result", "mw"))
        recorded = read(folder / f"trace-{job}.parquet")
        steps = [StepReplay(step) for step in recorded]
        ideal = ideal_lengths(steps)
        ideals = [StepReplay(step, ideal) for step in recorded]
        best = np.mean([step.seconds() for step in ideals])
        workers = steps[0].workers
        slow = np.mean([one.seconds_with(step, workers) for one, step in zip(ideals, steps, strict=True)], axis=0)
        worker, factor = workers[int(slow.argmax())], slow.max() / best
        worst = slowest(result, workers)
        sets = [(), worst, *((worker,) for worker in workers)]
        base, without, *each = np.mean([step.seconds(sets, ideal) for step in steps], axis=0)
        alone = dict(zip(workers, each, strict=True))
        first = min(workers, key=lambda worker: alone[worker])
        cells = (
            f"{fixed['tori']:.3f} / {base:.3f}",
            f"{fixed['tideal']:.3f} / {best:.3f}",
            ", ".join(map(str, worst)),
            f"{fixed['trem']:.3f} / {without:.3f}",
            f"{worker}, {factor:.3f}×",
            f"{first}, {base / alone[first]:.3f}×",
        )
        print(f"| {job} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
