"""What the doctor says: checks about a machine, a file or a command line, and the verdict over them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

from warpline.errors import EXIT_FAILED, EXIT_INCONCLUSIVE

SCHEMA = "warpline.doctor/1"

State = Literal["problem", "warning", "unknown", "note", "ok"]
STATES: tuple[State, ...] = ("problem", "warning", "unknown", "note", "ok")
"""Worst first: what cannot be told comes before what is known to be harmless."""
Kind = Literal["machine", "file", "command"]


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at."""

    name: str
    """Stable kebab-case word."""
    state: State
    seen: str
    """What was seen, with numbers; for ``unknown``, why it could not be seen."""
    means: str = ""
    """What follows from it, or what caused it."""
    do: tuple[str, ...] = ()
    """What to type or change, the first thing first."""
    failure: int | None = None
    """Its number among the known failures of docs/doctor.md."""


@dataclass(frozen=True, slots=True)
class Examination:
    """Everything found out about one subject."""

    kind: Kind
    subject: str
    checks: tuple[Check, ...]
    corrected: str = ""
    """For a command line: the command as it should be typed, where something was to correct."""

    @property
    def verdict(self) -> State:
        """The worst state; notes are nothing wrong, and on a machine neither is what cannot be told."""
        found = {check.state for check in self.checks}
        for state in ("problem", "warning", "unknown"):
            if state in found and (state != "unknown" or self.kind != "machine"):
                return state
        return "ok"

    def sorted(self) -> tuple[Check, ...]:
        """Worst first, otherwise in the order in which they were found."""
        return tuple(sorted(self.checks, key=lambda check: STATES.index(check.state)))

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        checks = [asdict(check) | {"do": list(check.do)} for check in self.sorted()]
        answer = {"kind": self.kind, "subject": self.subject, "verdict": self.verdict, "findings": checks}
        return answer | ({"corrected": self.corrected or None} if self.kind == "command" else {})


def to_document(examinations: Iterable[Examination]) -> dict[str, Any]:
    """The JSON document, schema ``warpline.doctor/1``."""
    return {"schema": SCHEMA, "examined": [examination.to_dict() for examination in examinations]}


def exit_code(examinations: Iterable[Examination]) -> int:
    """1 where there is a problem, else 4 where a file or command could not be judged, else 0."""
    verdicts = {examination.verdict for examination in examinations}
    if "problem" in verdicts:
        return EXIT_FAILED
    return EXIT_INCONCLUSIVE if "unknown" in verdicts else 0
