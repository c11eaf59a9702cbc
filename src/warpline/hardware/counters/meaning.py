"""What a metric counts: what ``data/meanings.toml`` says of it, else its name in words, by the grammar of its parts."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

from msgspec import Struct, toml
from msgspec.structs import replace


class MetricMeaning(Struct, frozen=True):
    """A metric, or a family of them, in words."""

    name: str
    """A regular expression for the whole name without suffixes."""
    what: str
    compare: str = ""
    """What to compare it with."""
    good: str = ""
    """What a good value is."""


class _Stalls(Struct, frozen=True):
    compare: str
    good: str
    reason: tuple[MetricMeaning, ...]


class _MeaningTable(Struct, frozen=True):
    metric: tuple[MetricMeaning, ...]
    stall: _Stalls
    units: dict[str, str]
    quantities: dict[str, str]
    details: dict[str, str]


@cache
def _table() -> _MeaningTable:
    return toml.decode(
        files("warpline.hardware.counters").joinpath("data", "meanings.toml").read_bytes(), type=_MeaningTable
    )


@cache
def meanings() -> tuple[MetricMeaning, ...]:
    """All that is written about metrics; the first that fits a name counts."""
    table, stall = _table(), _table().stall
    stalls = (replace(reason, compare=stall.compare, good=reason.good or stall.good) for reason in stall.reason)
    return (*table.metric, *stalls)


def meaning(base: str) -> MetricMeaning | None:
    """What is written about a metric, given without suffixes."""
    return next((entry for entry in meanings() if re.fullmatch(entry.name, base)), None)


def in_words(base: str) -> str:
    """What the name says: "32-byte sectors of global memory by loads that missed, in the L1 cache"."""
    table = _table()
    unit, _, rest = base.partition("__")
    quantity = next((words for mark, words in table.quantities.items() if mark in rest), rest.replace("_", " "))
    found = [(re.search(pattern, rest), words) for pattern, words in table.details.items()]
    details = [words.format(match[1]) for match, words in found if match is not None]
    place = table.units.get(unit)
    return " ".join([quantity, *details]) + (f", in {place}" if place else "")
