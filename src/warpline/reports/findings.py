"""Findings as text: what each gains, what was seen and where, and what to do about it."""

from __future__ import annotations

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from warpline.findings.model import Finding
from warpline.fixes.claim import Place
from warpline.reports.numbers import numbers_table
from warpline.units import duration

LISTED_FINDINGS = 8
LISTED_OPS = 5


def gains(findings: list[Finding], width: int) -> RenderableType:
    """One line a finding: the replayed gain with its range, the step afterwards, and how sure that is."""
    rows = [
        [
            f"{finding.gain.expected:.2f}x",
            f"{finding.gain.low:.2f}–{finding.gain.high:.2f}",
            duration(finding.new_step_ns.expected),
            finding.confidence,
            finding.fix,
            finding.rule,
        ]
        for finding in findings[:LISTED_FINDINGS]
    ]
    return numbers_table(["gain", "range", "new step", "sure", "fix", "finding"], rows, width)


def explained(findings: list[Finding]) -> RenderableType:
    """Each finding in words: the claim, the places, and the code to write."""
    table = Table.grid(padding=(0, 2, 1, 0))
    table.add_column(no_wrap=True)
    table.add_column()
    for finding in findings[:LISTED_FINDINGS]:
        text = Text(finding.claim)
        if finding.where:
            text.append(f"\n{places(finding.where)}", "cyan")
        text.append(f"\n{finding.how}", "green")
        table.add_row(Text(finding.rule, "bold"), text)
    left = len(findings) - LISTED_FINDINGS
    if left > 0:
        table.add_row("", Text(f"{left} more with --json", "bright_black"))
    return Padding(table, (1, 0, 0, 2))


def places(where: tuple[Place, ...]) -> str:
    """Where to look: lines of the program with their ops, or ops alone where no line is known."""
    lines: dict[str, list[str]] = {}
    for place in where:
        lines.setdefault(place.spot, []).append(place.op or "?")
    parts = [
        (f"{line} " if line else "") + ", ".join(ops[:LISTED_OPS]) + (" …" if len(ops) > LISTED_OPS else "")
        for line, ops in lines.items()
    ]
    return "in " + "; ".join(parts)
