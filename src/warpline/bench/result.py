"""The results of `bench`: times with their intervals, how they were measured, and notes on their reliability."""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from warpline.bench.settle import WarmUp
from warpline.bench.summary import Interval, Summary, interval_of_median
from warpline.bench.text import comparison_sentence, comparison_text, facts, headline, result_text
from warpline.bench.watch import Clocks
from warpline.bench.work import Judgement
from warpline.notebook import card, paragraph
from warpline.notebook import facts as named_facts

SCHEMA = "warpline.bench/1"
Clock = Literal["events", "graph", "wall", "cpu"]
Severity = Literal["info", "warning", "error"]
Verdict = Literal["sound", "doubtful", "impossible"]


@dataclass(frozen=True, slots=True)
class Note:
    """A note that the reader of the number needs."""

    code: str
    severity: Severity
    message: str


@dataclass(frozen=True, slots=True)
class Place:
    """Where it ran."""

    device: str
    kind: Literal["cuda", "cpu"]
    torch: str | None
    cuda: str | None
    python: str


@dataclass(frozen=True, slots=True)
class Host:
    """The call as the host sees it: medians over some calls on an idle device."""

    submit_ns: float
    """Until the call returns: what a stopwatch without a synchronisation shows."""
    wall_ns: float
    """Until its work is done."""
    waits: bool
    """Whether the call itself synchronises with the GPU, so that submission includes execution."""


@dataclass(frozen=True, slots=True)
class Result:
    """The time of one call in its steady state.

    >>> result = warpline.bench(lambda: model(batch))
    >>> result.median_ns, result.interval, result.verdict
    >>> print(result)
    """

    name: str
    place: Place
    clock: Clock
    cache: Literal["flushed", "rotated", "hot"]
    calls_per_sample: int
    overhead_ns: float
    """What the stopwatch reads with nothing to time; it is not subtracted."""
    warm_up: WarmUp
    summary: Summary
    samples_ns: tuple[float, ...] = field(repr=False)
    host: Host | None = None
    clocks: Clocks | None = None
    judgement: Judgement | None = None
    notes: tuple[Note, ...] = ()

    @property
    def median_ns(self) -> float:
        """The result as one number."""
        return self.summary.median_ns

    @property
    def interval(self) -> Interval | None:
        """The interval of the median with 95 % confidence; None for fewer than six samples."""
        return self.summary.interval

    @property
    def verdict(self) -> Verdict:
        """`impossible` below the physical floor, `doubtful` if there are warnings, otherwise `sound`."""
        severities = {note.severity for note in self.notes}
        return "impossible" if "error" in severities else "doubtful" if "warning" in severities else "sound"

    def to_dict(self) -> dict[str, Any]:
        """One of the `results` of schema `warpline.bench/1`."""
        summary = self.summary
        return {
            "name": self.name,
            "verdict": self.verdict,
            "median_ns": summary.median_ns,
            "interval_ns": [summary.interval.low_ns, summary.interval.high_ns] if summary.interval else None,
            "confidence_pct": summary.interval.confidence_pct if summary.interval else None,
            "samples": summary.count,
            "calls_per_sample": self.calls_per_sample,
            "clock": self.clock,
            "cache": self.cache,
            "overhead_ns": self.overhead_ns,
            "spread": {
                "min_ns": summary.min_ns,
                "q1_ns": summary.q1_ns,
                "q3_ns": summary.q3_ns,
                "max_ns": summary.max_ns,
                "middle_half_pct": summary.spread_pct,
                "outliers": summary.outliers,
            },
            "warm_up": asdict(self.warm_up),
            "host": asdict(self.host) if self.host else None,
            "work": _work_dict(self.judgement) if self.judgement else None,
            "clocks": asdict(self.clocks) if self.clocks else None,
            "place": asdict(self.place),
            "notes": [asdict(note) for note in self.notes],
        }

    def __repr__(self) -> str:
        return f"<Result {headline(self)}>"

    def __str__(self) -> str:
        return result_text(self)

    def _repr_html_(self) -> str:
        notes = [paragraph(f"{note.severity}: {note.message}") for note in self.notes]
        return card(headline(self), named_facts(dict(facts(self))), *notes)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two functions timed in turn, so that whatever drifts hits both.

    >>> warpline.bench.compare(eager, compiled, x).faster
    """

    first: Result
    second: Result
    ratios: tuple[float, ...] = field(repr=False)
    """Time of the first over the time of the second, pair by pair."""
    ratio: float
    """The median ratio: above 1 the second is faster."""
    low: float
    high: float
    """The interval of the median ratio with 95 % confidence."""

    @property
    def faster(self) -> Result | None:
        """The faster function; None if the pairs show no difference."""
        return None if self.low <= 1 <= self.high else self.second if self.ratio > 1 else self.first

    def to_dict(self) -> dict[str, Any]:
        """The `comparison` of schema `warpline.bench/1`."""
        return {
            "first": self.first.name,
            "second": self.second.name,
            "ratio": self.ratio,
            "ratio_interval": [self.low, self.high],
            "pairs": len(self.ratios),
            "faster": self.faster.name if self.faster else None,
        }

    def __repr__(self) -> str:
        return f"<Comparison {comparison_sentence(self)}>"

    def __str__(self) -> str:
        return comparison_text(self)


def comparison(first: Result, second: Result) -> Comparison:
    """Compare two results whose samples alternate."""
    ratios = tuple(one / other for one, other in zip(first.samples_ns, second.samples_ns, strict=True))
    interval = interval_of_median(ratios)
    low, high = (interval.low_ns, interval.high_ns) if interval else (min(ratios), max(ratios))
    return Comparison(first, second, ratios, statistics.median(ratios), low, high)


def document(results: list[Result], compared: Comparison | None, cold: list[dict[str, Any]]) -> dict[str, Any]:
    """All results as one document of schema `warpline.bench/1`."""
    return {
        "schema": SCHEMA,
        "results": [result.to_dict() for result in results],
        "comparison": compared.to_dict() if compared else None,
        "cold": cold,
    }


def _work_dict(judgement: Judgement) -> dict[str, Any]:
    answer = asdict(judgement)
    return {**answer.pop("work"), **answer}
