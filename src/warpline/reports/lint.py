"""The findings of `warpline lint` as sections: one per file."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from warpline.lint import LintFinding
from warpline.reports.sections import Explained, Findings, Report, Section, Text
from warpline.units import several


def lint_report(findings: Sequence[LintFinding], files: int, has_gpu_code: bool = True) -> Report:
    """Each finding with its line, code, reason and fix."""
    if not has_gpu_code:
        return Report(f"No GPU code seen in {several(files, 'file')}: no import of torch or another GPU library", ())
    title = f"{several(len(findings), 'finding') if findings else 'No findings'} in {several(files, 'file')}"
    sections = []
    for file, group in groupby(findings, key=lambda finding: finding.file):
        entries = tuple(
            Explained(finding.code, finding.message, where=f"{file}:{finding.line}", how=finding.fix)
            for finding in group
        )
        sections.append(Section(file, file, (Findings(entries),)))
    if findings:
        hint = Text("# warpline: ignore[CODE] at the end of a line silences a finding", "quiet")
        sections.append(Section("ignore", "Ignore", (hint,), is_lead=True))
    return Report(title, tuple(sections))
