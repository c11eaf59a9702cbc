"""Kineto traces of steps with given kernels, written by hand."""

from __future__ import annotations

from pathlib import Path

from kineto_files import Event, annotation, launched, write


def steps(
    number: int, kernels: list[tuple[str, float]], gap: float = 5, jitter: float = 0, cold: float = 0
) -> list[Event]:
    """So many steps, each with these kernels after one another; the first kernel of all starts so much later."""
    events: list[Event] = []
    zero, correlation = 0.0, 1
    for step in range(number):
        begun = zero
        for name, length in kernels:
            longer = length + jitter * (step % 3)
            wait = gap + (cold if correlation == 1 else 0)
            events += launched(name, zero, zero + wait, longer, correlation)
            zero, correlation = zero + wait + longer, correlation + 1
        events.append(annotation(f"ProfilerStep#{step}", begun, zero - begun))
    return events


def trace(folder: Path, name: str, events: list[Event], **header: object) -> Path:
    (folder / name).mkdir()
    return write(folder / name, events, **header)
