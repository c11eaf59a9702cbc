"""How evenly a job spreads its work: over ranks and steps, pipeline stages, experts and nodes. Only what is
uneven is reported."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct, to_builtins

from warpline.ranks.account import RankStepTime, RankTime
from warpline.ranks.groups import RANKS_PER_NODE
from warpline.ranks.match import PAIR, Collectives
from warpline.ranks.straggler import Straggler
from warpline.ranks.timeline import RankOutline
from warpline.ranks.waits import Waits
from warpline.ranks.words import shown_ranks
from warpline.units import duration, several, share

MIN_IMBALANCE = 0.05
"""Below this share of a step, uneven compute is not worth a sentence."""
MIN_BUBBLE = 0.05
"""Below this share of a step, waiting at sends and receives is not worth a sentence."""
MIN_UNEVEN = 1.1
"""Experts are uneven if the rank with the largest message has this multiple of the mean."""
USUALLY = 0.5
"""A rank that is the busiest in more than this share of the steps is named."""
_HOST = re.compile(r"(.+)_\d+\.\d+\.pt\.trace\.json(?:\.gz)?")
"""How torch's handler names a file: host, process, time."""


class LoadImbalance(Struct, frozen=True):
    """How much longer the busiest rank computes than the mean of all, in the mean step."""

    share: float
    """Of the busiest rank's compute."""
    lost_ns: int
    busiest: dict[int, int]
    """Steps in which each rank is the busiest."""


class Stage(Struct, frozen=True):
    """One pipeline stage, per step; means over its ranks."""

    ranks: tuple[int, ...]
    compute_ns: int
    bubble_ns: int
    """Waiting at sends and receives."""


class ExpertImbalance(Struct, frozen=True):
    """Messages of all-to-all collectives whose sizes differ by rank."""

    collectives: int
    ratio: float
    """The largest message over the mean, in the median of these collectives."""
    most: dict[int, int]
    """Collectives at which each rank has the largest message."""


