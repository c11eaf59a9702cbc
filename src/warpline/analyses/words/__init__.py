"""One plain sentence for each CUDA call, OS call, kernel class, cause and health code."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Literal, get_args

from msgspec import Struct

NameKind = Literal["api", "os", "class", "cause", "health", "op"]
"""CUDA and HIP calls, calls of the operating system, kernel classes, causes, health codes, ops of a framework."""
KINDS: tuple[NameKind, ...] = get_args(NameKind)
When = Literal["once", "step", "wait", "ask"]
"""Once per process or object; again and again; waits for something; a mere query."""

_VERSIONS = re.compile(r"(?:_v\d++|_ptsz|_ptds|R\d{4})++")
_PLAIN = re.compile(r"[\w|-]+")


class Description(Struct, frozen=True):
    """A sentence about a name."""

    name: str
    kind: NameKind
    when: When
    text: str


class _Line(Struct, frozen=True):
    pattern: re.Pattern[str]
    when: When
    text: str
    names: tuple[str, ...]
    """The names themselves, where the pattern lists them."""


def words_of(name: str, kind: NameKind) -> Description | None:
    """The sentence for a name of that kind, None where there is none; HIP's names are read as CUDA's."""
    plain = _VERSIONS.sub(_unless_last, name) if kind == "api" else name
    if kind == "cause":  # Screens say "Dispatch-bound" and "launch latency".
        plain = name.lower().removesuffix("-bound").replace(" ", "_")
    if kind == "api" and plain.startswith("hip"):
        plain = "cuda" + plain[3:]
    for line in _lines()[kind]:
        if line.pattern.fullmatch(plain):
            return Description(name, kind, line.when, line.text)
    return None


def _unless_last(found: re.Match[str]) -> str:
    return "" if found.end() == len(found.string) else found[0]


def names_of(kind: NameKind) -> list[str]:
    """Names that the file spells out; families that are patterns are left out."""
    return [name for line in _lines()[kind] for name in line.names]


@cache
def _lines() -> dict[NameKind, list[_Line]]:
    found: dict[NameKind, list[_Line]] = {kind: [] for kind in KINDS}
    section: NameKind = "api"
    for row in (files(__package__) / "words.txt").read_text(encoding="utf-8").splitlines():
        if row.startswith("["):
            section = next(kind for kind in KINDS if f"[{kind}]" == row)
        elif row and not row.startswith("#"):
            pattern, when, text = row.split(" | ", 2)
            names = tuple(pattern.split("|")) if _PLAIN.fullmatch(pattern) else ()
            moment = next(word for word in get_args(When) if word == when)
            found[section].append(_Line(re.compile(pattern, re.DOTALL), moment, text, names))
    return found
