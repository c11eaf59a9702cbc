"""Mutations that make a JSON trace extreme in one direction: very many steps, frames, names or allocations."""

from __future__ import annotations

import random
from typing import Any

from kineto_files import MAIN, PROCESS, annotation, frame

from tests.fuzz import values
from tests.fuzz.kineto_mutators import MUTATIONS, arguments_of, events_of, list_of, mutation, number_of

__all__ = ["MUTATIONS"]

COUNTS = [30, 300, 2_000]
SIZES = [1, 512, 512, 4096, 1 << 30, -1, 0, (1 << 44) + 1, -(1 << 62)]


def span_of(document: Any) -> tuple[float, float]:
    """Begin and length of the events."""
    times = [number_of(one.get("ts")) for one in events_of(document) if one.get("ph") == "X"]
    return (min(times), max(max(times) - min(times), 1.0)) if times else (0.0, 1.0)


@mutation
def many_steps(document: Any, chance: random.Random) -> None:
    """Thousands of steps: in order, at one moment, of no length, over one another, or numbered backwards."""
    begin, length = span_of(document)
    count = chance.choice(COUNTS)
    each, way = length / count, chance.randrange(5)
    for number in range(count):
        at = begin if way == 0 else begin + each * number
        lasts = 0 if way == 1 else each * (5 if way == 2 else 1)
        name = f"ProfilerStep#{count - number if way == 3 else number // (2 if way == 4 else 1)}"
        list_of(document).append(annotation(name, at, lasts))


@mutation
def deep_frames(document: Any, chance: random.Random) -> None:
    """Python frames within one another, far down."""
    begin, length = span_of(document)
    depth = chance.choice(COUNTS)
    for level in range(depth):
        inset = length * level / (2 * depth) * chance.choice([0, 1])
        name = chance.choice(
            [f"train.py({level}): f", "nn.Module: Block_0", "torch/nn/modules/module.py(1): _call_impl"]
        )
        list_of(document).append(frame(name, begin + inset, length - 2 * inset, 10_000 + level, 9_999 + level))


@mutation
def distinct_names(document: Any, chance: random.Random) -> None:
    """No two events of one name."""
    model = values.text(chance)[:200]
    for number, event in enumerate(events_of(document)):
        event["name"] = chance.choice([f"{model}{number}", f"{number}{model}", f"{event.get('name')}<{number}>"])


@mutation
def many_allocations(document: Any, chance: random.Random) -> None:
    """Allocations that are freed twice, never, before they are made, or of impossible sizes."""
    begin, length = span_of(document)
    for _ in range(chance.choice(COUNTS)):
        size, address = chance.choice(SIZES), chance.choice([0, 4096, 8192, chance.randrange(1 << 47), -1])
        arguments = {
            "Bytes": size * chance.choice([1, -1]),
            "Addr": address,
            "Device Id": chance.choice([0, 0, 1, -1]),
            "Device Type": chance.choice([1, 1, 0, 9]),
            "Total Allocated": chance.choice([size, 0, -5, 1 << 40]),
            "Total Reserved": chance.choice([size, 0, 1 << 20]),
        }
        at = begin + chance.random() * length
        moment = {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": PROCESS, "tid": MAIN}
        list_of(document).append({**moment, "ts": at, "args": arguments})


@mutation
def one_of_each_twice(document: Any, chance: random.Random) -> None:
    """Every event has the ids of another one: correlation and External id are there twice, shifted or reversed."""
    events = [one for one in events_of(document) if isinstance(one.get("args"), dict)]
    key = chance.choice(["correlation", "External id"])
    holders = [one for one in events if key in arguments_of(one)]
    numbers = [one["args"][key] for one in holders]
    by = chance.choice([1, len(numbers) // 2, 0])
    for event, number in zip(holders, numbers[by:] + numbers[:by] if by else numbers[::-1], strict=True):
        event["args"][key] = number


@mutation
def backwards(document: Any, chance: random.Random) -> None:
    """The clock of a lane runs backwards, or jumps back in the middle."""
    events = [one for one in events_of(document) if one.get("ph") == "X"]
    if not events:
        return
    lane = chance.choice(events).get("tid")
    begin, length = span_of(document)
    jumps = chance.random() < 0.5
    for event in events:
        at = number_of(event.get("ts"))
        if event.get("tid") == lane and (not jumps or at > begin + length / 2):
            event["ts"] = at - length if jumps else 2 * begin + length - at
