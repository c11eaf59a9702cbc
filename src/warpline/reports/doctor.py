"""The doctor's results for a terminal: problems first, passed checks in one line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from warpline.doctor.model import Check, Examination, State
from warpline.reports.trimmed import print_trimmed
from warpline.sanitise import sanitise

MARKS: dict[State, tuple[str, str]] = {
    "problem": ("✗", "red"),
    "warning": ("!", "yellow"),
    "unknown": ("?", "magenta"),
    "note": ("·", "cyan"),
    "ok": ("✓", "green"),
}
COUNTED = {"problem": ("problem", "problems"), "warning": ("warning", "warnings"), "unknown": ("unknown", "unknown")}
COLLAPSED: dict[State, str] = {"unknown": "cannot tell", "note": "worth knowing", "ok": "fine"}


def print_doctor(console: Console, examinations: Iterable[Examination], verbose: bool = False) -> None:
    """All examinations in order; commands are never wrapped."""
    for examination in examinations:
        print_trimmed(console, Group(*_examination(examination, verbose)))
        if examination.corrected:
            console.print(Text("type this instead:", style="bold"))
            console.print(Text(f"  {sanitise(examination.corrected)}\n", style="green"), soft_wrap=True)


def _examination(examination: Examination, verbose: bool) -> list[RenderableType]:
    checks = examination.sorted()
    # Unknown facts of a machine take one line; for a file they are the answer.
    spelled: set[State] = {"problem", "warning"} if examination.kind == "machine" else {"problem", "warning", "unknown"}
    if verbose:
        spelled = set(MARKS)
    shown = [check for check in checks if check.state in spelled]
    parts: list[RenderableType] = [_head(examination, checks)]
    if shown:
        parts.append(_table(shown))
    for state, words in COLLAPSED.items():
        rest = [check.name for check in checks if check.state == state and state not in spelled]
        if rest and (examination.kind == "machine" or state != "note" or examination.verdict != "ok"):
            parts.append(_line(state, words, rest))
    return [*parts, Text()] if len(parts) > 1 else parts


def _head(examination: Examination, checks: Sequence[Check]) -> Text:
    head = Text(sanitise(_shortened(examination)), style="bold blue")
    head.append(": ", style="bold")
    if examination.verdict == "ok":
        head.append("nothing wrong found", style="green")
        notes = [check.name for check in checks if check.state == "note"]
        if notes and examination.kind != "machine":
            head.append(f"   worth knowing: {', '.join(dict.fromkeys(notes))} (-v)", style="bright_black")
        return head
    counts = []
    for state, (one, many) in COUNTED.items():
        number = sum(check.state == state for check in checks)
        if number and (state != "unknown" or examination.kind != "machine"):
            counts.append(f"{number} {one if number == 1 else many}")
    head.append(", ".join(counts), style=MARKS[examination.verdict][1])
    return head


LONGEST_SUBJECT = 100


def _shortened(examination: Examination) -> str:
    subject = examination.subject
    return subject if len(subject) <= LONGEST_SUBJECT else f"{subject[: LONGEST_SUBJECT - 1]}…"


def _table(checks: Sequence[Check]) -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column(width=2)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for check in checks:
        mark, colour = MARKS[check.state]
        text = Text(sanitise(check.seen))
        if check.means:
            text.append(f"\n{sanitise(check.means)}", style="bright_black")
        for action in check.do:
            text.append(
                f"\n→ {sanitise(action)}", style="green" if check.state in ("problem", "warning") else "bright_black"
            )
        table.add_row(Text(f" {mark}", colour), Text(check.name, colour), text)
    return table


def _line(state: State, words: str, names: Sequence[str]) -> Text:
    mark, colour = MARKS[state]
    text = Text(f" {mark} ", colour)
    text.append(f"{words}: {', '.join(dict.fromkeys(names))}", style="bright_black")
    if state != "ok":
        text.append(" (-v)", style="bright_black")
    return text
