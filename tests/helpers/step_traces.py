"""Kineto traces of steps with given kernels, written by hand."""

from __future__ import annotations

from pathlib import Path

from kineto_files import Event, annotation, launched, write


def steps(number: int, kernels: list[tuple[str, float]], gap: float = 5, jitter: float = 0) -> list[Event]:
    """So many steps, each with these kernels after one another."""
    events: list[Event] = []
    zero, correlation = 0.0, 1
    for step in range(number):
        begun = zero
        for name, length in kernels:
            longer = length + jitter * (step % 3)
            events += launched(name, zero, zero + gap, longer, correlation)
            zero, correlation = zero + gap + longer, correlation + 1
        events.append(annotation(f"ProfilerStep#{step}", begun, zero - begun))
    return events


def trace(folder: Path, name: str, events: list[Event], **header: object) -> Path:
    (folder / name).mkdir()
    return write(folder / name, events, **header)
