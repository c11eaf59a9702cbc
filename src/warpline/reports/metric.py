"""Metrics of Nsight Compute, explained as sections."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from warpline.hardware.counters.explain import Explanation
from warpline.hardware.counters.replace import Replacement
from warpline.hardware.counters.table import CHIPS
from warpline.reports.sections import Fact, Facts, Note, Notes, Report, Section

_SHOWN = 2
"""Replacements that are listed for a chip."""


def metric_report(found: Sequence[Explanation]) -> Report:
    """The explanation of each metric, in a section of its own."""
    explained = [(one.name, (Notes((_state(one),)), Facts(tuple(_facts(one))))) for one in found]
    return Report("", tuple(Section(f"metric_{at}", name, content) for at, (name, content) in enumerate(explained)))


def _state(found: Explanation) -> Note:
    where = f" on {found.chip}" if found.chip else ""
    match found.state:
        case "exists" if not found.problem:
            return Note("ok", "", f"exists{where} · {found.kind}")
        case "exists":
            return Note("warning", "", f"the name exists{where}, the suffix does not: {found.problem}")
        case "elsewhere":
            return Note("error", "", f"does not exist{where}; other chips have it")
        case "ncu-only":
            text = "made by Nsight Compute itself, not by the chip: no list says whether the name is right"
            return Note("unknown", "", text)
        case "old":
            return Note("error", "", "exists on no chip in this form; there is a replacement")
        case _:
            return Note("error", "", f"unknown{where}: no chip has it, and nothing known replaces it")


def _facts(found: Explanation) -> Iterator[Fact]:
    if found.what:
        yield Fact("counts", found.what)
    if found.suffix:
        yield Fact("suffix", found.suffix)
    if found.compare:
        yield Fact("compare with", found.compare)
    if found.good:
        yield Fact("good", found.good)
    if found.chips:
        yield Fact("chips", "all" if len(found.chips) == len(CHIPS) else ", ".join(found.chips))
    yield from _instead(found)
    if found.near:
        yield Fact("near", ", ".join(found.near))
    if found.state != "ncu-only":
        yield Fact("names from", found.source)


def _instead(found: Explanation) -> Iterator[Fact]:
    """Chips with the same replacements share a row."""
    chosen = {found.chip: found.instead[found.chip]} if found.chip in found.instead else found.instead
    groups: dict[tuple[Replacement, ...], list[str]] = {}
    for chip, options in chosen.items():
        groups.setdefault(options[:_SHOWN], []).append(str(chip))
    for options, chips in groups.items():
        names = ", or ".join(option.name + (f" ({option.note})" if option.note else "") for option in options)
        yield Fact("instead", f"{names}, on {', '.join(chips)}")
