"""Names the ranks that the job waits for: those that, fixed in a replay of all ranks, make the job faster.

The rank that waits least is only a suspect: who is late at no cost, and who is late once by a little, is not named.
A fixed rank does what the median of its peers does, segment by segment.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from msgspec import Struct

from warpline.estimate import NOTICEABLE_GAIN, SHOWN_GAIN, Estimate
from warpline.ranks.clocks import DEVIATION_OVER_MEDIAN
from warpline.ranks.match import PAIR, Collectives
from warpline.ranks.program import Recording
from warpline.ranks.reasons import Reason, Why, why
from warpline.ranks.replay import JointReplay, Scenario
from warpline.ranks.timeline import Timelines
from warpline.ranks.waits import Waits
from warpline.trace.arrays import NONE, Floats, Int64s, combinations, grouped

NOISE_FACTOR = 4.0
"""A step is late if it is longer than its peers' by this multiple of their usual difference."""
LATE_SHARE = 0.02
"""And by this share of the job's step."""
OFTEN = 0.4
"""A rank that is late in this share of its steps is late; a little lateness here and there is jitter."""
VERY_LATE_SHARE = 0.1
"""And so is one that is once late by this share of the job's step."""
MIN_PART = 0.25
"""Of several late ranks, those with less than this part of the latest one's lateness are not named."""
AS_GOOD = 0.93
"""A smaller set of ranks is named if fixing it gains this part of what the larger set does."""
SLOW_STAGE = 1.08
"""A pipeline stage is slow if it computes for this multiple of the median stage."""
SLOW_LINK, SLOW_LINK_OF_TWO = 1.25, 1.5
"""A group's link is slow if its transfers take this multiple of equal ones of other groups (of only one other)."""
SLOW_AT_TIMES = 1.5
"""Some transfers of a group are slow if they take this multiple of its median."""
LINK_NOISE_NS = 20_000.0
"""Transfers vary by as much without a cause: ranks leave a collective up to 24 µs apart (see `clocks`)."""
MIN_TRANSFERS, MAX_SLOW_SHARE = 6, 0.4
"""Only a minority of several like transfers can be called slow by their own median."""
SAVING_RANGE = (0.9, 1.2)
"""The true saving as a part of the predicted one. In simulated jobs nine of ten lie between 0.92 and 1.07
(benchmarks/ranks); where compute is slower beside NCCL kernels, fewer waits save more than the replay knows."""
STALL_NS = 1_000_000.0
"""A launch that comes so much later than on other ranks is a stall of the host: the thread was off the CPU. Time slices
of schedulers and the periods of CPU quotas are milliseconds."""
ABSENT_GAIN = 1.05
"""Waiting for ranks without a recording looks like transfers that vary; below this gain nothing is said of it."""
UNHURRIED = 10
"""Percentile of like transfers that shows the time without waiting for a rank that was not recorded."""


class Suspicion(Struct, frozen=True):
    """A set of ranks and the step of the job with them fixed."""

    ranks: tuple[int, ...]
    kind: str
    """`rank`, `stage`, `stalls`, `link` or `absent`."""
    step_ns: Estimate
    """Low, expected, high: fixed as the fastest, the median and the slowest quarter of the peers."""
    late_steps: tuple[int, ...] = ()

    def gain(self, base_ns: float) -> float:
        """The job's step now over the step with the ranks fixed."""
        return base_ns / max(self.step_ns.expected, 1.0)


