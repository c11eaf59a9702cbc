"""Two jobs of the same program: whether B is faster, and which ranks, groups and kernels changed.

The verdict is that of `warpline compare` (see `warpline.compare.spread`), of the job's steps. Of a step, the compute
and transfers of the rank with most of both count as the device's work; the rest is waiting.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct, to_builtins

from warpline.compare.comparison import Verdict
from warpline.compare.spread import RunTime, difference
from warpline.compare.words import in_words
from warpline.estimate import Estimate
from warpline.ranks.groups import GroupTime
from warpline.ranks.job import Job
from warpline.ranks.words import shown_ranks
from warpline.units import duration, several

SCHEMA = "warpline.job_comparison/1"

NOTEWORTHY = 0.1
"""A change is named if it is this share of the job's change."""
ALIKE = 0.5
"""All ranks changed if the median rank changed by this share of the one that changed most."""


class Changed(Struct, frozen=True):
    """One number of both jobs, per step."""

    a_ns: int
    b_ns: int

    @property
    def change_ns(self) -> int:
        """How much longer in B."""
        return self.b_ns - self.a_ns

    def to_dict(self) -> dict[str, int]:
        """As the JSON contract has it."""
        return {"a_ns": self.a_ns, "b_ns": self.b_ns, "change_ns": self.change_ns}


class ChangedRank(Struct, frozen=True):
    """One rank in both jobs; the changes of the last four sum to that of the step."""

    rank: int
    step: Changed
    compute: Changed
    transfer: Changed
    wait: Changed
    idle: Changed


class ChangedGroup(Struct, frozen=True):
    """One process group in both jobs."""

    ranks: tuple[int, ...]
    transfer: Changed
    wait: Changed
    bandwidth: tuple[float | None, float | None]
    """Bus bandwidth in A and in B."""


class ChangedKernel(Struct, frozen=True):
    """One kernel in both jobs: its mean time over the ranks, and the rank on which it changed most."""

    name: str
    time: Changed
    most_on_rank: int
    most: Changed


class JobComparison(Struct, frozen=True):
    """Two jobs and the difference between them."""

    verdict: Verdict
    reasons: tuple[str, ...]
    a: Job
    b: Job
    ratio: Estimate
    """Step of B over that of A."""
    p_value: float | None
    ranks: tuple[ChangedRank, ...]
    """The largest change of compute, transfer and idle time first."""
    groups: tuple[ChangedGroup, ...]
    kernels: tuple[ChangedKernel, ...]
    causes: tuple[str, ...]
    """What changed most, in words."""

    @property
    def change_ns(self) -> int:
        """How much longer the step of B is."""
        return round(self.b.step_ns) - round(self.a.step_ns)

    @property
    def sentence(self) -> str:
        """The verdict with the times it rests on."""
        times = f"{duration(self.a.step_ns)} → {duration(self.b.step_ns)} a step"
        if self.verdict == "not_comparable":
            return f"Not comparable: {times}."
        known = f"{times}, {in_words(self.ratio)}"
        if self.verdict == "inconclusive":
            return f"Inconclusive: {known}."
        return f"B is {'as fast as' if self.verdict == 'same' else f'{self.verdict} than'} A: {known}."

    def to_dict(self) -> dict[str, Any]:
        """The JSON contract `warpline.job_comparison/1`."""
        return {
            "schema": SCHEMA,
            "verdict": self.verdict,
            "sentence": self.sentence,
            "reasons": list(self.reasons),
            "a": _side(self.a),
            "b": _side(self.b),
            "change": {
                "step_ns": self.change_ns,
                "ratio": to_builtins(self.ratio.rounded(5)),
                "p_value": self.p_value,
                "causes": list(self.causes),
            },
            "ranks": [
                {"rank": one.rank}
                | {name: getattr(one, name).to_dict() for name in ("step", "compute", "transfer", "wait", "idle")}
                for one in self.ranks
            ],
            "groups": [
                {"ranks": list(one.ranks), "transfer": one.transfer.to_dict(), "wait": one.wait.to_dict()}
                | {"bus_bandwidth": {"a": one.bandwidth[0], "b": one.bandwidth[1]}}
                for one in self.groups
            ],
            "kernels": [
                {"name": one.name, **one.time.to_dict(), "most_on_rank": one.most_on_rank, "most": one.most.to_dict()}
                for one in self.kernels
            ],
        }