class Balance(Struct, frozen=True):
    """What is uneven; None where it is not, or where the job has no such thing."""

    load: LoadImbalance | None = None
    stages: tuple[Stage, ...] = ()
    """In the order of their first ranks; empty without a pipeline."""
    experts: ExpertImbalance | None = None
    node: str | None = None
    """The host, or the ranks of the node, whose ranks are all stragglers."""
    step_ns: int = 0

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is uneven, in words."""
        found = (self._load(), self._stages(), self._experts(), self._node())
        return tuple(sentence for sentence in found if sentence)

    def to_dict(self) -> dict[str, Any]:
        """As the JSON contract has it."""
        return {
            "load": None if self.load is None else to_builtins(self.load, str_keys=True),
            "stages": to_builtins(self.stages),
            "experts": None if self.experts is None else to_builtins(self.experts, str_keys=True),
            "node": self.node,
            "sentences": list(self.sentences),
        }

    def _load(self) -> str:
        if self.load is None:
            return ""
        text = (
            f"Load imbalance: in the mean step the busiest rank computes {duration(self.load.lost_ns)} longer than the "
            f"mean of all ({share(self.load.share, 1)} of its compute)"
        )
        return f"{text}; {_who(self.load.busiest, 'step', 'it is')}."

    def _stages(self) -> str:
        bubbles = [stage.bubble_ns for stage in self.stages]
        if not bubbles or max(bubbles) < MIN_BUBBLE * self.step_ns:
            return ""
        slow = max(range(len(bubbles)), key=lambda place: self.stages[place].compute_ns)
        spread = f"{share(min(bubbles), self.step_ns)} to {share(max(bubbles), self.step_ns)}"
        return (
            f"Pipeline bubbles: its {len(bubbles)} stages wait {spread} of a step at sends and receives. Stage {slow} "
            f"({shown_ranks(self.stages[slow].ranks)}) computes longest, {duration(self.stages[slow].compute_ns)}."
        )

    def _experts(self) -> str:
        if self.experts is None:
            return ""
        return (
            f"Expert imbalance: at {several(self.experts.collectives, 'all-to-all')} the largest message is "
            f"{self.experts.ratio:.2f}× the mean; {_who(self.experts.most, 'all-to-all', 'that is')}."
        )

    def _node(self) -> str:
        return f"A slow node: the ranks that the job waits for are all those of {self.node}." if self.node else ""


def _who(times: Mapping[int, int], what: str, is_so: str) -> str:
    """Which rank it is mostly, or that it is another one each time."""
    rank = max(times, key=lambda one: times[one])
    total = sum(times.values())
    if times[rank] > USUALLY * total:
        return f"{is_so} rank {rank} at {times[rank]} of {several(total, what)}"
    return f"{is_so} another rank from {what} to {what}"


def balance_of(
    per_rank: Sequence[RankTime],
    steps: Sequence[Sequence[RankStepTime]],
    outlines: Sequence[RankOutline],
    collectives: Collectives,
    waits: Waits,
) -> Balance:
    """What is uneven in a job."""
    stages = _stages(per_rank, outlines, collectives, waits)
    step_ns = max(one.step_ns for one in per_rank)
    return Balance(None if stages else _load(steps, step_ns), stages, _experts(outlines, collectives), step_ns=step_ns)


def _load(steps: Sequence[Sequence[RankStepTime]], step_ns: int) -> LoadImbalance | None:
    """Of ranks that do the same work; stages of a pipeline do not."""
    compute = np.array([[step.compute_ns for step in row] for row in steps], np.float64)
    most, mean = compute.max(axis=0), compute.mean(axis=0)
    lost_ns = float((most - mean).mean())
    if lost_ns < MIN_IMBALANCE * step_ns:
        return None
    busiest = Counter(steps[place][0].rank for place in np.argmax(compute, axis=0).tolist())
    return LoadImbalance(round(lost_ns / float(most.mean()), 4), round(lost_ns), dict(sorted(busiest.items())))


def _stages(
    per_rank: Sequence[RankTime], outlines: Sequence[RankOutline], collectives: Collectives, waits: Waits
) -> tuple[Stage, ...]:
    """Ranks that share a group whose members do not send to each other are replicas of a stage."""
    if not bool(collectives.table.kind.equal(*PAIR).any()):
        return ()
    stage_of = {one.rank: one.rank for one in outlines}
    pairs: set[tuple[int, ...]] = set()
    groups: set[tuple[int, ...]] = set()
    for one in collectives:
        (pairs if one.kind in PAIR else groups).add(tuple(sorted(one.rows)))
    neighbours = {rank: {other for pair in pairs if rank in pair for other in pair} - {rank} for rank in stage_of}
    for members in groups:
        if not any(set(members) & neighbours[rank] for rank in members):
            joined = {stage_of[rank] for rank in members}
            stage_of = {rank: min(joined) if stage in joined else stage for rank, stage in stage_of.items()}
    if len(set(stage_of.values())) < 2:
        return ()
    waited = {
        one.rank: float(waits.wait_ns[one.rank][one.kind.equal(*PAIR)].sum()) / len(one.done_ns) for one in outlines
    }
    compute = {one.rank: one.compute_ns for one in per_rank}
    found = []
    for stage in sorted(set(stage_of.values())):
        ranks = tuple(rank for rank, own in stage_of.items() if own == stage)
        means = [round(float(np.mean([times[rank] for rank in ranks]))) for times in (compute, waited)]
        found.append(Stage(ranks, means[0], means[1]))
    return tuple(found)


def _experts(outlines: Sequence[RankOutline], collectives: Collectives) -> ExpertImbalance | None:
    """The all-to-alls whose messages differ by rank."""
    chosen = np.flatnonzero(collectives.table.kind.equal("all_to_all"))
    sizes_of = {one.rank: one.message_bytes for one in outlines}
    ratios, most = [], Counter[int]()
    for number in chosen.tolist():
        sizes = {rank: int(sizes_of[rank][row]) for rank, row in collectives[number].rows.items()}
        mean = float(np.mean(list(sizes.values())))
        if min(sizes.values()) < 0 or mean <= 0:
            continue
        largest = max(sizes, key=lambda rank: sizes[rank])
        if sizes[largest] >= MIN_UNEVEN * mean:
            ratios.append(sizes[largest] / mean)
            most[largest] += 1
    if 2 * len(ratios) < max(len(chosen), 1):
        return None
    return ExpertImbalance(len(ratios), round(float(np.median(ratios)), 3), dict(sorted(most.items())))


def slow_node(straggler: Straggler, ranks: Sequence[int], files: Mapping[int, Path]) -> str | None:
    """The node whose ranks are all stragglers, where the job has other nodes too: by the hosts in the names of its
    files, else by blocks of consecutive ranks."""
    matches = {rank: _HOST.fullmatch(path.name) for rank, path in files.items()}
    if straggler.reason in {"none", "link"} or len(straggler.ranks) < 2:
        return None
    by_name = len(matches) == len(ranks) and all(matches.values())
    nodes: dict[str, set[int]] = {}
    for rank in ranks:
        match = matches.get(rank)
        block = rank // RANKS_PER_NODE * RANKS_PER_NODE
        name = match[1] if by_name and match else f"ranks {block}–{block + RANKS_PER_NODE - 1}"
        nodes.setdefault(name, set()).add(rank)
    found = [name for name, members in nodes.items() if members == set(straggler.ranks)]
    return found[0] if found and len(nodes) > 1 else None
