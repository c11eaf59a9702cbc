"""`warpline.bench`: time one function, or compare two."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Literal

from warpline.bench.calls import AlternatingCalls, Inputs, calls_of
from warpline.bench.measure import measure, nothing_ran
from warpline.bench.result import BenchNote, PairedComparison, Result, comparison
from warpline.bench.subject import Settings, Subject, first_call
from warpline.bench.work import CallWork, checked_work
from warpline.errors import CannotAnswer, UsageError

Device = Literal["auto", "cuda", "cpu"]


def bench(
    function: Callable[..., object],
    *args: Any,
    inputs: Inputs | None = None,
    copies: int = 1,
    name: str | None = None,
    flops: float | None = None,
    bytes: float | None = None,  # noqa: A002 - as in warpline.roofline
    dtype: str | None = None,
    unit: str = "",
    flush: bool = True,
    graph: bool = False,
    seconds: float = 0.5,
    device: Device = "auto",
    settings: Settings | None = None,
) -> Result:
    """Time `function(*args)` in its steady state: the median, its 95 % interval, and notes on its reliability.

    `inputs` is several tuples of arguments, or a function that returns the tuple of a given number; calls alternate
    between them. `copies` makes copies of the tensors in `args` for the same purpose. `flush=False` does not flush the
    L2, and `graph=True` times many calls captured in a CUDA graph. With the `flops`, `bytes` and `dtype` of one call,
    the result has rates and the share of the roof, and a time below the device's limit is reported as impossible.

    >>> warpline.bench(torch.mm, a, b, flops=2 * 4096**3, dtype="tf32")
    """
    work = checked_work(flops, bytes, dtype, unit)
    subject = _subject(function, calls_of(function, args, inputs, copies), name, work)
    settings = settings or Settings(flush=flush, graph=graph, seconds=_positive(seconds))
    torch = _started([subject], device, settings)
    result = measure([subject], settings, torch)[0]
    if torch is not None and device == "auto" and nothing_ran(result):
        again = _subject(function, subject.calls, name, subject.work)
        again.first_call_ns = subject.first_call_ns
        _say_cpu([again], "the call enqueues no GPU work on the current stream, and the device is idle when it returns")
        return measure([again], settings, None)[0]
    return result


def compare(
    first: Callable[..., object],
    second: Callable[..., object],
    *args: Any,
    inputs: Inputs | None = None,
    copies: int = 1,
    names: tuple[str, str] | None = None,
    flush: bool = True,
    graph: bool = False,
    seconds: float = 1.0,
    device: Device = "auto",
    settings: Settings | None = None,
) -> PairedComparison:
    """Compare two functions of the same arguments: their calls alternate, and are compared pair by pair.

    >>> warpline.bench.compare(eager, compiled, x)
    """
    settings = settings or Settings(flush=flush, graph=graph, seconds=_positive(seconds))
    subjects = [
        _subject(function, calls_of(function, args, inputs, copies), names[place] if names else None, None)
        for place, function in enumerate((first, second))
    ]
    torch = _started(subjects, device, settings)
    return comparison(*measure(subjects, settings, torch))


def _subject(
    function: Callable[..., object], calls: AlternatingCalls, name: str | None, work: CallWork | None
) -> Subject:
    return Subject(name or getattr(function, "__name__", "") or type(function).__name__, calls, work)


def _started(subjects: list[Subject], device: Device, settings: Settings) -> Any | None:
    """Run every function once and choose the clock: torch for the GPU's clock, None for the CPU's."""
    if device not in ("auto", "cuda", "cpu"):
        raise UsageError("bad-device", f"there is no device {device!r}", "auto, cuda or cpu")
    for subject in subjects:
        first_call(subject, settings.now, _synchronise)
    torch = sys.modules.get("torch")
    cuda = torch is not None and torch.cuda.is_available()
    if device == "cuda" and not cuda:
        raise CannotAnswer("no-gpu", "torch finds no CUDA device", "run it on a machine with a GPU, or with device cpu")
    if device == "cuda":
        return torch
    tensors = [tensor for subject in subjects for tensor in subject.calls.tensors()]
    if device == "cpu":
        why = "as requested"
    elif torch is None:
        why = "torch is not loaded, so there is no GPU work to time"
    elif not cuda:
        why = "torch finds no CUDA device"
    elif tensors and not any(getattr(tensor, "is_cuda", False) for tensor in tensors):
        why = "its inputs are on the host"
    elif not torch.cuda.is_initialized():
        why = "it has not initialised CUDA, so there is no GPU work to time"
    else:
        return torch
    _say_cpu(subjects, why)
    return None


def _say_cpu(subjects: list[Subject], why: str) -> None:
    for subject in subjects:
        subject.notes.append(BenchNote("cpu", "info", f"timed on the CPU's clock: {why}"))


def _synchronise() -> None:
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.synchronize()


def _positive(seconds: float) -> float:
    if not 0 < seconds <= 600:
        raise UsageError("bad-seconds", f"cannot measure for {seconds} seconds", "between 0 and 600")
    return seconds
