"""Damage to memory snapshots: values of the pickle, and the instructions that it is made of."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from typing import Any

from tests.fuzz import companions, values

Mutation = Callable[[dict[str, Any], random.Random], None]
MUTATIONS: dict[str, Mutation] = {}
NUMBERS = [number for number in values.INTEGERS if abs(number) < 1 << 70]
INSTRUCTIONS = [
    *(b".", b"0", b"1", b"2", b"(", b")", b"]", b"}", b"a", b"e", b"s", b"u", b"t", b"l", b"d", b"N", b"R", b"b"),
    *(b"\x93", b"\x94", b"\x90", b"\x91", b"\x81", b"\x92", b"\x85", b"\x86", b"\x87", b"\x88", b"\x89", b"Q"),
    *(b"cos\nsystem\n", b"j\xff\xff\xff\xff", b"h\x00", b"r\xff\xff\xff\x7f", b"q\x05", b"I99999999999999999999\n"),
    *(b"X\xff\xff\xff\x7fabc", b"\x8d" + b"\xff" * 8, b"\x8e" + b"\xff" * 8, b"\x95" + b"\xff" * 8, b"\x8b\xff\xff\xff\x7f"),
    *(b"G\x7f\xf8\x00\x00\x00\x00\x00\x00", b"Vx\\u0000\n", b"S'x'\n", b"L1L\n", b"P1\n", b"\x82\x01", b"\x97", b"\x98"),
]  # fmt: skip
"""Instructions of pickle, some of which import, call, or ask for gigabytes."""


def mutation(function: Mutation) -> Mutation:
    """Registers a mutation under its name."""
    MUTATIONS[function.__name__] = function
    return function


@mutation
def damaged(snapshot: dict[str, Any], chance: random.Random) -> None:
    """Values replaced or gone."""
    companions.damage(snapshot, chance, lambda chance: values.own(chance.choice(companions.PICKLED)))


def _dictionaries(value: Any) -> list[dict[str, Any]]:
    """All within a snapshot, down to the blocks and entries."""
    found, seen, waiting = [], set[int](), [value]
    while waiting and len(found) < 500:
        inner = waiting.pop()
        if isinstance(inner, dict | list) and id(inner) not in seen:
            seen.add(id(inner))
            if isinstance(inner, dict):
                found.append(inner)
            waiting += inner.values() if isinstance(inner, dict) else inner
    return found


@mutation
def odd_numbers(snapshot: dict[str, Any], chance: random.Random) -> None:
    """Addresses, sizes, times and devices beyond their range."""
    for one in chance.choices(_dictionaries(snapshot) or [{}], k=chance.choice([1, 5, 40])):
        keys = [key for key, value in one.items() if isinstance(value, int)]
        if keys:
            one[chance.choice(keys)] = chance.choice(NUMBERS)


@mutation
def odd_texts(snapshot: dict[str, Any], chance: random.Random) -> None:
    """Actions, states, files and functions that nobody wrote."""
    for one in chance.choices(_dictionaries(snapshot) or [{}], k=chance.choice([1, 5, 40])):
        keys = [key for key, value in one.items() if isinstance(value, str)]
        if keys:
            one[chance.choice(keys)] = values.text(chance)


@mutation
def repeated(snapshot: dict[str, Any], chance: random.Random) -> None:
    """Lists that are long, or contain themselves."""
    lists = [value for one in _dictionaries(snapshot) for value in one.values() if isinstance(value, list)]
    if lists:
        chosen = chance.choice(lists)
        chosen[:] = chosen * chance.choice([0, 2, 300 // (len(chosen) or 1) + 1])
        if chance.random() < 0.2:
            chosen.append(chance.choice([chosen, snapshot, [chosen]]))


@mutation
def deep(snapshot: dict[str, Any], chance: random.Random) -> None:
    """A value many levels down."""
    one, inner = chance.choice(_dictionaries(snapshot) or [snapshot]), []
    for _ in range(chance.choice([3, 90, 300])):
        inner = [inner] if chance.random() < 0.5 else {"frames": inner}
    one[chance.choice(list(one) or ["x"])] = inner


@mutation
def shuffled(snapshot: dict[str, Any], chance: random.Random) -> None:
    """Entries in another order: a free before its allocation, a segment twice."""
    for value in snapshot.values():
        if isinstance(value, list):
            chance.shuffle(value)
            for inner in value:
                if isinstance(inner, list):
                    chance.shuffle(inner)


def written(snapshot: dict[str, Any], chance: random.Random) -> bytes:
    """As a pickle of any protocol that has a mark; seldom with instructions put in, gone or repeated."""
    content = pickle.dumps(snapshot, chance.choice([2, 3, 4, 4, 5]))
    if chance.random() < 0.25:
        for _ in range(chance.choice([1, 2, 10])):
            at = chance.randint(2, len(content))
            content = content[:at] + chance.choice(INSTRUCTIONS) + content[at + chance.choice([0, 0, 1, 5]) :]
    return content
