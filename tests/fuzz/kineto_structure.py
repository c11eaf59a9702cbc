"""Mutations of a JSON trace's times, lanes, phases and events; those of single fields are in `kineto_mutators`."""

from __future__ import annotations

import random
from typing import Any

from tests.fuzz import values
from tests.fuzz.kineto_mutators import MUTATIONS, TOP, arguments_of, events_of, list_of, mutation, number_of, some
from tests.fuzz.raw_json import Again, Raw

__all__ = ["MUTATIONS"]

CATEGORIES = [
    *(
        "cpu_op",
        "user_annotation",
        "kernel",
        "gpu_memcpy",
        "gpu_memset",
        "cuda_runtime",
        "cuda_driver",
        "python_function",
    ),
    *(
        "gpu_user_annotation",
        "ac2g",
        "fwdbwd",
        "overhead",
        "cuda_sync",
        "cpu_instant_event",
        "Operator",
        "Kernel",
        "Runtime",
    ),
    *("hip_runtime", "mtia_runtime", "Trace", "nonsense", "", None),
]
PHASES = ["X", "B", "E", "b", "e", "n", "s", "t", "f", "i", "I", "C", "M", "P", "N", "", "XX", None, 1]
HEADER = [
    "deviceProperties",
    "distributedInfo",
    "baseTimeNanoseconds",
    "displayTimeUnit",
    "schemaVersion",
    "traceName",
    "metadata",
    "cuda_runtime_version",
    "traceEvents",
    "with_stack",
    "record_shapes",
]
BASES = [0.0, -1.0, 1e15, 9.2e15, 9.223372036854775e15, -9.2e15, 9.3e18, 1e300]
MANY = [40, 300, 1500]


@mutation
def odd_durations(document: Any, chance: random.Random) -> None:
    """Zero, negative, endless or overlapping events."""
    length = chance.choice([0, 0, -1, -1e9, 1e-4, 0.001, 1e6, 1e12, 9.2e15, 1e30, "5"])
    for event in some(document, chance):
        event["dur"] = length


@mutation
def odd_times(document: Any, chance: random.Random) -> None:
    """Events at the same moment, before all others, or near the end of 64 bits."""
    base = chance.choice(BASES)
    keep = chance.random() < 0.5
    for event in some(document, chance):
        event["ts"] = base + (number_of(event.get("ts")) if keep else 0.0)


@mutation
def stretched_time(document: Any, chance: random.Random) -> None:
    """Another unit of time."""
    factor = chance.choice([1e-3, 1e3, 1e6, 1e9, -1.0, 0.0])
    for event in events_of(document):
        for key in ("ts", "dur"):
            if key in event:
                event[key] = number_of(event[key]) * factor


@mutation
def shifted_time(document: Any, chance: random.Random) -> None:
    """Some events move: kernels before their launches, ops across each other's ends."""
    by = chance.choice([-1.0, 1.0]) * 10 ** chance.uniform(-3, 7)
    for event in some(document, chance):
        event["ts"] = number_of(event.get("ts")) + by


@mutation
def many_lanes(document: Any, chance: random.Random) -> None:
    """An event on many threads, streams, devices or processes."""
    events = [one for one in events_of(document) if one.get("ph") == "X"]
    if not events:
        return
    model = chance.choice(events)
    key = chance.choice(["tid", "pid", "stream", "device", "correlation"])
    for number in range(chance.choice(MANY)):
        clone = {**model, "args": {**arguments_of(model)}}
        target = clone if key in TOP else clone["args"]
        target[key] = 1000 + number
        clone["ts"] = number_of(model.get("ts")) + (number if chance.random() < 0.5 else 0)
        list_of(document).append(clone)


@mutation
def other_category(document: Any, chance: random.Random) -> None:
    """Events of an unknown, an old, or a wrong category."""
    category = chance.choice(CATEGORIES)
    for event in some(document, chance):
        event["cat"] = category


@mutation
def other_phase(document: Any, chance: random.Random) -> None:
    """Events of another phase."""
    phase = chance.choice(PHASES)
    for event in some(document, chance):
        event["ph"] = phase


@mutation
def begin_and_end(document: Any, chance: random.Random) -> None:
    """Complete events as pairs of begin and end, some without their other half."""
    pair = chance.choice([("B", "E"), ("b", "e"), ("s", "f"), ("b", "n")])
    for event in some(document, chance):
        end = {**event, "ph": pair[1], "ts": number_of(event.get("ts")) + number_of(event.get("dur"))}
        event["ph"] = pair[0]
        event["id"] = end["id"] = chance.choice([1, 2, "0x5", None])
        if chance.random() < 0.8:
            list_of(document).append(end)


@mutation
def lost_events(document: Any, chance: random.Random) -> None:
    """Events are missing: of a category, at random, or nearly all."""
    gone = {id(one) for one in some(document, chance)}
    share = chance.choice([1.0, 1.0, 0.5, 0.98])
    events = list_of(document)
    events[:] = [one for one in events if id(one) not in gone or chance.random() > share]


@mutation
def repeated_events(document: Any, chance: random.Random) -> None:
    """Events are there several times."""
    events = list_of(document)
    for event in some(document, chance)[:50]:
        events.extend([dict(event)] * chance.choice([1, 1, 3]))


@mutation
def shuffled_events(document: Any, chance: random.Random) -> None:
    """Events in another order."""
    events = list_of(document)
    events.reverse() if chance.random() < 0.3 else chance.shuffle(events)


@mutation
def not_an_event(document: Any, chance: random.Random) -> None:
    """Something else between the events."""
    events = list_of(document)
    for _ in range(chance.choice([1, 1, 5])):
        events.insert(chance.randint(0, len(events)), values.anything(chance))


@mutation
def odd_header(document: Any, chance: random.Random) -> None:
    """A header field of any type, or without one of its parts."""
    if not isinstance(document, dict):
        return
    key = chance.choice(HEADER[:-3] if chance.random() < 0.9 else HEADER)
    inner = document.get(key)
    if isinstance(inner, list) and inner and isinstance(inner[0], dict) and key != "traceEvents":
        inner = inner[0]
    if isinstance(inner, dict) and inner and chance.random() < 0.7:
        inner[chance.choice([*inner, "name", "id"])] = values.anything(chance)
    elif key != "traceEvents":
        document[key] = values.anything(chance)
    else:
        document[Again(key)] = chance.choice([[], {}, None, Raw("["), [{"ph": "X"}]])


@mutation
def lost_header(document: Any, chance: random.Random) -> None:
    """Header fields are missing."""
    if isinstance(document, dict):
        for key in chance.sample(HEADER[:8], chance.randint(1, 8)):
            document.pop(key, None)
