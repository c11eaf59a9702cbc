"""The doctor's results: checks about a machine, a file or a command line, and their verdict."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from msgspec import Struct, to_builtins

from warpline.errors import EXIT_FAILED, EXIT_INCONCLUSIVE

SCHEMA = "warpline.doctor/1"

State = Literal["problem", "warning", "unknown", "note", "ok"]
STATES: tuple[State, ...] = ("problem", "warning", "unknown", "note", "ok")
"""Worst first: unknown comes before harmless."""
InputKind = Literal["machine", "file", "command"]


class Check(Struct, frozen=True):
    """The result of one check."""

    name: str
    """Stable kebab-case word."""
    state: State
    seen: str
    """What was observed, with numbers; for ``unknown``, why it could not be checked."""
    means: str = ""
    """Its consequence or cause."""
    do: tuple[str, ...] = ()
    """What to type or change, most useful first."""
    failure: int | None = None
    """Its number among the known failures of docs/doctor.md."""


class Examination(Struct, frozen=True):
    """All checks about one subject."""

    kind: InputKind
    subject: str
    checks: tuple[Check, ...]
    corrected: str = ""
    """For a command line: the corrected command; empty if nothing needs correction."""

    @property
    def verdict(self) -> State:
        """The worst state; notes count as ok, and so does unknown on a machine."""
        found = {check.state for check in self.checks}
        for state in ("problem", "warning", "unknown"):
            if state in found and (state != "unknown" or self.kind != "machine"):
                return state
        return "ok"

    def sorted(self) -> tuple[Check, ...]:
        """Worst first; equal states in the order they were found."""
        return tuple(sorted(self.checks, key=lambda check: STATES.index(check.state)))

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        checks = [to_builtins(check) | {"do": list(check.do)} for check in self.sorted()]
        answer = {"kind": self.kind, "subject": self.subject, "verdict": self.verdict, "findings": checks}
        return answer | ({"corrected": self.corrected or None} if self.kind == "command" else {})


def to_document(examinations: Iterable[Examination]) -> dict[str, Any]:
    """The JSON document, schema ``warpline.doctor/1``."""
    return {"schema": SCHEMA, "examined": [examination.to_dict() for examination in examinations]}


def exit_code(examinations: Iterable[Examination]) -> int:
    """1 if there is a problem, 4 if a file or command could not be judged, otherwise 0."""
    verdicts = {examination.verdict for examination in examinations}
    if "problem" in verdicts:
        return EXIT_FAILED
    return EXIT_INCONCLUSIVE if "unknown" in verdicts else 0
