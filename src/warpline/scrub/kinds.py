"""The kinds of leaks, and their counts by kind and place, never by value."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

REMOVED = "(removed)"
"""Replaces a removed text; the nsys reader recognises it."""


class Kind(enum.StrEnum):
    """A kind of leak; also the values that ``--keep`` takes."""

    ENVIRONMENT = "environment"
    """Environment variables of a process."""
    TOKEN = "token"
    """Passwords, keys, tokens, and text that is random enough to be one."""
    USER = "user"
    """Account names of people, in fields, e-mail addresses and home folders."""
    HOST = "host"
    """Names of machines."""
    PATH = "path"
    """Folders of a site or a team; users' home folders are ``user``."""
    ADDRESS = "address"
    """IP and hardware addresses."""
    URL = "url"
    """Addresses that data was fetched from or sent to."""
    IDENTIFIER = "identifier"
    """UUIDs and serial numbers of GPUs and sessions."""
    COMMAND = "command"
    """Arguments of the profiled program."""
    OUTPUT = "output"
    """The program's output on stdout."""
    PROCESSES = "processes"
    """Names of processes that were not profiled, and strings that no row references."""
    JOB = "job"
    """Names and numbers of a cluster job, task or queue."""


@dataclass(frozen=True, slots=True)
class Leak:
    """The number of leaks of one kind in one place."""

    kind: Kind
    place: str
    """Table and column, or the path of a JSON value."""
    count: int


@dataclass(slots=True)
class Tally:
    """Counts leaks."""

    counts: Counter[tuple[Kind, str]] = field(default_factory=Counter)

    def add(self, kinds: Iterable[Kind], place: str, times: int = 1) -> None:
        """Count the leaks of one place."""
        for kind in kinds:
            self.counts[kind, place] += times

    def leaks(self) -> tuple[Leak, ...]:
        """All leaks, ordered by kind and then by count."""
        order = list(Kind)
        ranked = sorted(self.counts.items(), key=lambda item: (order.index(item[0][0]), -item[1], item[0][1]))
        return tuple(Leak(kind, place, count) for (kind, place), count in ranked)
