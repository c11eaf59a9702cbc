"""Why a Nsight Compute result is empty or incomplete: reports by their block headers, CSV pages by their rows."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass

from warpline.doctor import failures
from warpline.doctor.messages import read_messages
from warpline.doctor.model import Check
from warpline.sources.detect import NCU_MAGIC

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_RESULTS_FIELD, _PAYLOAD_FIELD = 2, 5


@dataclass(frozen=True, slots=True)
class NcuReport:
    """What the headers of a report's blocks say."""

    results: int
    truncated: bool


def read_ncu_report(data: bytes) -> NcuReport:
    """Counts the profiled kernels of an ``.ncu-rep``.

    The file is a magic word, a small header, and blocks: a length, a header in protocol-buffer encoding (field 2: the
    number of results, field 5: the bytes of payload), and the payload. Checked against reports of ncu 2025.3.
    """
    position, results = len(NCU_MAGIC), 0
    position += 4 + int.from_bytes(data[position : position + 4], "little")
    while position < len(data):
        length = int.from_bytes(data[position : position + 4], "little")
        header = data[position + 4 : position + 4 + length]
        if len(header) < length or not length:
            return NcuReport(results, truncated=True)
        fields = _numbers(header)
        position += 4 + length + fields.get(_PAYLOAD_FIELD, 0)
        if position > len(data):
            return NcuReport(results, truncated=True)
        results += fields.get(_RESULTS_FIELD, 0)
    return NcuReport(results, truncated=False)


def _numbers(message: bytes) -> dict[int, int]:
    """The integer fields of a protocol buffer; the last value of each."""
    fields: dict[int, int] = {}
    position = 0
    while position < len(message):
        key, position = _varint(message, position)
        kind = key & 7
        if kind == _VARINT:
            fields[key >> 3], position = _varint(message, position)
        elif kind == _BYTES:
            length, position = _varint(message, position)
            position += length
        elif kind in (_FIXED32, _FIXED64):
            position += 4 if kind == _FIXED32 else 8
        else:
            break
    return fields


def _varint(message: bytes, position: int) -> tuple[int, int]:
    value, shift = 0, 0
    while position < len(message) and shift < 64:
        byte = message[position]
        value |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            break
    return value, position


def examine_ncu_report(data: bytes) -> list[Check]:
    """Examine the bytes of an ``.ncu-rep``."""
    report = read_ncu_report(data)
    checks: list[Check] = []
    if report.truncated:
        seen = f"the file ends within a block, after {report.results} kernels"
        means = "ncu was killed, or the copy is incomplete; ncu-ui silently shows fewer kernels."
        checks.append(Check("report-cut-short", "problem", seen, means, ("copy or record it again",)))
    if not report.results:
        checks.append(failures.NO_KERNELS_PROFILED.found("the report contains no profiled kernel"))
        return checks
    return [*checks, failures.NCU_IS_NO_STOPWATCH.found(f"{report.results} kernels profiled by ncu")]


def examine_ncu_text(text: str) -> list[Check]:
    """Examine ncu's output: messages, and CSV if present."""
    checks = read_messages(text)
    lines = text.splitlines()
    header = next((row for row, line in enumerate(lines) if line.replace('"', "").startswith("ID,Process ID")), None)
    if header is None:
        return checks
    kernels = {row[0] for row in csv.reader(io.StringIO("\n".join(lines[header + 1 :]))) if row and row[0].isdecimal()}
    if kernels:
        checks.append(failures.NCU_IS_NO_STOPWATCH.found(f"{len(kernels)} kernels profiled by ncu"))
    elif not any(check.state == "problem" for check in checks):
        checks.append(failures.NO_KERNELS_PROFILED.found("the CSV has a header but no kernel"))
    return checks
