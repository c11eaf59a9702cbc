"""Traces at the edges of what a page must show, each written by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kineto_files import Event, annotation, frame, kernel, launched, op, write

EVIL = "</script><script>window.evil = 1</script><img src=x onerror='window.evil = 2'>\u202e<!--"


def _steps(number: int) -> list[Event]:
    events: list[Event] = []
    for step in range(number):
        begin = 1000.0 * step
        events += [
            annotation(f"ProfilerStep#{step}", begin, 990),
            frame("train.py(3): step", begin + 1, 980, step, None),
        ]
        for place in range(5):
            at = begin + 20 + 150 * place
            events.append(op("aten::mm", at, 60, external=10 * step + place + 1))
            events += launched("sgemm_128x64_nn", at + 10, at + 40, 90, 10 * step + place + 1)
    return events


def no_gpu(folder: Path) -> Path:
    """Ops only."""
    return write(folder, [op("aten::mm", 10 * number, 8) for number in range(20)])


def one_kernel(folder: Path) -> Path:
    """One kernel and its launch."""
    return write(folder, launched("one", 0, 10, 20, 1))


def no_steps(folder: Path) -> Path:
    """A few kernels that do not repeat."""
    return write(
        folder,
        [
            event
            for number in range(7)
            for event in launched(f"k{number}", 50 * number, 50 * number + 9, 5 + number, number)
        ],
    )


def many_devices(folder: Path) -> Path:
    """Eight devices with 64 streams each, and overlapping kernels."""
    events = _steps(2)
    for device in range(8):
        for stream in range(64):
            for place in range(3):
                start = 100.0 * place + 7 * stream
                events.append(kernel(f"k{place}", start, 80, 1_000_000, device=device, stream=stream))
    return write(folder, events)


def hostile(folder: Path) -> Path:
    """Names that would be markup."""
    events = _steps(2)
    for number in range(3):
        begin = 5000.0 + 100 * number
        events += [
            annotation(EVIL, begin, 90),
            frame(EVIL, begin, 90, 900 + number, None),
            op(EVIL, begin + 1, 50, external=900 + number),
        ]
        events += launched(EVIL, begin + 5, begin + 20, 50, 900 + number)
    return write(folder, events)


def long_name(folder: Path) -> Path:
    """A kernel's name of ten million characters."""
    return write(folder, launched("k" * 10_000_000, 0, 10, 20, 1))


EDGES: dict[str, Callable[[Path], Path]] = {
    "no GPU activity": no_gpu,
    "one kernel": one_kernel,
    "no steps": no_steps,
    "8 devices with 64 streams each": many_devices,
    "names that would be markup": hostile,
    "a name of 10 MB": long_name,
    "no events": lambda folder: write(folder, []),
}
