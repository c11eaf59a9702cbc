"""The job's verdict in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from warpline.estimate import SHOWN_GAIN, Estimate
from warpline.fixes.words import listed
from warpline.ranks.account import RankTime
from warpline.ranks.straggler import Straggler
from warpline.units import duration, share, speedup

SHOWN_NAME = 60
MOSTLY = 0.8
"""Share of the collectives at which one rank is last that is worth a sentence."""
_REASONS = {
    "kernel": "the same kernels take {extra} longer a step than on other ranks",
    "work": "its kernels do more work: {extra} more a step than on other ranks",
    "input": "it waits {extra} longer for data in each late step",
    "dispatch": "its CPU takes {extra} longer to launch a step",
    "pause": "its CPU pauses for {extra} in each late step",
}
HOW = {
    "kernel": "Compare clocks, power and temperature of the GPU with those of other ranks (nvidia-smi -q -d "
    "CLOCK,POWER,TEMPERATURE,PERFORMANCE), and look for another process on it.",
    "work": "Compare the shapes: give all ranks batches of equal length, and experts equal numbers of tokens.",
    "input": "Look at the DataLoader of that rank: its storage, its number of workers, and who shares its cores.",
    "dispatch": "Look at the host: other processes, CPU clocks, and cores that several ranks share (taskset -cp PID).",
    "pause": "Look for what takes the process off the CPU: garbage collection (gc.freeze() after the warm-up), "
    "checkpoints and logging, the CPU quota of its container (cpu.max), other processes on its cores.",
    "link": "Measure the link alone (all_reduce_perf of nccl-tests), and look for errors on it (nvidia-smi nvlink -e, "
    "perfquery).",
}
"""For each reason, where to look next."""


class JobVerdict(Struct, frozen=True):
    """The answer in a sentence."""

    cause: str
    sentence: str
    gain: Estimate
    new_step_ns: Estimate
    how: str = ""
    """Where to look next."""

    def to_dict(self) -> dict[str, Any]:
        """As the JSON contract has it."""
        return {
            "cause": self.cause,
            "sentence": self.sentence,
            "gain": self.gain.rounded(4).to_dict(),
            "new_step_ns": self.new_step_ns.rounded().to_dict(),
            "how": self.how,
        }


def shown_ranks(ranks: Sequence[int]) -> str:
    """Ranks for people: `rank 5`, `ranks 0 and 6`, `ranks 8–15`."""
    parts = _runs(sorted(ranks))
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {listed(parts) or 'none'}"


def _runs(ranks: Sequence[int]) -> Iterator[str]:
    start = 0
    for position in range(1, len(ranks) + 1):
        if position == len(ranks) or ranks[position] != ranks[position - 1] + 1:
            run = ranks[start:position]
            yield from [f"{run[0]}–{run[-1]}"] if len(run) > 2 else map(str, run)
            start = position


def verdict_of(
    straggler: Straggler, step_ns: float, per_rank: Sequence[RankTime], collectives: int, is_whole: bool
) -> JobVerdict:
    """The verdict on a job; `is_whole` if all its ranks were recorded."""
    if straggler.reason == "none":
        cause = max(per_rank, key=lambda one: one.alone_ns).alone_cause
        sentence = _nobody(straggler, step_ns, per_rank, collectives, is_whole)
        return JobVerdict(cause, sentence, straggler.gain, straggler.new_step_ns)
    how = HOW.get(straggler.reason, "")
    return JobVerdict(straggler.reason, straggler.sentence, straggler.gain, straggler.new_step_ns, how)


def straggler_sentence(straggler: Straggler, step_ns: float) -> str:
    """Who is waited for, why, and the step without that; empty if it is nobody."""
    if straggler.reason == "none":
        return ""
    who, new = shown_ranks(straggler.ranks), straggler.new_step_ns
    price = (
        f"Without that the step would take {duration(new.expected)} instead of {duration(step_ns)} "
        f"({speedup(straggler.gain.expected)}, range {straggler.gain.speedups})."
    )
    if straggler.reason == "link":
        return f"The link of {who} is slow: transfers take longer than equal ones elsewhere. {price}"
    if straggler.reason == "unknown":
        return f"The ranks wait for {who}, which {_has(straggler)} no recording; record all ranks. {price}"
    if set(straggler.stalled_ranks) > set(straggler.ranks):
        return (
            f"The CPUs of {shown_ranks(straggler.stalled_ranks)} stall in turn, up to {duration(straggler.extra_ns)} a "
            f"step; the job waits most for {who}. Without the stalls the step would take {duration(new.expected)} "
            f"instead of {duration(step_ns)} ({speedup(straggler.gain.expected)}, range {straggler.gain.speedups})."
        )
    words = _REASONS[straggler.reason].format(extra=duration(straggler.extra_ns))
    if len(straggler.ranks) > 1:
        words = (
            words.replace("its kernels do", "their kernels do")
            .replace("its CPU", "their CPU")
            .replace("it waits", "they wait")
        )
    place = f" (most in {straggler.place[:SHOWN_NAME]})" if straggler.place else ""
    return f"The job waits for {who}: {words}{place}. {price}"


def _has(straggler: Straggler) -> str:
    return "has" if len(straggler.ranks) == 1 else "have"


def _nobody(
    straggler: Straggler, step_ns: float, per_rank: Sequence[RankTime], collectives: int, is_whole: bool
) -> str:
    last = max(per_rank, key=lambda one: one.times_last)
    waited = sorted(one.exposed_wait_ns for one in per_rank)[len(per_rank) // 2]
    slowest = max(per_rank, key=lambda one: one.alone_ns)
    gain = straggler.last_rank_gain
    may_be_chance = gain >= SHOWN_GAIN
    useless = "fixing one rank would not make the job noticeably faster"
    who = "No straggler" if is_whole else "No straggler among the recorded ranks"
    sentences = [f"{who}: {'no rank is late by more than chance' if may_be_chance else useless}."]
    if collectives and last.times_last > MOSTLY * collectives:
        so = f"if it always does, fixing it gains {speedup(gain)}: record more steps"
        sentences.append(
            f"Rank {last.rank} arrives last at {last.times_last} of {collectives} collectives"
            f"{f'; {so}' if may_be_chance else f', but fixing it alone would gain {speedup(gain)}'}."
        )
    wait = f"Ranks wait {duration(waited)} for each other in a step of {duration(step_ns)} ({share(waited, step_ns)})."
    length = "as long" if slowest.alone_ns * SHOWN_GAIN >= step_ns else duration(slowest.alone_ns)
    alone = f"Without any waiting, rank {slowest.rank} would take {length}: {slowest.diagnosis}."
    return " ".join([*sentences, wait, alone])
