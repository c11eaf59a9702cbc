"""Mutations of a JSON trace that know what its fields mean. Each takes the document and a source of chance."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tests.fuzz import values
from tests.fuzz.raw_json import Again, Raw

Event = dict[Any, Any]
Mutation = Callable[[Any, random.Random], None]
MUTATIONS: dict[str, Mutation] = {}

CATEGORIES = [
    *("cpu_op", "user_annotation", "kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime", "cuda_driver", "python_function"),
    *("gpu_user_annotation", "ac2g", "fwdbwd", "overhead", "cuda_sync", "cpu_instant_event", "Operator", "Kernel", "Runtime"),
    *("hip_runtime", "mtia_runtime", "Trace", "nonsense", "", None),
]
PHASES = ["X", "B", "E", "b", "e", "n", "s", "t", "f", "i", "I", "C", "M", "P", "N", "", "XX", None, 1]
IDS = ["correlation", "External id", "stream", "device", "context", "graph id", "Python id", "Python parent id", "Sequence number", "Fwd thread id"]
ARGUMENTS = [
    *IDS, "bytes", "grid", "block", "registers per thread", "shared memory", "Input Dims", "Input type", "Input Strides", "Concrete Inputs",
    *("Call stack", "name", "labels", "Bytes", "Addr", "Device Id", "Device Type", "Total Allocated", "Total Reserved", "wait_on_stream"),
    *("wait_on_cuda_event_id", "Collective name", "Group size", "In msg nelems", "dtype", "Ev Idx", "Record function id"),
]  # fmt: skip
TOP = ["ph", "cat", "name", "pid", "tid", "ts", "dur", "id", "args"]
HEADER = ["deviceProperties", "distributedInfo", "baseTimeNanoseconds", "displayTimeUnit", "schemaVersion", "traceName", "metadata", "cuda_runtime_version", "traceEvents", "with_stack", "record_shapes"]
BASES = [0.0, -1.0, 1e15, 9.2e15, 9.223372036854775e15, -9.2e15, 9.3e18, 1e300]
MANY = [40, 300, 1500]


def mutation(function: Mutation) -> Mutation:
    """Registers a mutation under its name."""
    MUTATIONS[function.__name__] = function
    return function


def events_of(document: Any) -> list[Event]:
    """The events that are objects; empty where an earlier mutation left none."""
    events = document.get("traceEvents") if isinstance(document, dict) else document
    return [one for one in events if isinstance(one, dict)] if isinstance(events, list) else []


def _list_of(document: Any) -> list[Any]:
    events = document.get("traceEvents") if isinstance(document, dict) else document
    return events if isinstance(events, list) else []


def _some(document: Any, chance: random.Random) -> list[Event]:
    """One event, some, all of a category, or all."""
    events = events_of(document)
    if not events:
        return []
    match chance.randrange(5):
        case 0 | 1:
            return [chance.choice(events)]
        case 2:
            return chance.sample(events, min(len(events), chance.randint(2, 12)))
        case 3:
            category = chance.choice(events).get("cat")
            return [one for one in events if one.get("cat") == category]
        case _:
            return events


def _arguments(event: Event) -> Event:
    inner = event.get("args")
    return inner if isinstance(inner, dict) else {}


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and abs(value) < 1e300 else 0.0


@mutation
def odd_field(document: Any, chance: random.Random) -> None:
    """A field of events has a value of any type."""
    key = chance.choice(TOP)
    one = chance.random() < 0.6
    same = values.anything(chance)
    for event in _some(document, chance):
        event[key] = same if one else values.anything(chance)


@mutation
def odd_argument(document: Any, chance: random.Random) -> None:
    """An argument of events has a value of any type."""
    chosen = _some(document, chance)
    present = [key for event in chosen[:5] for key in _arguments(event)]
    key = chance.choice(present) if present and chance.random() < 0.7 else chance.choice(ARGUMENTS)
    for event in chosen:
        if not isinstance(event.get("args"), dict):
            event["args"] = {}
        event["args"][key] = values.anything(chance)


@mutation
def odd_name(document: Any, chance: random.Random) -> None:
    """Events have a hostile name, or one that belongs elsewhere."""
    name = values.text(chance)
    for event in _some(document, chance):
        event["name"] = name


@mutation
def known_name(document: Any, chance: random.Random) -> None:
    """Events are named as what the analyses look for."""
    for event in _some(document, chance):
        event["name"] = chance.choice(values.NAMES)


@mutation
def odd_shapes(document: Any, chance: random.Random) -> None:
    """Shapes, types and strides that do not fit together, or mean nothing."""
    for event in _some(document, chance):
        if isinstance(event.get("args"), dict):
            event["args"]["Input Dims"] = chance.choice(values.SHAPES)
            event["args"]["Input type"] = chance.choice(values.DTYPES)
            event["args"][chance.choice(["Input Strides", "Concrete Inputs"])] = chance.choice(values.SHAPES)


@mutation
def odd_grid(document: Any, chance: random.Random) -> None:
    """Grids and blocks that no device takes."""
    for event in _some(document, chance):
        if isinstance(event.get("args"), dict):
            triple = [chance.choice(values.INTEGERS) for _ in range(chance.choice([3, 3, 3, 2, 4, 0]))]
            event["args"][chance.choice(["grid", "block"])] = triple if chance.random() < 0.8 else str(triple)


@mutation
def missing_key(document: Any, chance: random.Random) -> None:
    """Events lack a field or an argument."""
    key = chance.choice(TOP + ARGUMENTS)
    for event in _some(document, chance):
        event.pop(key, None)
        _arguments(event).pop(key, None)


@mutation
def repeated_key(document: Any, chance: random.Random) -> None:
    """A key is there twice."""
    for event in _some(document, chance)[:20]:
        target = event if chance.random() < 0.5 else _arguments(event)
        if target:
            target[Again(chance.choice([key for key in target if isinstance(key, str)]))] = values.anything(chance)


@mutation
def extra_key(document: Any, chance: random.Random) -> None:
    """A key that nobody knows, or that is a hostile text."""
    for event in _some(document, chance)[:20]:
        target = event if chance.random() < 0.3 else _arguments(event)
        target[values.text(chance)] = values.anything(chance)


@mutation
def swapped_ids(document: Any, chance: random.Random) -> None:
    """Two events exchange an id."""
    key = chance.choice(IDS)
    holders = [one for one in events_of(document) if key in _arguments(one)]
    for _ in range(chance.choice([1, 1, 10])):
        if len(holders) > 1:
            one, other = chance.sample(holders, 2)
            one["args"][key], other["args"][key] = other["args"][key], one["args"][key]


@mutation
def dangling_ids(document: Any, chance: random.Random) -> None:
    """An id leads nowhere, or everywhere the same."""
    key = chance.choice(IDS)
    same = chance.choice([0, -1, 1, 999999, 2**31, 2**62, None])
    for event in _some(document, chance):
        if isinstance(event.get("args"), dict):
            event["args"][key] = same


@mutation
def parent_cycle(document: Any, chance: random.Random) -> None:
    """Python frames that call themselves, or each other."""
    frames = [one for one in events_of(document) if "Python id" in _arguments(one)]
    for place, event in enumerate(frames):
        event["args"]["Python parent id"] = frames[(place + chance.randint(0, 2)) % len(frames)]["args"]["Python id"]


@mutation
def odd_durations(document: Any, chance: random.Random) -> None:
    """Zero, negative, endless or overlapping events."""
    length = chance.choice([0, 0, -1, -1e9, 1e-4, 0.001, 1e6, 1e12, 9.2e15, 1e30, "5"])
    for event in _some(document, chance):
        event["dur"] = length


@mutation
def odd_times(document: Any, chance: random.Random) -> None:
    """Events at the same moment, before all others, or near the end of 64 bits."""
    base = chance.choice(BASES)
    keep = chance.random() < 0.5
    for event in _some(document, chance):
        event["ts"] = base + (_number(event.get("ts")) if keep else 0.0)


@mutation
def stretched_time(document: Any, chance: random.Random) -> None:
    """Another unit of time."""
    factor = chance.choice([1e-3, 1e3, 1e6, 1e9, -1.0, 0.0])
    for event in events_of(document):
        for key in ("ts", "dur"):
            if key in event:
                event[key] = _number(event[key]) * factor


@mutation
def shifted_time(document: Any, chance: random.Random) -> None:
    """Some events move: kernels before their launches, ops across each other's ends."""
    by = chance.choice([-1.0, 1.0]) * 10 ** chance.uniform(-3, 7)
    for event in _some(document, chance):
        event["ts"] = _number(event.get("ts")) + by


