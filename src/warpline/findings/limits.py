"""The limits of a step: what it would take if one resource after the other were free. They decide the cause.

Each row is replayed on the graph without a profiler, with recording that cost little, as expected and much, and on a
calm host where the one that recorded was slow. A row that is first in all of them is the cause; rows that change
places with it, or lie within a tenth of it, are one answer, and those with more time at stake are named first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from warpline.estimate import CLEAR_GAIN, SHOWN_GAIN, Estimate
from warpline.findings.model import Finding
from warpline.fixes.evidence import Evidence
from warpline.replay.bare_step import CASES, EXPECTED_STEP
from warpline.replay.ranges import GAIN
from warpline.replay.resources import ALL_BUT_KERNELS, FreeResources, Resource

MIN_GAIN = 1.10
"""A resource whose removal gives less than a tenth is no cause."""
TOGETHER = 0.9
"""Resources whose gains differ by a tenth or less are named together."""
OF_KERNELS = ("kernel", "memory")
"""Causes whose fixes make kernels faster: what an op moves for its own kernel belongs to that kernel."""
WELL_KNOWN = 0.2
"""A fix of which 80 % of the blind errors are smaller than this, as a logarithm, does what its replay says."""
CALM_HOST = len(CASES)
"""Position of the calm host among the gains of a limit, where the one that recorded was slow."""


class Limit(Struct, frozen=True):
    """The step if one resource were free."""

    cause: str
    """A cause, or `unknown` for delays without a recorded reason."""
    step_ns: Estimate
    gain: Estimate
    now_ns: int
    """Its time on the critical path of the step as it is."""
    gains: tuple[float, ...] = ()
    """Its gain in each of the replayed graphs."""

    @property
    def at_stake_ns(self) -> float:
        """What of its time could be gone: all of it, but of kernels, which still have to run, what fixes save."""
        saved_ns = self.step_ns.expected * (self.gain.expected - 1)
        return saved_ns if self.cause == "kernel" else self.now_ns

    def to_dict(self) -> dict[str, Any]:
        """The limit as JSON."""
        return {
            "cause": self.cause,
            "step_ns": self.step_ns.rounded().to_dict(),
            "gain": self.gain.rounded(4).to_dict(),
            "now_ns": self.now_ns,
        }


class Limits(Struct, frozen=True):
    """All limits of a step."""

    rows: tuple[Limit, ...]
    """The cause first, then the largest gain."""
    together: float
    """Gain if everything but the kernels were free."""
    kernels_can_be_faster: bool
    """Whether an audited fix of kernels gains 5 % or more at the low end of its range, or those whose effect on kernels
    is well known give a tenth together, and no less than 5 % on any of the graphs."""
    pair: tuple[str, ...] = ()
    """The two resources that give most together, where no resource alone gives a tenth; one where the other adds
    nothing to it …"""
    pair_gain: float = 1.0
    """… and what they give."""

    @property
    def named(self) -> tuple[str, ...]:
        """The cause, and others that are as good an answer; empty where no resource alone is to blame."""
        able = [row for row in self.rows if self._can_be_blamed(row)]
        return tuple(row.cause for row in sorted(_one_answer(able), key=lambda row: -row.at_stake_ns))

    @property
    def is_of_slow_host(self) -> bool:
        """Whether the cause is none on a calm host, and the one that recorded was slow."""
        on_calm_host = [self.row(cause).gains[CALM_HOST:] for cause in self.named]
        return any(gains and gains[0] < MIN_GAIN for gains in on_calm_host[:1])

    @property
    def first_on_calm_host(self) -> Limit | None:
        """What would be first on a calm host, where the one that recorded was slow; None if nothing gives a tenth."""
        able = [row for row in self.rows if row.cause != "kernel" and max(row.gains[CALM_HOST:], default=1) >= MIN_GAIN]
        return max(able, key=lambda row: row.gains[CALM_HOST], default=None)

    @property
    def hangs_on_host(self) -> bool:
        """Whether kernels can be faster only if the host is fast without a profiler, which is known too roughly."""
        kernels = (row.gains for row in self.rows if row.cause == "kernel")
        return not self.named and any(min(gains) < CLEAR_GAIN and max(gains) >= MIN_GAIN for gains in kernels)

    def _can_be_blamed(self, row: Limit) -> bool:
        """Kernels have to be run: they are to blame only if a fix is known to make them faster, and then for 5 %."""
        if row.cause == "kernel":
            return self.kernels_can_be_faster and row.gain.expected >= CLEAR_GAIN
        return row.gain.expected >= MIN_GAIN

    def row(self, cause: str) -> Limit:
        """The limit of one resource."""
        return next(row for row in self.rows if row.cause == cause)


def _one_answer(rows: Sequence[Limit]) -> list[Limit]:
    """The rows that are first in one of the graphs, and those whose gain is within a tenth of the largest."""
    cases = range(len(rows[0].gains) if rows else 0)
    ahead = {max(rows, key=lambda row: (row.gains[case], row.gain.expected)).cause for case in cases}
    largest = max((row.gain.expected for row in rows), default=1.0)
    return [row for row in rows if row.cause in ahead or row.gain.expected >= TOGETHER * largest]


def limits_of(findings: Sequence[Finding], evidence: Evidence) -> Limits:
    """The limits of the judged steps; `findings` are audited."""
    replays = _Replays(findings, evidence)
    rows = sorted((replays.row(resource) for resource in Resource), key=lambda row: -row.gain.expected)
    together = replays.gains(ALL_BUT_KERNELS)[EXPECTED_STEP]
    known = well_known(findings)
    sure = _has_sure_fix(findings, OF_KERNELS) or (bool(known) and _is_tenth_on_all(_Replays(known, evidence)))
    found = Limits(tuple(rows), together, sure)
    if found.named:
        return replace(found, rows=tuple(sorted(rows, key=lambda row: row.cause not in found.named[:1])))
    if together < MIN_GAIN:
        return found
    pair, gain = replays.best_pair()
    pair, gain = both_or_first(pair, gain, alone=found.row(pair[0]).gain.expected)
    return replace(found, pair=pair, pair_gain=gain)


def both_or_first(pair: tuple[str, ...], gain: float, alone: float) -> tuple[tuple[str, ...], float]:
    """The pair and what it gives; the first of them with its own gain where the other adds nothing to it."""
    return (pair, gain) if gain >= SHOWN_GAIN * alone else (pair[:1], alone)


def _has_sure_fix(findings: Sequence[Finding], causes: Sequence[str]) -> bool:
    """Whether a fix of one of these causes gains 5 % or more at the low end of its range."""
    return any(finding.cause in causes and finding.gain.low >= CLEAR_GAIN for finding in findings)


def well_known(findings: Sequence[Finding]) -> list[Finding]:
    """Fixes of kernels without those of which the blind errors are large, such as torch.compile, whatever the host
    does."""
    return [one for one in findings if one.cause in OF_KERNELS and GAIN.constant(one.fix) <= WELL_KNOWN]


def _is_tenth_on_all(replays: _Replays) -> bool:
    gains = replays.gains((Resource.KERNEL,))
    return gains[EXPECTED_STEP] >= MIN_GAIN and min(gains) >= CLEAR_GAIN


class _Replays:
    """The bare graphs of the judged steps, with any resources free."""

    def __init__(self, findings: Sequence[Finding], evidence: Evidence) -> None:
        self._question = evidence.question
        # A warm-up removes kernels that only tune, too, and counts the steps that are warm then.
        self._warm = max((one.gain.expected for one in findings if one.cause == "cold_start"), default=1.0)
        self._resources = FreeResources(evidence.labelled, _cold_share(evidence), _reachable_ns(findings, evidence))
        cases = [(case, 1.0) for case in CASES]
        if self._question.bare.slowness > 1.0:
            cases.append((EXPECTED_STEP, self._question.bare.slowness))
        self._cases = cases
        self._steps_ns = [self._step_ns((), *case) for case in cases]
        graph, marks = self._question.labelled.graph, self._question.replay.marks
        self._path = self._resources.on_critical_path(graph, marks)

    def row(self, resource: Resource) -> Limit:
        """The limit of one resource; its step is the present one over its gain, so that both have one base."""
        gains = self.gains((resource,))
        if resource is Resource.COLD_START:
            gains = [max(one, self._warm) for one in gains]
        gain = Estimate(min(gains), gains[EXPECTED_STEP], max(gains))
        now_ns = self._question.bare.expected_ns
        step_ns = Estimate(*(now_ns / one for one in (gain.high, gain.expected, gain.low)))
        share = self._path[resource] / max(sum(self._path.values()), 1.0)
        return Limit(resource.name.lower(), step_ns, gain, round(share * now_ns), tuple(gains))

    def gains(self, resources: Iterable[Resource]) -> list[float]:
        """The step now over the step with these resources free, in each case; no less than 1."""
        free = tuple(resources)
        return [
            max(now / self._step_ns(free, *case), 1.0) for now, case in zip(self._steps_ns, self._cases, strict=True)
        ]

    def best_pair(self) -> tuple[tuple[str, ...], float]:
        """The two resources that give most together, and how much; first the one that gives more alone."""
        pairs = {pair: self.gains(pair)[EXPECTED_STEP] for pair in combinations(ALL_BUT_KERNELS, 2)}
        best = max(pairs, key=lambda pair: pairs[pair])
        ordered = sorted(best, key=lambda resource: -self.gains((resource,))[EXPECTED_STEP])
        return tuple(resource.name.lower() for resource in ordered), pairs[best]

    def _step_ns(self, free: tuple[Resource, ...], case: int, host_speedup: float) -> float:
        edit = self._resources.free(self._question.bare.graphs[case], free, host_speedup)
        return self._question.step_of(edit)


def _cold_share(evidence: Evidence) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The share of each CPU node that a second run would not have. With nothing to compare with, no step is cold."""
    labelled, trial = evidence.labelled, evidence.trial("warm_up")
    if evidence.recorded_steps < 2 or not any(trial.changed):
        return np.zeros(len(labelled.graph))
    share = np.clip(1 - trial.duration / np.maximum(labelled.graph.duration, 1.0), 0, 1)
    return np.where(labelled.is_work, 0.0, share)


def _reachable_ns(findings: Sequence[Finding], evidence: Evidence) -> np.ndarray[Any, np.dtype[np.float64]]:
    """What each kernel takes with the best of the fixes of kernels that gain 5 % or more."""
    least = evidence.labelled.graph.duration
    for finding in findings:
        if finding.cause in OF_KERNELS and finding.gain.expected >= CLEAR_GAIN:
            least = np.minimum(least, evidence.trial(finding.fix).duration)
    return least
