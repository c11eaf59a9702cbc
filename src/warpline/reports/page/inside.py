"""What a report of Nsight Compute says of the trace's kernels: as text, and for each kernel of the timeline."""

from __future__ import annotations

from pathlib import Path

from warpline.dive.model import Dive, KernelDive
from warpline.reports import dive as dives
from warpline.reports import html
from warpline.reports.page.contract import Inside
from warpline.reports.page.names import Names
from warpline.reports.sections import Content, Note, Notes
from warpline.sanitise import sanitise
from warpline.trace.trace import Trace
from warpline.units import several

MOST_KERNELS = 40
"""Kernels explained in full; the table has all of them."""


def kernel_of_row(dive: Dive | None) -> dict[int, int]:
    """For rows of `gpu`, the kernel of the report that each is: the profiled launch, else the first one alike."""
    found = {}
    matches = [(number, one.match) for number, one in enumerate(dive.found if dive else ()) if one.match]
    for number, match in reversed(matches):
        found.update(dict.fromkeys(match.rows, number))
    for number, match in reversed(matches):
        found[match.row] = number
    return found


def answers(dive: Dive | None, trace: Trace, names: Names, zero_ns: int) -> list[Inside]:
    """The answer for each kernel of the report, and its launch on the timeline."""
    return [_answer(one, trace, names, zero_ns) for one in (dive.found if dive else ())]


def _answer(one: KernelDive, trace: Trace, names: Names, zero_ns: int) -> Inside:
    facts = [(fact.label, sanitise(fact.text)) for fact in dives.main_facts(one)]
    if one.match is None:
        return Inside(sanitise(dives.reason(one)), facts, None, None)
    *spelled, start_ns = trace.stored("gpu").select("kind", "name", "short_name", "start_ns").row(one.match.row)
    return Inside(sanitise(dives.reason(one)), facts, names.gpu(*spelled), start_ns - zero_ns)


def section(dive: Dive | None) -> str:
    """All kernels in a table, and each one with its reason and the measured values."""
    if dive is None:
        return ""
    notes = Notes(tuple(Note(entry.severity, entry.code, entry.message) for entry in dive.health))
    content: list[Content] = [*([notes] if notes.notes else []), dives.summary(dive.found)]
    shown = "".join(element for one in content for element in html.parts(one))
    kernels = "".join(_kernel(number, one) for number, one in enumerate(dive.found[:MOST_KERNELS]))
    files = ", ".join(Path(file).name for file in dive.path.split(", "))
    left = len(dive.found) - MOST_KERNELS
    more = f'<p class="quiet">{several(left, "more kernel")} only in the table: warpline dive -v shows them.</p>'
    return (
        f'<section id="inside"><h2>Inside kernels <small>Nsight Compute: {html.text(files)}</small></h2>'
        f"{shown}{kernels}{more if left > 0 else ''}</section>"
    )


def _kernel(number: int, one: KernelDive) -> str:
    inner = "".join(element for content in dives.explained(one, verbose=True) for element in html.parts(content))
    return (
        f'<details id="inside-{number}" data-inside="{number}"><summary>{html.text(dives.title(one))} · '
        f"<b>{html.text(one.reason)}</b></summary>{inner}</details>"
    )
