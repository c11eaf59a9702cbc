"""A metric of Nsight Compute, explained for the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from warpline.hardware.counters.explain import Explanation
from warpline.hardware.counters.replace import Replacement
from warpline.hardware.counters.table import CHIPS

_SHOWN = 2
"""Replacements that are listed for a chip."""


def metric_report(found: Explanation) -> RenderableType:
    """The explanation of one metric."""
    table = Table(box=None, padding=(0, 2, 0, 2), show_header=False)
    table.add_column("field", style="dim", no_wrap=True)
    table.add_column("value", overflow="fold")
    for label, text in _rows(found):
        table.add_row(label, Text(text))
    return Group(Text(found.name, style="bold"), _headline(found), table, Text())


def _headline(found: Explanation) -> Text:
    where = f" on {found.chip}" if found.chip else ""
    match found.state:
        case "exists" if not found.problem:
            return Text(f"exists{where} · {found.kind}", style="green")
        case "exists":
            return Text(f"the name exists{where}, the suffix does not: {found.problem}", style="yellow")
        case "elsewhere":
            return Text(f"does not exist{where}; other chips have it", style="red")
        case "ncu-only":
            text = "made by Nsight Compute itself, not by the chip: no list says whether the name is right"
            return Text(text, style="green")
        case "old":
            return Text("exists on no chip in this form; there is a replacement", style="red")
        case _:
            return Text(f"unknown{where}: no chip has it, and nothing known replaces it", style="red")


def _rows(found: Explanation) -> Iterator[tuple[str, str]]:
    if found.what:
        yield "counts", found.what
    if found.suffix:
        yield "suffix", found.suffix
    if found.compare:
        yield "compare with", found.compare
    if found.good:
        yield "good", found.good
    if found.chips:
        yield "chips", "all" if len(found.chips) == len(CHIPS) else ", ".join(found.chips)
    yield from _instead(found)
    if found.near:
        yield "near", "\n".join(found.near)
    if found.state != "ncu-only":
        yield "names from", found.source


def _instead(found: Explanation) -> Iterator[tuple[str, str]]:
    """Chips with the same replacements share a row."""
    chosen = {found.chip: found.instead[found.chip]} if found.chip in found.instead else found.instead
    groups: dict[tuple[Replacement, ...], list[str]] = {}
    for chip, options in chosen.items():
        groups.setdefault(options[:_SHOWN], []).append(str(chip))
    for options, chips in groups.items():
        text = "\n".join(option.name + (f" ({option.note})" if option.note else "") for option in options)
        yield "instead", f"{', '.join(chips)}:\n{text}"
