"""Notes on what makes a result unreliable, from how it was measured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from warpline.bench.calls import AlternatingCalls
from warpline.bench.result import BenchNote, Result
from warpline.bench.summary import drift
from warpline.capture.precision import matmuls_in_tf32
from warpline.units import duration

MAX_INTERVAL_WIDTH_PCT = 5.0
"""An interval wider than this, in percent of the median, cannot separate two versions."""
MAX_TIMER_SHARE = 0.05


def notes_on(result: Result, torch: Any | None, calls: AlternatingCalls | None) -> Iterator[BenchNote]:
    """Every note on a result."""
    yield from _impossible(result, torch)
    yield from _unsteady(result)
    yield from _stopwatch(result)
    if calls is not None and torch is not None:
        yield from _inputs(calls)


def _impossible(result: Result, torch: Any | None) -> Iterator[BenchNote]:
    judgement = result.judgement
    if judgement is None or not judgement.impossible(result.median_ns):
        if judgement is not None and judgement.roof_pct is not None and judgement.roof_pct > 102:
            elsewhere = "the ceiling was measured with other data or at another clock"
            what = "its data stays in the cache" if judgement.bound == "memory" else elsewhere
            yield BenchNote(
                "above-roof",
                "info",
                f"{judgement.roof_pct:.0f} % of the roof, below the data sheet's peak: {what}",
            )
        return
    assert judgement.floor_ns is not None
    ratio = judgement.floor_ns / result.median_ns
    reasons = list(_why_impossible(result, torch))
    yield BenchNote(
        "impossible",
        "error",
        f"impossible: {duration(result.median_ns)} was measured, but {result.place.device} cannot do this work in less "
        f"than {duration(judgement.floor_ns)} ({ratio:.3g} times as long); likely {'; or '.join(reasons)}",
    )


def _why_impossible(result: Result, torch: Any | None) -> Iterator[str]:
    judgement = result.judgement
    assert judgement is not None
    if judgement.work.dtype == "fp32" and torch is not None and matmuls_in_tf32(torch):
        yield "fp32 matmuls run in TF32 here (torch.get_float32_matmul_precision()): use dtype tf32"
    if result.median_ns < 3 * result.overhead_ns:
        yield "the call does not do this work on the GPU: the events read little more than with nothing between them"
    kind = "FLOP" if judgement.bound == "compute" else "byte"
    yield f"the {kind} count or the data type is wrong, or the call skips part of the work"


def _unsteady(result: Result) -> Iterator[BenchNote]:
    if not result.warm_up.settled:
        yield BenchNote("not-settled", "warning", f"the times did not settle: {result.warm_up.reason}")
    halves = drift(result.samples_ns)
    if halves is not None:
        before, after = map(duration, halves)
        yield BenchNote("drift", "warning", f"the times drifted from {before} (first half) to {after} (second half)")
    if result.clocks is not None and result.clocks.sentence:
        yield BenchNote("clock-fell" if result.clocks.fell else "clock-low", "warning", result.clocks.sentence)
    if result.interval is None:
        yield BenchNote("few-samples", "warning", f"{result.summary.count} samples are too few for a 95 % interval")
    elif result.interval.high_ns - result.interval.low_ns > MAX_INTERVAL_WIDTH_PCT / 100 * result.median_ns:
        width = 100 * (result.interval.high_ns - result.interval.low_ns) / result.median_ns
        message = f"the interval is {width:.0f} % wide: measure for longer, or on a quieter machine"
        yield BenchNote("wide-interval", "warning", message)


def _stopwatch(result: Result) -> Iterator[BenchNote]:
    host = result.host
    if result.clock == "events" and result.overhead_ns > MAX_TIMER_SHARE * result.median_ns:
        share = 100 * result.overhead_ns / result.median_ns
        yield BenchNote(
            "short",
            "info",
            f"two events with nothing between them read {duration(result.overhead_ns)}, {share:.0f} % of this: "
            "--graph times many calls as one",
        )
    if host is None or result.clock == "wall":
        return
    if host.waits:
        yield BenchNote(
            "waits", "info", "the call synchronises with the GPU, so its time includes the return to the host"
        )
    elif host.submit_ns > result.median_ns:
        yield BenchNote(
            "submission-bound",
            "info",
            f"the host needs {duration(host.submit_ns)} to submit what the GPU does in {duration(result.median_ns)}: "
            "in a loop, each call takes the longer of the two",
        )


def _inputs(calls: AlternatingCalls) -> Iterator[BenchNote]:
    zeros = sum(_all_zero(tensor) for tensor in calls.tensors())
    if zeros:
        what = "an input is" if zeros == 1 else f"{zeros} inputs are"
        yield BenchNote(
            "zeros", "warning", f"{what} all zeros, which draw less power and can run faster than real data"
        )


def _all_zero(tensor: Any) -> bool:
    if not getattr(tensor, "is_cuda", False) or tensor.numel() < 1024:
        return False
    try:
        return not bool(tensor.any())
    except (RuntimeError, NotImplementedError):
        return False
