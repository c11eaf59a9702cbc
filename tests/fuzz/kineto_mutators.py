"""Mutations of a JSON trace that know what its fields mean. Each takes the document and a source of chance."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tests.fuzz import values
from tests.fuzz.raw_json import Again

Event = dict[Any, Any]
Mutation = Callable[[Any, random.Random], None]
MUTATIONS: dict[str, Mutation] = {}

IDS = [
    "correlation",
    "External id",
    "stream",
    "device",
    "context",
    "graph id",
    "Python id",
    "Python parent id",
    "Sequence number",
    "Fwd thread id",
]
ARGUMENTS = [
    *IDS, "bytes", "grid", "block", "registers per thread", "shared memory", "Input Dims", "Input type", "Input Strides", "Concrete Inputs",
    *("Call stack", "name", "labels", "Bytes", "Addr", "Device Id", "Device Type", "Total Allocated", "Total Reserved", "wait_on_stream"),
    *("wait_on_cuda_event_id", "Collective name", "Group size", "In msg nelems", "dtype", "Ev Idx", "Record function id"),
]  # fmt: skip
TOP = ["ph", "cat", "name", "pid", "tid", "ts", "dur", "id", "args"]


def mutation(function: Mutation) -> Mutation:
    """Registers a mutation under its name."""
    MUTATIONS[function.__name__] = function
    return function


def events_of(document: Any) -> list[Event]:
    """The events that are objects; empty where an earlier mutation left none."""
    events = document.get("traceEvents") if isinstance(document, dict) else document
    return [one for one in events if isinstance(one, dict)] if isinstance(events, list) else []


def list_of(document: Any) -> list[Any]:
    """The events, to add to or take from; a list of its own where there is none."""
    events = document.get("traceEvents") if isinstance(document, dict) else document
    return events if isinstance(events, list) else []


def some(document: Any, chance: random.Random) -> list[Event]:
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


def arguments_of(event: Event) -> Event:
    """An event's arguments; an object of its own where it has none."""
    inner = event.get("args")
    return inner if isinstance(inner, dict) else {}


def number_of(value: Any) -> float:
    """A number to count with; 0 for what is none."""
    return float(value) if isinstance(value, int | float) and abs(value) < 1e300 else 0.0


@mutation
def odd_field(document: Any, chance: random.Random) -> None:
    """A field of events has a value of any type."""
    key = chance.choice(TOP)
    one = chance.random() < 0.6
    same = values.anything(chance)
    for event in some(document, chance):
        event[key] = same if one else values.anything(chance)


@mutation
def odd_argument(document: Any, chance: random.Random) -> None:
    """An argument of events has a value of any type."""
    chosen = some(document, chance)
    present = [key for event in chosen[:5] for key in arguments_of(event)]
    key = chance.choice(present) if present and chance.random() < 0.7 else chance.choice(ARGUMENTS)
    for event in chosen:
        if not isinstance(event.get("args"), dict):
            event["args"] = {}
        event["args"][key] = values.anything(chance)


@mutation
def odd_name(document: Any, chance: random.Random) -> None:
    """Events have a hostile name, or one that belongs elsewhere."""
    name = values.text(chance)
    for event in some(document, chance):
        event["name"] = name


@mutation
def long_name(document: Any, chance: random.Random) -> None:
    """One event has a name of up to a hundred thousand letters."""
    for event in some(document, chance)[:1]:
        event["name"] = values.long_text(chance)


@mutation
def deep_arguments(document: Any, chance: random.Random) -> None:
    """Arguments are lists within lists."""
    key = chance.choice([*ARGUMENTS, "Input Dims", "Input type", "Concrete Inputs"])
    for event in some(document, chance)[:3]:
        if isinstance(event.get("args"), dict):
            event["args"][key] = values.deep_nesting(chance)


@mutation
def known_name(document: Any, chance: random.Random) -> None:
    """Events are named as what the analyses look for."""
    for event in some(document, chance):
        event["name"] = chance.choice(values.NAMES)


@mutation
def odd_shapes(document: Any, chance: random.Random) -> None:
    """Shapes, types and strides that do not fit together, or mean nothing."""
    for event in some(document, chance):
        if isinstance(event.get("args"), dict):
            event["args"]["Input Dims"] = values.own(chance.choice(values.SHAPES))
            event["args"]["Input type"] = values.own(chance.choice(values.DTYPES))
            key = chance.choice(["Input Strides", "Concrete Inputs"])
            event["args"][key] = values.own(chance.choice(values.SHAPES))


@mutation
def odd_grid(document: Any, chance: random.Random) -> None:
    """Grids and blocks that no device takes."""
    for event in some(document, chance):
        if isinstance(event.get("args"), dict):
            triple = [chance.choice(values.INTEGERS) for _ in range(chance.choice([3, 3, 3, 2, 4, 0]))]
            event["args"][chance.choice(["grid", "block"])] = triple if chance.random() < 0.8 else str(triple)


@mutation
def missing_key(document: Any, chance: random.Random) -> None:
    """Events lack a field or an argument."""
    key = chance.choice(TOP + ARGUMENTS)
    for event in some(document, chance):
        event.pop(key, None)
        arguments_of(event).pop(key, None)


@mutation
def repeated_key(document: Any, chance: random.Random) -> None:
    """A key is there twice."""
    for event in some(document, chance)[:20]:
        target = event if chance.random() < 0.5 else arguments_of(event)
        if target:
            target[Again(chance.choice([key for key in target if isinstance(key, str)]))] = values.anything(chance)


@mutation
def extra_key(document: Any, chance: random.Random) -> None:
    """A key that nobody knows, or that is a hostile text."""
    for event in some(document, chance)[:20]:
        target = event if chance.random() < 0.3 else arguments_of(event)
        target[values.text(chance)] = values.anything(chance)


@mutation
def swapped_ids(document: Any, chance: random.Random) -> None:
    """Two events exchange an id."""
    key = chance.choice(IDS)
    holders = [one for one in events_of(document) if key in arguments_of(one)]
    for _ in range(chance.choice([1, 1, 10])):
        if len(holders) > 1:
            one, other = chance.sample(holders, 2)
            one["args"][key], other["args"][key] = other["args"][key], one["args"][key]


@mutation
def dangling_ids(document: Any, chance: random.Random) -> None:
    """An id leads nowhere, or everywhere the same."""
    key = chance.choice(IDS)
    same = chance.choice([0, -1, 1, 999999, 2**31, 2**62, None])
    for event in some(document, chance):
        if isinstance(event.get("args"), dict):
            event["args"][key] = same


@mutation
def parent_cycle(document: Any, chance: random.Random) -> None:
    """Python frames that call themselves, or each other."""
    frames = [one for one in events_of(document) if "Python id" in arguments_of(one)]
    for place, event in enumerate(frames):
        event["args"]["Python parent id"] = frames[(place + chance.randint(0, 2)) % len(frames)]["args"]["Python id"]