class Straggler(Struct, frozen=True):
    """Who is waited for, why, and what it costs."""

    ranks: tuple[int, ...]
    reason: Reason
    gain: Estimate
    """The job's step now over its step with the reason removed."""
    new_step_ns: Estimate
    extra_ns: float = 0.0
    """How much more of the reason these ranks have per late step than their peers."""
    place: str = ""
    """The kernel or op with most of it."""
    late_steps: tuple[int, ...] = ()
    """The steps in which they are late, by their own numbers."""
    last_rank: int | None = None
    """The rank that arrives last most often."""
    last_rank_gain: float = 1.0
    """What fixing that rank alone would gain."""
    stalled_ranks: tuple[int, ...] = ()
    """Where hosts stall in turn, all ranks whose stalls must go for that gain."""
    sentence: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As the JSON contract has it."""
        return {
            "ranks": list(self.ranks),
            "reason": self.reason,
            "sentence": self.sentence,
            "gain": self.gain.rounded(4).to_dict(),
            "new_step_ns": self.new_step_ns.rounded().to_dict(),
            "extra_ns": round(self.extra_ns),
            "place": self.place,
            "late_steps": list(self.late_steps),
            "last_rank": self.last_rank,
            "last_rank_gain": round(self.last_rank_gain, 4),
            "stalled_ranks": list(self.stalled_ranks),
        }


class Search:
    """The search for the straggler of one job."""

    def __init__(
        self,
        recording: Recording,
        collectives: Collectives,
        waits: Waits,
        absent: Sequence[int],
        unknown: Sequence[int],
    ) -> None:
        """`absent` ranks have no recording; `unknown` ones wait for these alone, so they may look late and are not."""
        self.collectives, self.waits, self.recording = collectives, waits, recording
        self.absent, self.unknown = tuple(absent), tuple(unknown)
        self.replay = JointReplay(recording.programs(), collectives.arrived, waits.transfer_ns)
        self.base_ns = self.replay.run().step_ns

    @cached_property
    def waited_ns(self) -> dict[int, float]:
        """How long each rank waits for others."""
        return {rank: float(waited.sum()) for rank, waited in self.waits.wait_ns.items()}

    @cached_property
    def peers(self) -> dict[int, list[int]]:
        """For each rank the others that run the same program."""
        return self.replay.peers

    @cached_property
    def alone_ns(self) -> dict[int, Floats]:
        """The steps of each rank if nobody else were late."""
        return self.replay.alone()

    @cached_property
    def excess_ns(self) -> dict[int, Floats]:
        """How much longer each step of a rank is than the median of its peers and itself."""
        usual: dict[tuple[int, ...], Floats] = {}
        found = {}
        for rank, peers in self.peers.items():
            alike = tuple(sorted([rank, *peers]))
            if alike not in usual:
                usual[alike] = np.median([self.alone_ns[one] for one in alike], axis=0)
            found[rank] = self.alone_ns[rank] - usual[alike]
        return {rank: found[rank] for rank in self.alone_ns}

    @cached_property
    def noise_ns(self) -> float:
        """How much a rank's difference from its peers usually changes from step to step (standard deviation); of a
        single step, the usual difference. A rank that is always late by as much is late, not noisy."""
        own = [excess[min(1, len(excess) - 1) :] for excess in self.excess_ns.values()]
        spread = [np.abs(excess - (np.median(excess) if len(excess) > 1 else 0.0)) for excess in own]
        return DEVIATION_OVER_MEDIAN * float(np.median([np.median(one) for one in spread]))

    @cached_property
    def late_steps(self) -> dict[int, tuple[int, ...]]:
        """The steps in which each rank is late."""
        bar = max(NOISE_FACTOR * self.noise_ns, LATE_SHARE * self.base_ns)
        return {rank: tuple(np.flatnonzero(excess > bar).tolist()) for rank, excess in self.excess_ns.items()}

    @cached_property
    def late_ranks(self) -> list[int]:
        """Ranks that are late often or very, the latest first."""

        def lateness(rank: int) -> float:
            return float(self.excess_ns[rank][list(self.late_steps[rank])].sum())

        found = []
        for rank, excess in self.excess_ns.items():
            steps = len(excess)
            is_often = len(self.late_steps[rank]) >= max(min(2, steps), OFTEN * steps)
            is_very = bool(self.late_steps[rank]) and excess.max() > VERY_LATE_SHARE * self.base_ns
            if (is_often or is_very) and rank not in self.unknown:
                found.append(rank)
        found.sort(key=lateness, reverse=True)
        return [rank for rank in found if lateness(rank) > MIN_PART * lateness(found[0])]

    @cached_property
    def slow_half(self) -> tuple[int, ...]:
        """The slower ranks where up to half of all are slow alike, as on a slow node; the median does not show it."""
        totals = {rank: float(own.sum()) for rank, own in self.alone_ns.items() if rank not in self.unknown}
        if len(totals) < 2:
            return ()
        ordered = sorted(totals, key=lambda rank: totals[rank])
        steps = [totals[after] - totals[before] for before, after in pairwise(ordered)]
        upper = int(np.argmax(steps)) + 1
        count = len(self.alone_ns[ordered[0]])
        is_clear = max(steps) > max(LATE_SHARE * self.base_ns * count, NOISE_FACTOR * self.noise_ns * count**0.5)
        return tuple(ordered[upper:]) if is_clear and 2 * upper >= len(ordered) else ()

    def straggler(self) -> Suspicion | None:
        """Whom the job waits for; None if fixing nobody makes it noticeably faster."""
        found = [self._of_ranks(), self._of_stage(), self._of_links()]
        best = max(filter(None, found), key=lambda one: one.gain(self.base_ns), default=None)
        stalls = self._of_stalls()
        gain = 1.0 if best is None else best.gain(self.base_ns)
        if stalls is not None and gain - 1 < AS_GOOD * (stalls.gain(self.base_ns) - 1):
            return stalls
        if self.absent and (best is None or best.gain(self.base_ns) < ABSENT_GAIN):
            absent = self._of_absent()
            if absent.gain(self.base_ns) > ABSENT_GAIN:
                return absent
        if best is None:
            return None
        is_sure = best.kind != "rank" or bool(set(best.ranks) & {*self.late_ranks, *self.slow_half})
        if not is_sure and not self._is_beyond_chance(best.ranks):
            return None
        needed = SHOWN_GAIN if is_sure else 2 * SHOWN_GAIN - 1
        worst = self.base_ns / max(best.step_ns.high, 1.0)
        return best if best.gain(self.base_ns) >= needed and worst >= NOTICEABLE_GAIN else None

    def _is_beyond_chance(self, ranks: Sequence[int]) -> bool:
        """Whether one of the ranks is later over all steps than the differences from step to step explain."""
        count = len(self.excess_ns[ranks[0]])
        return max(float(self.excess_ns[rank].sum()) for rank in ranks) > NOISE_FACTOR * self.noise_ns * count**0.5

    def last_rank(self) -> tuple[int | None, float]:
        """The rank that arrives last most often, and what fixing it alone would gain."""
        if not len(self.waits.last):
            return None, 1.0
        rank = int(np.bincount(self.waits.last).argmax())
        return rank, self.gains([(rank,)])[(rank,)]

    def _of_ranks(self) -> Suspicion | None:
        """The ranks that gain most when fixed: one suspect, or all late ranks without those that do not matter."""
        ranks = [rank for rank in self.alone_ns if rank not in self.unknown]
        slowest = sorted(ranks, key=lambda rank: -float(self.alone_ns[rank].sum()))
        least_waiting = sorted(ranks, key=lambda rank: self.waited_ns[rank])
        singles = dict.fromkeys([*least_waiting[:2], *slowest[:2], *self.late_ranks[:2]])
        sets: list[tuple[int, ...]] = [(rank,) for rank in singles if self.peers[rank]]
        late = tuple(self.late_ranks)
        if 1 < len(late) < len(ranks):
            sets.append(self._without_bystanders(late))
        if 1 < len(self.slow_half) != len(late):
            sets.append(self.slow_half)
        gains = self.gains(sets)
        best = max(gains, key=lambda chosen: gains[chosen], default=None)
        if best is None:
            return None
        for chosen in sorted(gains, key=len, reverse=True):
            if len(chosen) < len(best) and gains[chosen] - 1 > AS_GOOD * (gains[best] - 1):
                best = chosen
        step_ns = Estimate(*sorted(self._steps_ns([self.replay.like_peers(best, share) for share in (25, 50, 75)])))
        late_steps = sorted({step for rank in best for step in self.late_steps[rank]})
        return Suspicion(tuple(sorted(best)), "rank", step_ns, tuple(late_steps))

    def _without_bystanders(self, late: tuple[int, ...]) -> tuple[int, ...]:
        """The late ranks without those whose fix adds nothing."""
        chosen = late
        gain = self.gains([chosen])[chosen] - 1
        for rank in reversed(late):
            fewer = tuple(other for other in chosen if other != rank)
            if fewer and self.gains([fewer])[fewer] - 1 > (1 - (1 - AS_GOOD) / len(late)) * gain:
                chosen = fewer
        return chosen

    def gains(self, sets: Sequence[tuple[int, ...]]) -> dict[tuple[int, ...], float]:
        """The job's step over its step if all ranks of a set did what the median of their peers does."""
        each = list(dict.fromkeys(sets))
        steps = self._steps_ns([self.replay.like_peers(chosen, 50) for chosen in each])
        return {chosen: self.base_ns / max(step_ns, 1.0) for chosen, step_ns in zip(each, steps, strict=True)}

    def _steps_ns(self, scenarios: Sequence[Scenario]) -> list[float]:
        return [replayed.step_ns for replayed in self.replay.run_all(scenarios)] if scenarios else []

    def _of_stage(self) -> Suspicion | None:
        """A pipeline stage that computes longer than the others."""
        stages = {tuple(sorted([rank, *same])) for rank, same in self.peers.items()}
        if len(stages) < 2 or not self.collectives.table.kind.equal(*PAIR).any():
            return None
        times = {stage: float(np.median([self.alone_ns[rank].sum() for rank in stage])) for stage in stages}
        usual = float(np.median(list(times.values())))
        slow = max(times, key=lambda stage: times[stage])
        if times[slow] < SLOW_STAGE * usual or not set(slow).isdisjoint(self.unknown):
            return None
        (step_ns,) = self._steps_ns([self.replay.scaled(slow, usual / times[slow])])
        return Suspicion(slow, "stage", Estimate(step_ns, step_ns, step_ns), tuple(range(len(self.alone_ns[slow[0]]))))

    def _of_stalls(self) -> Suspicion | None:
        """Stalls of the CPU that hit ranks in turn: fixing one rank helps little, because then another one stalls.

        Named are the ranks whose late arrivals hold the others up most.
        """
        stalled_ns = self.recording.stalls_ns(STALL_NS)
        if max(stalled_ns.values()) < VERY_LATE_SHARE * self.base_ns:
            return None
        step_ns = Estimate(*(self._calm_step_ns(stall_ns) for stall_ns in (0.0, STALL_NS, LATE_SHARE * self.base_ns)))
        if self.base_ns / step_ns.expected < 1 + VERY_LATE_SHARE:
            return None
        blame = self.waits.blame_ns
        most = max(blame.values())
        ranks = tuple(rank for rank in sorted(blame) if blame[rank] > MIN_PART * most and stalled_ns[rank] > 0)
        return Suspicion(ranks, "stalls", step_ns, ()) if ranks else None

    def _calm_step_ns(self, stall_ns: float) -> float:
        """The job's step without host stalls of at least so long."""
        calm = JointReplay(self.recording.calm_programs(stall_ns), self.collectives.arrived, self.waits.transfer_ns)
        return calm.run().step_ns

    def _of_links(self) -> Suspicion | None:
        """Groups whose transfers are slower than equal ones of other groups, or than their own at other times."""
        healed, ranks = self.replay.transfer_ns.copy(), set()
        for by_group in self._alike(whole_only=True).values():
            usual_of = {group: float(np.median(self.replay.transfer_ns[rows])) for group, rows in by_group.items()}
            few = len(usual_of) <= 2
            usual = min(usual_of.values()) if few else float(np.median(list(usual_of.values())))
            factor = SLOW_LINK_OF_TWO if few else SLOW_LINK
            for group, rows in by_group.items():
                times = self.replay.transfer_ns[rows]
                slow = times > SLOW_AT_TIMES * usual_of[group] + LINK_NOISE_NS
                if len(rows) >= MIN_TRANSFERS and 0 < slow.sum() < MAX_SLOW_SHARE * len(rows):
                    healed[rows[slow]] = usual_of[group]
                    ranks |= set(self.collectives[int(rows[0])].rows)
                if len(by_group) > 1 and usual_of[group] > factor * usual + LINK_NOISE_NS / 4:
                    healed[rows] = np.minimum(healed[rows], usual)
                    ranks |= set(self.collectives[int(rows[0])].rows)
        if not ranks:
            return None
        step_ns = self.replay.run(healed).step_ns
        return Suspicion(tuple(sorted(ranks)), "link", Estimate(step_ns, step_ns, step_ns))

    def _of_absent(self) -> Suspicion:
        """The ranks without a recording: the job's step if every transfer were as short as the shortest like it."""
        healed = self.replay.transfer_ns.copy()
        for by_group in self._alike(whole_only=False).values():
            rows = np.concatenate(list(by_group.values()))
            healed[rows] = np.minimum(healed[rows], np.percentile(healed[rows], UNHURRIED))
        step_ns = self.replay.run(healed).step_ns
        return Suspicion(self.absent, "absent", Estimate(step_ns, step_ns, step_ns))

    def _alike(self, whole_only: bool) -> dict[int, dict[int, Int64s]]:
        """Collectives of the same kind, size and number of ranks, by group; without a size, of the same place."""
        table, count = self.collectives.table, self.collectives.arrived
        chosen = self.collectives.synchronises & ((count >= self.collectives.member_counts) | (not whole_only))
        rows = np.flatnonzero(chosen)
        size = np.where(table.message_bytes != NONE, table.message_bytes, -1 - table.order)
        which = combinations(table.kind.codes[rows], size[rows], count[rows])[1]
        return {kind: dict(grouped(same, table.group.codes[same])) for kind, same in grouped(rows, which)}


