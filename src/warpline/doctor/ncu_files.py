"""Why a Nsight Compute result is empty or incomplete: reports by their block headers, CSV pages by their rows."""

from __future__ import annotations

import csv
import io

from warpline.doctor import failures
from warpline.doctor.messages import read_messages
from warpline.doctor.model import Check
from warpline.sources.ncu.container import Container, read_container
from warpline.units import several


def read_ncu_report(data: bytes) -> Container:
    """What the headers of a report's blocks say."""
    return read_container(io.BytesIO(data))


def examine_ncu_report(data: bytes) -> list[Check]:
    """Examine the bytes of an ``.ncu-rep``."""
    report = read_ncu_report(data)
    checks: list[Check] = []
    if report.truncated:
        seen = f"the file ends within a block, after {several(report.results, 'kernel')}"
        means = "ncu was killed, or the copy is incomplete; ncu-ui silently shows fewer kernels."
        checks.append(Check("report-cut-short", "problem", seen, means, ("copy or record it again",)))
    if not report.results:
        checks.append(failures.NO_KERNELS_PROFILED.found("the report contains no profiled kernel"))
        return checks
    return [*checks, failures.NCU_IS_NO_STOPWATCH.found(f"{several(report.results, 'kernel')} profiled by ncu")]


def examine_ncu_text(text: str) -> list[Check]:
    """Examine ncu's output: messages, and CSV if present."""
    checks = read_messages(text)
    lines = text.splitlines()
    header = next((row for row, line in enumerate(lines) if line.replace('"', "").startswith("ID,Process ID")), None)
    if header is None:
        return checks
    kernels = {row[0] for row in csv.reader(io.StringIO("\n".join(lines[header + 1 :]))) if row and row[0].isdecimal()}
    if kernels:
        checks.append(failures.NCU_IS_NO_STOPWATCH.found(f"{several(len(kernels), 'kernel')} profiled by ncu"))
    elif not any(check.state == "problem" for check in checks):
        checks.append(failures.NO_KERNELS_PROFILED.found("the CSV has a header but no kernel"))
    return checks
