"""The known ways in which profiling fails (``data/failures.toml``), each with its symptom, cause and fix."""

from __future__ import annotations

from functools import cache

from msgspec import Struct

from warpline.doctor.model import Check, State
from warpline.package_data import read_table


class Failure(Struct, frozen=True):
    """One known failure of profiling."""

    number: int
    """As in docs/doctor.md."""
    name: str
    symptom: str
    cause: str
    do: tuple[str, ...]
    usual: State = "problem"
    """Its state, unless the evidence gives another."""

    def found(self, seen: str, state: State | None = None, means: str = "", do: tuple[str, ...] = ()) -> Check:
        """The failure as a check."""
        return Check(self.name, state or self.usual, seen, means or self.cause, do or self.do, self.number)


class _FailureTable(Struct, frozen=True):
    failure: tuple[Failure, ...]


@cache
def known_failures() -> dict[str, Failure]:
    """All of them by name, in the order of their numbers."""
    return {failure.name: failure for failure in read_table("doctor", "failures", _FailureTable).failure}


def known_failure(name: str) -> Failure:
    """The failure of that name."""
    return known_failures()[name]