def find_straggler(search: Search, timelines: Timelines, measured_ns: float) -> Straggler:
    """Whom the job waits for, why, and its step without that."""
    found = search.straggler()
    last_rank, last_gain = search.last_rank()
    if found is None:
        none, same = Estimate(1.0, 1.0, 1.0), Estimate(measured_ns, measured_ns, measured_ns)
        return Straggler((), "none", none, same, last_rank=last_rank, last_rank_gain=last_gain)
    reason = _why(search, found, timelines)
    doubt = abs(search.base_ns / measured_ns - 1)
    expected = found.gain(search.base_ns)
    less, more = (1 + part * (expected - 1) for part in SAVING_RANGE)
    gain = Estimate(
        max(min(less, search.base_ns / found.step_ns.high) - doubt, 1.0),
        expected,
        max(more, search.base_ns / found.step_ns.low) + doubt,
    )
    new_step_ns = Estimate(measured_ns / gain.high, measured_ns / gain.expected, measured_ns / gain.low)
    late = tuple(timelines.numbers[step] for step in found.late_steps)
    is_stalled = found.kind == "stalls"
    stalled = [rank for rank, time_ns in search.recording.stalls_ns(STALL_NS).items() if time_ns] if is_stalled else []
    return Straggler(
        ranks=found.ranks,
        reason=reason.reason,
        gain=gain,
        new_step_ns=new_step_ns,
        extra_ns=reason.extra_ns,
        place=reason.place,
        late_steps=late,
        last_rank=last_rank,
        last_rank_gain=last_gain,
        stalled_ranks=tuple(sorted(stalled)),
    )


def _why(search: Search, found: Suspicion, timelines: Timelines) -> Why:
    """The reason, by the rank of the set that is latest."""
    if found.kind == "link":
        return Why("link", 0.0)
    if found.kind == "absent":
        return Why("unknown", 0.0)
    steps = found.late_steps or tuple(range(len(timelines.numbers)))
    if found.kind == "stalls":
        stalled_ns = search.recording.stalls_ns(STALL_NS)
        return Why("pause", max(stalled_ns[rank] for rank in found.ranks) / len(steps))
    latest = max(found.ranks, key=lambda rank: float(search.excess_ns[rank][list(steps)].sum()))
    peers = [rank for rank in search.peers[latest] if rank not in found.ranks]
    others = peers or [rank for rank in timelines.ranks if rank not in found.ranks]
    return why(timelines.of(latest), map(timelines.of, others), steps)
