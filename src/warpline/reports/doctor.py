"""The doctor's results as sections: problems first, passed checks in one line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from warpline.doctor.model import Check, Examination, State
from warpline.reports.sections import Command, Commands, Note, Notes, Report, Section, Severity
from warpline.reports.text import cut
from warpline.units import several

SEVERITIES: dict[State, Severity] = {
    "problem": "error",
    "warning": "warning",
    "unknown": "unknown",
    "note": "info",
    "ok": "ok",
}
COLLAPSED: dict[State, str] = {"unknown": "cannot tell", "note": "worth knowing", "ok": "fine"}
LONGEST_SUBJECT = 100


def doctor_report(examinations: Iterable[Examination], verbose: bool = False) -> Report:
    """A section for each examination, and one for each corrected command."""
    return Report("", tuple(section for at, one in enumerate(examinations) for section in _sections(at, one, verbose)))


def _sections(at: int, examination: Examination, verbose: bool) -> Iterator[Section]:
    checks = examination.sorted()
    # Unknown facts of a machine, and what is fine about it, take one line each; for a file they are the answer.
    spelled: set[State] = {"problem", "warning"}
    if examination.kind != "machine":
        spelled |= {"unknown", "ok"}
    if verbose:
        spelled = set(SEVERITIES)
    notes = [_note(check) for check in checks if check.state in spelled]
    for state, words in COLLAPSED.items():
        rest = [check.name for check in checks if check.state == state and state not in spelled]
        if rest and (examination.kind == "machine" or state != "note" or examination.verdict != "ok"):
            more = "" if state == "ok" else " (-v)"
            notes.append(Note(SEVERITIES[state], "", f"{words}: {_listed(rest)}{more}"))
    yield Section(f"examination_{at}", _title(examination, checks), (Notes(tuple(notes)),) if notes else ())
    if examination.corrected:
        yield Section(f"corrected_{at}", "type this instead:", (Commands((Command(examination.corrected, ""),)),))


def _note(check: Check) -> Note:
    return Note(SEVERITIES[check.state], check.name, check.seen, check.means, check.do)


def _title(examination: Examination, checks: Sequence[Check]) -> str:
    subject = cut(examination.subject, LONGEST_SUBJECT)
    if examination.verdict != "ok":
        return f"{subject}: {', '.join(_counts(examination, checks))}"
    notes = [check.name for check in checks if check.state == "note"]
    known = f"; worth knowing: {_listed(notes)} (-v)" if notes and examination.kind != "machine" else ""
    # What recording cost, or too few steps, is no fault of a file: diagnose says that.
    is_recording = any(check.name == "contents" for check in checks)
    return f"{subject}: {'nothing missing or damaged' if is_recording else 'nothing wrong found'}{known}"


def _counts(examination: Examination, checks: Sequence[Check]) -> Iterator[str]:
    for state, many in (("problem", "problems"), ("warning", "warnings"), ("unknown", "unknown")):
        number = sum(check.state == state for check in checks)
        if number and (state != "unknown" or examination.kind != "machine"):
            yield several(number, state, many)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(names))
