"""What a scrubbed profile does not keep: counts and places, never the values."""

from __future__ import annotations

import shlex

from warpline.reports.sections import Column, Command, Report, Section, Table, next_section
from warpline.scrub.file import ScrubResult
from warpline.units import several

LISTED_PLACES = 40
_COLUMNS = (Column("count", "count", "count"), Column("action", "action"), Column("place", "place", key=True))

_TEXT_COLUMNS = (
    Column("count", "different", "count"),
    Column("kind", "kind", key=True),
    Column("reason", "why it stays"),
)


def scrub_report(result: ScrubResult) -> Report:
    """The changes as a table, and next commands."""
    sections = []
    rows = tuple((change.count, change.action, change.place) for change in result.changes)
    if rows:
        hidden = max(0, len(rows) - LISTED_PLACES)
        note = f"{several(hidden, 'more place')}: --json lists them" if hidden else ""
        table = Table(_COLUMNS, rows[:LISTED_PLACES], hidden, note)
        sections.append(Section("changes", "Changes", (table,), is_lead=True))
    if result.texts:
        kept = tuple((text.count, text.kind, text.reason) for text in result.texts)
        sections.append(Section("texts", "Text that stays", (Table(_TEXT_COLUMNS, kept),)))
    if result.output is not None:
        check = Command(f"warpline scrub --check {shlex.quote(str(result.output))}", "check it before you share it")
        sections.append(next_section([check]))
    elif rows:
        scrub = Command(f"warpline scrub {shlex.quote(str(result.file))}", "write a copy without them")
        sections.append(next_section([scrub]))
    return Report(_headline(result), tuple(sections))


def _headline(result: ScrubResult) -> str:
    kept = f" ({', '.join(result.keep)} kept)" if result.keep else ""
    changed = several(sum(change.count for change in result.changes), "value")
    if result.output is not None:
        return f"{result.output} written, {changed} replaced or dropped{kept}"
    if result.clean:
        return f"{result.file.name} is clean{kept}"
    return f"{result.file.name} has {changed} to replace or drop{kept}"