@mutation
def many_lanes(document: Any, chance: random.Random) -> None:
    """An event on many threads, streams, devices or processes."""
    events = [one for one in events_of(document) if one.get("ph") == "X"]
    if not events:
        return
    model = chance.choice(events)
    key = chance.choice(["tid", "pid", "stream", "device", "correlation"])
    for number in range(chance.choice(MANY)):
        clone = {**model, "args": {**_arguments(model)}}
        target = clone if key in TOP else clone["args"]
        target[key] = 1000 + number
        clone["ts"] = _number(model.get("ts")) + (number if chance.random() < 0.5 else 0)
        _list_of(document).append(clone)


@mutation
def other_category(document: Any, chance: random.Random) -> None:
    """Events of an unknown, an old, or a wrong category."""
    category = chance.choice(CATEGORIES)
    for event in _some(document, chance):
        event["cat"] = category


@mutation
def other_phase(document: Any, chance: random.Random) -> None:
    """Events of another phase."""
    phase = chance.choice(PHASES)
    for event in _some(document, chance):
        event["ph"] = phase


@mutation
def begin_and_end(document: Any, chance: random.Random) -> None:
    """Complete events as pairs of begin and end, some without their other half."""
    pair = chance.choice([("B", "E"), ("b", "e"), ("s", "f"), ("b", "n")])
    for event in _some(document, chance):
        end = {**event, "ph": pair[1], "ts": _number(event.get("ts")) + _number(event.get("dur"))}
        event["ph"] = pair[0]
        event["id"] = end["id"] = chance.choice([1, 2, "0x5", None])
        if chance.random() < 0.8:
            _list_of(document).append(end)


@mutation
def lost_events(document: Any, chance: random.Random) -> None:
    """Events are missing: of a category, at random, or nearly all."""
    gone = {id(one) for one in _some(document, chance)}
    share = chance.choice([1.0, 1.0, 0.5, 0.98])
    events = _list_of(document)
    events[:] = [one for one in events if id(one) not in gone or chance.random() > share]


@mutation
def repeated_events(document: Any, chance: random.Random) -> None:
    """Events are there several times."""
    events = _list_of(document)
    for event in _some(document, chance)[:50]:
        events.extend([dict(event)] * chance.choice([1, 1, 3]))


@mutation
def shuffled_events(document: Any, chance: random.Random) -> None:
    """Events in another order."""
    events = _list_of(document)
    events.reverse() if chance.random() < 0.3 else chance.shuffle(events)


@mutation
def not_an_event(document: Any, chance: random.Random) -> None:
    """Something else between the events."""
    events = _list_of(document)
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
