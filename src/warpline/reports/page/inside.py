"""What a report of Nsight Compute says of the trace's kernels: as text, and for each kernel of the timeline."""

from __future__ import annotations

from pathlib import Path

from warpline.dive.model import Dive, KernelDive
from warpline.reports import dive as dives
from warpline.reports import html
from warpline.reports.page.contract import Inside
from warpline.reports.page.names import NameTable
from warpline.reports.sections import Content, Section, Text, health_notes
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


def answers(dive: Dive | None, trace: Trace, names: NameTable, zero_ns: int) -> list[Inside]:
    """The answer for each kernel of the report, and its launch on the timeline."""
    return [_answer(one, trace, names, zero_ns) for one in (dive.found if dive else ())]


def _answer(one: KernelDive, trace: Trace, names: NameTable, zero_ns: int) -> Inside:
    facts = [(fact.label, fact.text) for fact in dives.main_facts(one)]
    if one.match is None:
        return Inside(dives.reason(one), facts, None, None)
    gpu, row = trace.gpu, one.match.row
    name = names.gpu(*(column.text(row) for column in (gpu.kind, gpu.name, gpu.short_name)))
    return Inside(dives.reason(one), facts, name, int(gpu.start_ns[row]) - zero_ns)


def inside_kernels(dive: Dive) -> str:
    """All kernels in a table, and each one folded, with its reason and the measured values."""
    files = ", ".join(Path(file).name for file in dive.path.split(", "))
    content: list[Content] = [Text(f"Nsight Compute: {files}", "quiet")]
    if dive.health:
        content.append(health_notes(dive.health))
    content.append(dives.summary(dive.found))
    left = len(dive.found) - MOST_KERNELS
    if left > 0:
        content.append(Text(f"{several(left, 'more kernel')} only in the table: warpline dive -v shows them.", "quiet"))
    kernels = tuple(_kernel(*one) for one in enumerate(dive.found[:MOST_KERNELS]))
    return html.section(Section("inside", "Inside kernels", tuple(content)), kernels)


def _kernel(number: int, one: KernelDive) -> Section:
    title = f"{dives.title(one)} · {one.reason}"
    return Section(f"inside-{number}", title, tuple(dives.explained(one, verbose=True)))
