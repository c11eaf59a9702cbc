"""What can leak, and how leaks are counted: by kind and place, never by value."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

REMOVED = "(removed)"
"""What stands where a text was taken out; the reader of nsys files knows it too."""


class Kind(enum.StrEnum):
    """A kind of thing that should not be shared; also the words that ``--keep`` takes."""

    ENVIRONMENT = "environment"
    """Environment variables of a process."""
    TOKEN = "token"
    """Passwords, keys, tokens, and what looks random enough to be one."""
    USER = "user"
    """Names of people's accounts, in fields, e-mail addresses and home folders."""
    HOST = "host"
    """Names of machines."""
    PATH = "path"
    """Folders of a site or a team; users' own folders are ``user``."""
    ADDRESS = "address"
    """IP and hardware addresses."""
    URL = "url"
    """Where something was fetched from or sent to."""
    IDENTIFIER = "identifier"
    """UUIDs and serial numbers of GPUs and sessions."""
    COMMAND = "command"
    """Arguments of the profiled program."""
    OUTPUT = "output"
    """What the program wrote to stdout."""
    PROCESSES = "processes"
    """Names of processes that were not profiled, and strings that no row refers to."""
    JOB = "job"
    """Names and numbers of a cluster's job, task or queue."""


@dataclass(frozen=True, slots=True)
class Leak:
    """How often one kind occurs in one place."""

    kind: Kind
    place: str
    """Table and column, or the path of a JSON value."""
    count: int


@dataclass(slots=True)
class Tally:
    """Leaks, counted as they are found."""

    counts: Counter[tuple[Kind, str]] = field(default_factory=Counter)

    def add(self, kinds: Iterable[Kind], place: str, times: int = 1) -> None:
        """Counts one place's leaks."""
        for kind in kinds:
            self.counts[kind, place] += times

    def leaks(self) -> tuple[Leak, ...]:
        """All leaks: in the order of kinds, the most frequent place first."""
        order = list(Kind)
        ranked = sorted(self.counts.items(), key=lambda item: (order.index(item[0][0]), -item[1], item[0][1]))
        return tuple(Leak(kind, place, count) for (kind, place), count in ranked)
