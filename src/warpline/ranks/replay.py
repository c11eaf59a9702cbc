"""Replays all ranks together: a collective ends on every member at the last arrival plus its transfer."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct

from warpline.ranks.match import Collective
from warpline.ranks.program import InstructionKind, Program
from warpline.trace.arrays import Floats

_NEVER = -np.inf


class JobReplay(Struct, frozen=True):
    """The times of a replay."""

    start_ns: float
    """When the first rank starts."""
    ends_ns: Mapping[int, Floats]
    """For each rank, when the compute of each step is done."""

    @property
    def step_ns(self) -> float:
        """The job's step."""
        return step_time(self.start_ns, np.max(np.stack(list(self.ends_ns.values())), axis=0))


def step_time(start_ns: float, done_ns: Floats) -> float:
    """The step of a job whose steps are done at these times: from the end of the first to the end of the last.

    What the GPU had queued when the recording started is unknown, so the first step does not count, unless it is the
    only one.
    """
    if len(done_ns) == 1:
        return float(done_ns[0]) - start_ns
    return float(done_ns[-1] - done_ns[0]) / (len(done_ns) - 1)


class JointReplay:
    """All ranks of a job, to be replayed with changes."""

    def __init__(self, programs: Sequence[Program], collectives: Sequence[Collective], transfer_ns: Floats) -> None:
        self.programs = {program.rank: program for program in programs}
        self.transfer_ns = transfer_ns
        self._members = [len(one.rows) for one in collectives]
        self._code = {
            program.rank: [(int(one.kind), one.number, one.join) for one in program.instructions]
            for program in programs
        }

    def run(self, changed: Mapping[int, Program] | None = None, transfer_ns: Floats | None = None) -> JobReplay:
        """Replay with other programs for some ranks, or other transfer times."""
        programs = {**self.programs, **(changed or {})}
        transfer = (self.transfer_ns if transfer_ns is None else transfer_ns).tolist()
        missing = list(self._members)
        arrival, ended = [_NEVER] * len(missing), [_NEVER] * len(missing)
        ranks = {rank: _Rank(program, self._code[rank]) for rank, program in programs.items()}
        waiting = deque(ranks.values())
        stuck = 0
        while waiting:
            rank = waiting.popleft()
            before = rank.at
            blocked = rank.advance(transfer, missing, arrival, ended)
            if blocked is None:
                stuck = 0
                continue
            waiting.append(rank)
            stuck = 0 if rank.at > before else stuck + 1
            if stuck > len(waiting):
                # Damaged recordings can order collectives differently: end one without those who never come.
                missing[blocked], ended[blocked] = 0, arrival[blocked] + transfer[blocked]
                stuck = 0
        start_ns = min(program.start_ns for program in programs.values())
        return JobReplay(start_ns, {number: np.array(rank.ends) for number, rank in ranks.items()})

    def alone(self, rank: int) -> Floats:
        """The time of each step of one rank if all others were always there before it.

        The first of several steps counts as nothing, as it does for the job.
        """
        one = _Rank(self.programs[rank], self._code[rank])
        missing = [1] * len(self._members)
        one.advance(self.transfer_ns.tolist(), missing, [_NEVER] * len(missing), [_NEVER] * len(missing))
        lengths = np.diff([self.programs[rank].start_ns, *one.ends])
        return np.concatenate([[0.0], lengths[1:]]) if len(lengths) > 1 else lengths


class _Rank:
    """Where one rank is in its program, and when its CPU, GPU and streams are free."""

    def __init__(self, program: Program, code: list[tuple[int, int, int]]) -> None:
        self.code, self.at = code, 0
        self.cpu = self.gpu = program.start_ns
        self.segments, self.lags = program.segments.tolist(), program.lag_ns.tolist()
        self.streams, self.after_compute = program.stream.tolist(), program.after_compute.tolist()
        self.latency = program.latency_ns
        self.on_stream: dict[int, int] = {}
        """The last collective of each stream."""
        self.ends: list[float] = []
        self.begun = False

    def advance(
        self, transfer: list[float], missing: list[int], arrival: list[float], ended: list[float]
    ) -> int | None:
        """Run until a collective is awaited that has not ended, and return it; None at the end of the program."""
        code = self.code
        while self.at < len(code):
            kind, number, join = code[self.at]
            if kind == InstructionKind.SEGMENT:
                a, b, c, d = self.segments[number]
                self.gpu, self.cpu = max(self.gpu + a, self.cpu + b), max(self.gpu + c, self.cpu + d)
            elif kind == InstructionKind.JOIN:
                start = self.cpu + self.latency
                previous = self.on_stream.get(self.streams[join])
                if previous is not None:
                    if missing[previous]:
                        return previous
                    start = max(start, ended[previous])
                if self.after_compute[join]:
                    start = max(start, self.gpu)
                arrival[number] = max(arrival[number], start + self.lags[join])
                if missing[number]:
                    missing[number] -= 1
                    ended[number] = arrival[number] + transfer[number]
                self.on_stream[self.streams[join]] = number
            elif kind == InstructionKind.STEP:
                if self.begun:
                    self.ends.append(self.gpu)
                self.begun = True
            elif missing[number]:
                return number
            elif kind == InstructionKind.AWAIT_GPU:
                self.gpu = max(self.gpu, ended[number])
            else:
                self.cpu = max(self.cpu, ended[number])
            self.at += 1
        self.ends.append(self.gpu)
        return None
