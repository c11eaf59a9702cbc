"""What to ask for where a chip lacks a metric, or where the name never existed (``data/replacements.toml``)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from functools import cache
from typing import Final

from msgspec import Struct

from warpline.hardware.counters.names import MetricName, default_suffix, is_ncu_only, split, suffix_problem
from warpline.hardware.counters.table import MetricCatalogue
from warpline.package_data import read_table

NEAR: Final = 5
_SIMILAR: Final = 0.34
"""Share of words that two names must have in common to be called near."""
_SPELT_ALIKE: Final = 0.8
"""Likeness of letters, where words are misspelt."""


class Replacement(Struct, frozen=True):
    """A metric to ask for instead."""

    name: str
    note: str = ""
    """How it differs."""
    unless: str = ""
    """Only for chips that lack this metric."""


class ReplacementRule(Struct, frozen=True):
    """What to try for names of one form."""

    name: str
    """A regular expression for the whole name without suffixes."""
    instead: tuple[Replacement, ...]
    """Their names refer to the groups of the expression, and may bring a suffix."""


class _RuleTable(Struct, frozen=True):
    rule: tuple[ReplacementRule, ...]
    nvprof: dict[str, Replacement]


@cache
def _table() -> _RuleTable:
    return read_table("hardware.counters", "replacements", _RuleTable)


def rules() -> tuple[ReplacementRule, ...]:
    """What to try, by the form of the name; all that fit are tried, in this order."""
    return _table().rule


def nvprof_metrics() -> dict[str, Replacement]:
    """By nvprof's name: what Nsight Compute calls it."""
    return _table().nvprof


def replacements(name: str, chip: str, catalogue: MetricCatalogue) -> list[Replacement]:
    """What the chip has instead of a metric that it lacks, the closest first; empty if nothing is known."""
    requested = split(name)
    found: dict[str, Replacement] = {}
    for candidate in _candidates(requested):
        usable = _usable(candidate, requested, chip, catalogue)
        if usable is not None:
            found.setdefault(usable.name, usable)
    return list(found.values())


def _candidates(requested: MetricName) -> Iterator[Replacement]:
    known = nvprof_metrics().get(requested.base)
    if known is not None:
        yield known
    for rule in rules():
        match = re.fullmatch(rule.name, requested.base)
        if match is not None:
            for option in rule.instead:
                yield Replacement(match.expand(option.name), option.note, option.unless)


def _usable(candidate: Replacement, requested: MetricName, chip: str, catalogue: MetricCatalogue) -> Replacement | None:
    """The candidate with a suffix that fits; None if the chip lacks it or if it is what was asked for."""
    name = split(candidate.name)
    if is_ncu_only(name):
        return candidate
    if not catalogue.exists(name.base, chip) or name.base == requested.base:
        return None
    if candidate.unless and catalogue.exists(candidate.unless, chip):
        return None
    if name.suffix:
        return candidate
    kind = catalogue.types[name.base]
    suffix = requested.suffix
    if not suffix or suffix_problem(MetricName("", name.base, suffix), kind):
        suffix = default_suffix(kind)
    return Replacement(f"{name.base}.{suffix}", candidate.note)


def near_names(name: str, chip: str | None, catalogue: MetricCatalogue) -> list[str]:
    """Names that share most words with a name that nobody knows, the nearest first."""
    words = _words(split(name).base)
    scored = []
    for other in catalogue.names(chip):
        if "Triage" in other:
            continue
        theirs = _words(other)
        score = len(words & theirs) / len(words | theirs)
        if score >= _SIMILAR:
            scored.append((-score, len(other), other))
    found = [other for _, _, other in sorted(scored)[:NEAR]]
    return found or get_close_matches(split(name).base, catalogue.names(chip), NEAR, _SPELT_ALIKE)


def _words(base: str) -> set[str]:
    """The words of a name, without the s of a plural."""
    return {word.rstrip("s") for word in re.split(r"_+", base) if word}
