"""The results of `bench`: times with their intervals, how they were measured, and notes on their reliability."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from warpline.bench.settle import WarmUp
from warpline.bench.summary import Interval, Summary, interval_of_median
from warpline.bench.watch import Clocks
from warpline.bench.work import RoofJudgement
from warpline.notebook import ShownAsCard
from warpline.units import duration

SCHEMA = "warpline.bench/1"
Clock = Literal["events", "graph", "wall", "cpu"]
Severity = Literal["info", "warning", "error"]
Verdict = Literal["sound", "doubtful", "impossible"]
CLOCKS = {"events": "CUDA events", "graph": "CUDA graph", "wall": "the host's clock", "cpu": "the CPU's clock"}
CACHES = {
    "flushed": "L2 flushed before each call",
    "rotated": "alternating inputs, larger than the L2",
    "hot": "caches not flushed",
}
LABEL_WIDTH = 11
TIME_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))


@dataclass(frozen=True, slots=True)
class BenchNote:
    """A note that the reader of the number needs."""

    code: str
    severity: Severity
    message: str


@dataclass(frozen=True, slots=True)
class Platform:
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
class Result(ShownAsCard):
    """The time of one call in its steady state.

    >>> result = warpline.bench(lambda: model(batch))
    >>> result.median_ns, result.interval, result.verdict
    >>> print(result)
    """

    name: str
    place: Platform
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
    judgement: RoofJudgement | None = None
    notes: tuple[BenchNote, ...] = ()

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

    @property
    def headline(self) -> str:
        """The time, or that it is impossible."""
        time, interval = duration(self.median_ns), self.interval
        if self.verdict == "impossible":
            return f"{self.name} on {self.place.device}: impossible, measured {time}"
        if interval is None:
            return f"{self.name} on {self.place.device}: {time} (too few samples for an interval)"
        return f"{self.name} on {self.place.device}: {time} (95 % interval {span(interval.low_ns, interval.high_ns)})"

    def facts(self) -> Iterator[tuple[str, str]]:
        """The label and text of each line below the headline."""
        summary, warm_up = self.summary, self.warm_up
        how = f"{CLOCKS[self.clock]}, {CACHES[self.cache]}"
        batch = f" of {self.calls_per_sample:,} calls" if self.calls_per_sample > 1 else ""
        yield "execution", f"{duration(summary.median_ns)}: {how}; {summary.count:,} samples{batch}"
        if self.host is not None:
            no_wait = "what a clock without synchronisation shows"
            why = "the call synchronises with the GPU" if self.host.waits else no_wait
            yield "submission", f"{duration(self.host.submit_ns)}: {why}"
            yield "wall", f"{duration(self.host.wall_ns)}: submitted to an idle device and synchronised"
        outliers = f", {summary.outliers} outlier{'s' if summary.outliers > 1 else ''}" if summary.outliers else ""
        ends = f"{duration(summary.min_ns)} to {duration(summary.max_ns)}"
        yield "spread", f"interquartile range {summary.spread_pct:.1f} %, {ends}{outliers}"
        first = f"; first call {duration(warm_up.first_call_ns)}" if warm_up.first_call_ns else ""
        yield "warm-up", f"{warm_up.calls:,} calls, {warm_up.seconds:.2g} s: {warm_up.reason}{first}"
        if self.judgement is not None:
            yield "work", _work_text(self.judgement)
        if self.clocks is not None:
            yield "clocks", _clocks_text(self.clocks)

    def __repr__(self) -> str:
        return f"<Result {self.headline}>"

    def __str__(self) -> str:
        lines = [self.headline, *(f"  {label:{LABEL_WIDTH}} {text}" for label, text in self.facts())]
        return "\n".join([*lines, *(f"  {note.severity + ':':{LABEL_WIDTH}} {note.message}" for note in self.notes)])


@dataclass(frozen=True, slots=True)
class PairedComparison:
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

    @property
    def sentence(self) -> str:
        """Which of the two is faster, with its interval."""
        faster, pairs = self.faster, f"{len(self.ratios):,} pairs"
        low, high = self.low, self.high
        if faster is None:
            change = f"{100 * (low - 1):+.2f} to {100 * (high - 1):+.2f} %"
            return f"no significant difference: the median ratio is {change} (95 % interval, {pairs})"
        if faster is self.first:
            low, high = 1 / high, 1 / low
        ratio = self.ratio if faster is self.second else 1 / self.ratio
        slower = self.first if faster is self.second else self.second
        surely = f"(95 % interval {low:.4g} to {high:.4g}, {pairs})"
        return f"{faster.name} is {ratio:.4g}× as fast as {slower.name} {surely}"

    def __repr__(self) -> str:
        return f"<PairedComparison {self.sentence}>"

    def __str__(self) -> str:
        return "\n".join([self.sentence, str(self.first), str(self.second)])


def comparison(first: Result, second: Result) -> PairedComparison:
    """Compare two results whose samples alternate."""
    ratios = tuple(one / other for one, other in zip(first.samples_ns, second.samples_ns, strict=True))
    interval = interval_of_median(ratios)
    low, high = (interval.low_ns, interval.high_ns) if interval else (min(ratios), max(ratios))
    return PairedComparison(first, second, ratios, statistics.median(ratios), low, high)


def document(results: list[Result], compared: PairedComparison | None, cold: list[dict[str, Any]]) -> dict[str, Any]:
    """All results as one document of schema `warpline.bench/1`."""
    return {
        "schema": SCHEMA,
        "results": [result.to_dict() for result in results],
        "comparison": compared.to_dict() if compared else None,
        "cold": cold,
    }


def _work_dict(judgement: RoofJudgement) -> dict[str, Any]:
    answer = asdict(judgement)
    return {**answer.pop("work"), **answer}


def span(low_ns: float, high_ns: float) -> str:
    """Two close times in one unit, with the digits in which they differ."""
    size, unit = next((step for step in TIME_UNITS if high_ns >= step[0]), TIME_UNITS[-1])
    digits = max(0, 3 - int(math.log10(max(high_ns / size, 1))))
    return f"{low_ns / size:,.{digits}f} to {high_ns / size:,.{digits}f} {unit}"


def _work_text(judgement: RoofJudgement) -> str:
    """Rates and the share of the roof."""
    work = judgement.work
    parts = [f"{judgement.flops_per_second / 1e12:,.4g} TFLOP/s {work.dtype}"] if work.flops else []
    parts += [f"{judgement.bytes_per_second / 1e12:,.3g} TB/s"] if work.bytes else []
    rates = ", ".join(parts)
    if judgement.roof_pct is None or judgement.roof_ns is None:
        return f"{rates}; the roof of this device is unknown"
    return f"{rates}; {judgement.roof_pct:.1f} % of the roof ({judgement.bound}, {duration(judgement.roof_ns)})"


def _clocks_text(clocks: Clocks) -> str:
    """The device's state during the measurement."""
    parts = []
    if clocks.min_sm_mhz is not None and clocks.max_sm_mhz is not None:
        highest = f"{clocks.max_sm_mhz:,}"
        steady = clocks.min_sm_mhz == clocks.max_sm_mhz
        parts.append(f"{highest} MHz" if steady else f"{clocks.min_sm_mhz:,} to {highest} MHz")
    if clocks.temperature_c is not None:
        parts.append(f"{clocks.temperature_c} °C")
    if clocks.power_w is not None:
        parts.append(f"{clocks.power_w:.0f} W")
    return ", ".join([*parts, *clocks.reasons])