def compare_jobs(a: Job, b: Job, least_effect: float, *, anyway: bool = False) -> JobComparison:
    """Compare two jobs; with `anyway`, what would forbid it becomes a remark."""
    hindered, remarks = list(_obstacles(a, b)), []
    if anyway and set(a.ranks) & set(b.ranks):
        hindered, remarks = [], [f"compared anyway, although {reason}" for reason in hindered]
    found = difference((_run_time(a),), (_run_time(b),), least_effect)
    ranks = _changed_ranks(a, b)
    groups = _changed_groups(a, b)
    kernels = _changed_kernels(a, b)
    change_ns = b.step_ns - a.step_ns
    return JobComparison(
        "not_comparable" if hindered else found.verdict,
        (*hindered, *remarks, *_remarks(a, b, found.verdict if not hindered else "")),
        a,
        b,
        found.ratio,
        found.p_value,
        ranks,
        groups,
        kernels,
        () if hindered or found.verdict == "same" else tuple(_causes(ranks, groups, kernels, change_ns)),
    )


def _side(job: Job) -> dict[str, Any]:
    straggler = job.straggler
    return {
        "name": job.name,
        "step_ns": round(job.step_ns),
        "steps": len(job.step_numbers),
        "ranks": list(job.ranks),
        "straggler": {"ranks": list(straggler.ranks), "reason": straggler.reason},
    }


def _run_time(job: Job) -> RunTime:
    work_ns = max(one.compute_ns + one.exposed_transfer_ns for one in job.per_rank)
    work_ns = min(work_ns, round(job.step_ns))
    done_ns = np.max([one.done_ns for one in job.outlines], axis=0)
    start_ns = min(float(one.begin_ns[0]) for one in job.outlines)
    lengths = np.diff(done_ns) if len(done_ns) > 1 else done_ns - start_ns
    return RunTime(work_ns, job.step_ns - work_ns, np.maximum(np.rint(lengths), 1).astype(np.int64))


def _obstacles(a: Job, b: Job) -> Sequence[str]:
    """Why the two cannot be compared."""
    found = []
    if a.world_size != b.world_size:
        found.append(f"A ran on {several(a.world_size, 'rank')} and B on {several(b.world_size, 'rank')}")
    elif not set(a.ranks) & set(b.ranks):
        found.append(f"A has {shown_ranks(a.ranks)} and B {shown_ranks(b.ranks)}: they have no rank in common")
    kernels = [{name for times in _kernels(job).values() for name in times} for job in (a, b)]
    if all(kernels) and not kernels[0] & kernels[1]:
        found.append("A and B have no kernels in common: they are not the same program")
    names = [{name for name in job.devices.values() if name} for job in (a, b)]
    if all(names) and names[0] != names[1]:
        found.append(f"A ran on {', '.join(sorted(names[0]))} and B on {', '.join(sorted(names[1]))}")
    return found


def _remarks(a: Job, b: Job, verdict: str) -> Sequence[str]:
    found = []
    alone = sorted(set(a.ranks) ^ set(b.ranks))
    if alone and set(a.ranks) & set(b.ranks):
        found.append(f"{shown_ranks(alone)} {'is' if len(alone) == 1 else 'are'} recorded on one side only")
    for name, job in (("A", a), ("B", b)):
        if len(job.step_numbers) < 2:
            found.append(f"{name} has one step; record ten or more to see how steady it is")
    if verdict == "inconclusive":
        found.append("the interval includes no change; record more steps of both")
    return found


def _changed_ranks(a: Job, b: Job) -> tuple[ChangedRank, ...]:
    before, after = ({one.rank: one for one in job.per_rank} for job in (a, b))
    fields = ("step_ns", "compute_ns", "exposed_transfer_ns", "exposed_wait_ns", "idle_ns")
    found = [
        ChangedRank(rank, *(Changed(getattr(before[rank], name), getattr(after[rank], name)) for name in fields))
        for rank in before
        if rank in after
    ]
    return tuple(sorted(found, key=_own_change, reverse=True))


