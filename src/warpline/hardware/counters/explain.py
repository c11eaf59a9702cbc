"""One metric explained: what it counts, where it exists, and what to use where it does not.

What it counts is what ``data/meanings.toml`` says of it, else its name in words, by the grammar of its parts.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from warpline.hardware.counters.names import default_suffix, is_ncu_only, split, suffix_problem, suffix_words
from warpline.hardware.counters.replace import Replacement, near_names, replacements
from warpline.hardware.counters.table import CHIPS, MetricCatalogue
from warpline.package_data import read_table

SCHEMA = "warpline.metric/1"
State = Literal["exists", "elsewhere", "ncu-only", "old", "unknown"]
"""It exists on the chip (or somewhere), only on other chips, in Nsight Compute alone, never but with a known
replacement, or not at all."""


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


class Explanation(Struct, frozen=True):
    """What is known about one metric."""

    name: str
    chip: str | None
    state: State
    kind: str
    """``counter``, ``ratio``, ``throughput``, or empty where no list says it."""
    what: str
    suffix: str
    """The suffix in words."""
    problem: str
    """What is wrong with the name as given; empty if nothing is."""
    compare: str
    good: str
    chips: tuple[str, ...]
    """The targets that have it."""
    instead: dict[str, tuple[Replacement, ...]]
    """By target that lacks it: what to ask for there."""
    near: tuple[str, ...]
    source: str

    @property
    def usable(self) -> bool:
        """Whether ncu takes the name as it is."""
        return self.state in {"exists", "ncu-only"} and not self.problem

    def to_dict(self) -> dict[str, Any]:
        """For --json."""
        return {
            "name": self.name,
            "chip": self.chip,
            "state": self.state,
            "type": self.kind or None,
            "what": self.what or None,
            "suffix": self.suffix or None,
            "problem": self.problem or None,
            "compare": self.compare or None,
            "good": self.good or None,
            "chips": list(self.chips),
            "instead": {
                chip: [{"name": one.name, "note": one.note} for one in found] for chip, found in self.instead.items()
            },
            "near": list(self.near),
            "source": self.source,
        }


def explain(name: str, chip: str | None, catalogue: MetricCatalogue) -> Explanation:
    """Explain a metric, on one chip or on all."""
    parts = split(name)
    having = catalogue.chips.get(parts.base, frozenset())
    kind = catalogue.types.get(parts.base, "")
    lacking = sorted((target for target in CHIPS if target not in having), key=lambda target: target != chip)
    only_ncu = is_ncu_only(parts)
    instead: dict[str, tuple[Replacement, ...]] = {}
    if not only_ncu:
        found = {target: tuple(replacements(name, target, catalogue)) for target in lacking}
        instead = {target: options for target, options in found.items() if options}
    state = _state(only_ncu, having, chip, bool(instead))
    entry = meaning(parts.base) if state != "unknown" else None
    if entry is None and state == "old":  # what replaces it counts the same
        entry = meaning(split(next(iter(instead.values()))[0].name).base)
    without = state == "unknown" or (state == "elsewhere" and chip not in instead)
    near = tuple(near_names(name, chip, catalogue)) if without else ()
    return Explanation(
        name=name,
        chip=chip,
        state=state,
        kind=kind,
        what=entry.what if entry else (in_words(parts.base) if state in {"exists", "elsewhere"} else ""),
        suffix=suffix_words(parts),
        problem=_problem(name, kind),
        compare=entry.compare if entry else "",
        good=entry.good if entry else "",
        chips=tuple(target for target in CHIPS if target in having),
        instead=instead,
        near=near,
        source=catalogue.source,
    )


def _state(only_ncu: bool, having: frozenset[str], chip: str | None, replaced: bool) -> State:
    if only_ncu:
        return "ncu-only"
    if having:
        return "exists" if chip is None or chip in having else "elsewhere"
    return "old" if replaced else "unknown"


def _problem(name: str, kind: str) -> str:
    parts = split(name)
    wrong = suffix_problem(parts, kind) if kind else ""
    return f"{wrong}: {parts.base}.{default_suffix(kind)}" if wrong else ""


@cache
def _table() -> _MeaningTable:
    return read_table("hardware.counters", "meanings", _MeaningTable)


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
