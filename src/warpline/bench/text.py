"""Results as plain text, for `print` and where only the standard library is installed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from warpline.bench.experiments import EXPERIMENTS
from warpline.units import duration

if TYPE_CHECKING:
    from warpline.bench.cold import ColdStart
    from warpline.bench.command import Answer
    from warpline.bench.result import Comparison, Result

CLOCKS = {"events": "CUDA events", "graph": "CUDA graph", "wall": "the host's clock", "cpu": "the CPU's clock"}
CACHES = {
    "flushed": "L2 flushed before each call",
    "rotated": "alternating inputs, larger than the L2",
    "hot": "caches not flushed",
}
_WIDTH = 11
_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))


def result_text(result: Result) -> str:
    """A headline, then one line per fact."""
    lines = [headline(result), *(f"  {label:{_WIDTH}} {text}" for label, text in facts(result))]
    lines += [f"  {note.severity + ':':{_WIDTH}} {note.message}" for note in result.notes]
    return "\n".join(lines)


def headline(result: Result) -> str:
    """The time, or that it is impossible."""
    time, interval = duration(result.median_ns), result.interval
    if result.verdict == "impossible":
        return f"{result.name} on {result.place.device}: impossible, measured {time}"
    if interval is None:
        return f"{result.name} on {result.place.device}: {time} (too few samples for an interval)"
    return f"{result.name} on {result.place.device}: {time} (95 % interval {span(interval.low_ns, interval.high_ns)})"


def span(low_ns: float, high_ns: float) -> str:
    """Two close times in one unit, with the digits in which they differ."""
    size, unit = next((step for step in _UNITS if high_ns >= step[0]), _UNITS[-1])
    digits = max(0, 3 - int(math.log10(max(high_ns / size, 1))))
    return f"{low_ns / size:,.{digits}f} to {high_ns / size:,.{digits}f} {unit}"


def facts(result: Result) -> Iterator[tuple[str, str]]:
    """The label and text of each line."""
    summary, warm_up = result.summary, result.warm_up
    how = f"{CLOCKS[result.clock]}, {CACHES[result.cache]}"
    batch = f" of {result.calls_per_sample:,} calls" if result.calls_per_sample > 1 else ""
    yield "execution", f"{duration(summary.median_ns)}: {how}; {summary.count:,} samples{batch}"
    if result.host is not None:
        why = (
            "the call synchronises with the GPU" if result.host.waits else "what a clock without synchronisation shows"
        )
        yield "submission", f"{duration(result.host.submit_ns)}: {why}"
        yield "wall", f"{duration(result.host.wall_ns)}: submitted to an idle device and synchronised"
    outliers = f", {summary.outliers} outliers" if summary.outliers else ""
    ends = f"{duration(summary.min_ns)} to {duration(summary.max_ns)}"
    yield "spread", f"interquartile range {summary.spread_pct:.1f} %, {ends}{outliers}"
    first = f"; first call {duration(warm_up.first_call_ns)}" if warm_up.first_call_ns else ""
    yield "warm-up", f"{warm_up.calls:,} calls, {warm_up.seconds:.2g} s: {warm_up.reason}{first}"
    if result.judgement is not None:
        yield "work", work_text(result)
    if result.clocks is not None:
        yield "clocks", clocks_text(result)


def work_text(result: Result) -> str:
    """Rates and the share of the roof."""
    judgement = result.judgement
    assert judgement is not None
    work = judgement.work
    parts = [f"{judgement.flops_per_second / 1e12:,.4g} TFLOP/s {work.dtype}"] if work.flops else []
    parts += [f"{judgement.bytes_per_second / 1e12:,.3g} TB/s"] if work.bytes else []
    rates = ", ".join(parts)
    if judgement.roof_pct is None or judgement.roof_ns is None:
        return f"{rates}; the roof of this device is unknown"
    return f"{rates}; {judgement.roof_pct:.1f} % of the roof ({judgement.bound}, {duration(judgement.roof_ns)})"


def clocks_text(result: Result) -> str:
    """The device's state during the measurement."""
    clocks = result.clocks
    assert clocks is not None
    parts = []
    if clocks.min_sm_mhz is not None and clocks.max_sm_mhz is not None:
        span = f"{clocks.max_sm_mhz:,}"
        span = span if clocks.min_sm_mhz == clocks.max_sm_mhz else f"{clocks.min_sm_mhz:,} to {span}"
        parts.append(f"{span} MHz")
    if clocks.temperature_c is not None:
        parts.append(f"{clocks.temperature_c} °C")
    if clocks.power_w is not None:
        parts.append(f"{clocks.power_w:.0f} W")
    return ", ".join([*parts, *clocks.reasons])


def comparison_text(comparison: Comparison) -> str:
    """Which is faster, then both results."""
    return "\n".join([comparison_sentence(comparison), str(comparison.first), str(comparison.second)])


def comparison_sentence(comparison: Comparison) -> str:
    """Which of the two is faster, with its interval."""
    faster, pairs = comparison.faster, f"{len(comparison.ratios):,} pairs"
    low, high = comparison.low, comparison.high
    if faster is None:
        span = f"{100 * (low - 1):+.2f} to {100 * (high - 1):+.2f} %"
        return f"no significant difference: the median ratio is {span} (95 % interval, {pairs})"
    if faster is comparison.first:
        low, high = 1 / high, 1 / low
    ratio = comparison.ratio if faster is comparison.second else 1 / comparison.ratio
    slower = comparison.first if faster is comparison.second else comparison.second
    surely = f"(95 % interval {low:.4g} to {high:.4g}, {pairs})"
    return f"{faster.name} is {ratio:.4g}× as fast as {slower.name} {surely}"


def cold_text(cold: ColdStart) -> str:
    """The parts of a cold start, one per line, and their effect on the first call."""
    lines = [f"{cold.name} on {cold.device}: a cold start, in {cold.processes} fresh processes"]
    for part in cold.parts:
        lines.append(f"  {part.name.replace('_', ' '):12} {duration(part.median_ns):>9}  {part.meaning}")
    return "\n".join([*lines, cold_sentence(cold)])


def cold_sentence(cold: ColdStart) -> str:
    """The first call compared with the steady state."""
    first, steady = duration(cold.first_call_ns), duration(cold.steady_ns)
    ratio = f"{cold.ratio:,.0f}" if cold.ratio >= 10 else f"{cold.ratio:.2g}"
    times = f"{ratio}× less" if cold.ratio > 1.05 else "no cold start"
    return f"a stopwatch around the first call shows {first}; a steady-state call takes {steady}: {times}"


def answer_text(answer: Answer) -> str:
    """Everything that was found."""
    blocks = [str(answer.comparison)] if answer.comparison else [str(result) for result in answer.results]
    scaling = ["\n".join(each.sentence for each in answer.scaling)] if answer.scaling else []
    return "\n\n".join([*blocks, *scaling, *answer.ways, *map(cold_text, answer.cold)])


def list_text() -> str:
    """The experiments, one per line."""
    lines = []
    for experiment in EXPERIMENTS.values():
        shape, types = "x".join(map(str, experiment.shape)), ", ".join(experiment.dtypes)
        lines.append(f"{experiment.name:10} {experiment.summary}\n{'':10} {experiment.dimensions}: {shape}; {types}")
    return "\n".join([*lines, "or your own function: file.py:function"])