def _own_change(one: ChangedRank) -> int:
    """How much of the rank's own time changed; waiting is that of others."""
    return max(abs(part.change_ns) for part in (one.compute, one.transfer, one.idle))


def _changed_groups(a: Job, b: Job) -> tuple[ChangedGroup, ...]:
    before, after = (_by_ranks(job.groups) for job in (a, b))
    found = []
    for ranks in {**before, **after}:
        sides = [side.get(ranks, ()) for side in (before, after)]
        transfer, wait = (
            Changed(*(sum(getattr(group, name) for group in side) for side in sides))
            for name in ("transfer_ns", "wait_ns")
        )
        speeds = [max((group.bus_bandwidth or 0.0 for group in side), default=0.0) or None for side in sides]
        found.append(ChangedGroup(ranks, transfer, wait, (speeds[0], speeds[1])))
    return tuple(sorted(found, key=lambda one: abs(one.transfer.change_ns) + abs(one.wait.change_ns), reverse=True))


def _by_ranks(groups: Sequence[GroupTime]) -> dict[tuple[int, ...], list[GroupTime]]:
    found: dict[tuple[int, ...], list[GroupTime]] = defaultdict(list)
    for group in groups:
        found[group.ranks].append(group)
    return found


def _changed_kernels(a: Job, b: Job) -> tuple[ChangedKernel, ...]:
    before, after = _kernels(a), _kernels(b)
    common = sorted(before.keys() & after.keys())
    if not common:
        return ()
    names = {name for times in (*before.values(), *after.values()) for name in times}
    found = []
    for name in names:
        by_rank = {
            rank: Changed(round(before[rank].get(name, 0.0)), round(after[rank].get(name, 0.0))) for rank in common
        }
        most = max(common, key=lambda rank: abs(by_rank[rank].change_ns))
        mean = Changed(
            round(np.mean([one.a_ns for one in by_rank.values()])),
            round(np.mean([one.b_ns for one in by_rank.values()])),
        )
        found.append(ChangedKernel(name, mean, most, by_rank[most]))
    return tuple(sorted(found, key=lambda one: (-abs(one.most.change_ns), one.name)))


def _kernels(job: Job) -> dict[int, dict[str, float]]:
    """Time of each kernel of each rank, per step; collectives are in the groups."""
    return {
        line.rank: {name: time / len(line.steps) for name, time in line.kernel_ns().items() if time}
        for line in job.timelines
    }


def _causes(
    ranks: Sequence[ChangedRank],
    groups: Sequence[ChangedGroup],
    kernels: Sequence[ChangedKernel],
    change_ns: float,
) -> Sequence[str]:
    """What changed in the same direction as the job's step, the largest first."""
    least_ns = NOTEWORTHY * abs(change_ns)
    direction = 1 if change_ns > 0 else -1
    found: list[tuple[float, str]] = []

    def of_ranks(part: str, one_does: str, many_do: str) -> None:
        changes = {one.rank: direction * getattr(one, part).change_ns for one in ranks}
        most_ns = max(changes.values(), default=0)
        if most_ns <= least_ns:
            return
        who = [rank for rank, change in changes.items() if change > ALIKE * most_ns]
        subject = "all ranks" if len(who) == len(changes) > 1 else shown_ranks(who)
        how = f"{duration(most_ns)} {'longer' if direction > 0 else 'less'}"
        found.append((most_ns, f"{subject} {many_do if len(who) > 1 else one_does} {how} a step"))

    of_ranks("compute", "computes", "compute")
    of_ranks("idle", "is idle", "are idle")
    for group in groups:
        if direction * group.transfer.change_ns > least_ns:
            how = f"{duration(abs(group.transfer.change_ns))} {'longer' if direction > 0 else 'less'}"
            found.append((abs(group.transfer.change_ns), f"transfers of {shown_ranks(group.ranks)} take {how} a step"))
    sentences = [text for _, text in sorted(found, reverse=True)]
    worst = next((one for one in kernels if direction * one.most.change_ns > least_ns), None)
    if worst is not None:
        times = f"{duration(worst.most.a_ns)} → {duration(worst.most.b_ns)}"
        sentences.append(f"{worst.name[:60]} on rank {worst.most_on_rank}: {times} a step")
    return sentences
