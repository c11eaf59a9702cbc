"""ncu's CSV pages, ``raw`` (a row per kernel, a column per metric) and ``details`` (a row per metric), to kernels."""

from __future__ import annotations

import codecs
import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from msgspec import Struct, field

from warpline.errors import UnreadableFile
from warpline.sources.health import HealthEntry
from warpline.sources.ncu.csv_pages import DETAILS_COLUMNS, DetailsPage, RawPage, metric_cells
from warpline.sources.ncu.model import NcuReport
from warpline.sources.ncu.numbers import decimal_mark
from warpline.sources.unpack import Unpacked

EXPORT = "export it: ncu --import REPORT.ncu-rep --csv --page raw"
_HEADER = re.compile(r'"?ID"?([,;\t])"?Process ID"?\1')
_ROW = re.compile(r'"?\d+"?[,;\t]')
_UNITS_ROW = re.compile(r'(?:""|)([,;\t])(?:""|)\1')
_MESSAGE = re.compile(r"==(PROF|WARNING|ERROR)== ?(.*)")
_VERSION = re.compile(r"(?:Nsight Compute|ncu)[^\d]{0,100}+(20\d\d\.\d+(?:\.\d+)*)")
_SAMPLED_CELLS = 100_000
"""Cells that decide the decimal mark of the file."""
_QUOTED_MESSAGES = 2
MAX_LINE_CHARS = 8 << 20
"""A raw page with every metric of a chip has headers of under a megabyte."""
_BYTE_ORDER_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


class _Notes(Struct):
    """What was met beside the rows."""

    messages: Counter[str] = field(default_factory=Counter)
    damaged: int = 0
    version: str = ""
    last_row_cut: bool = False


def read_csv(path: Path) -> NcuReport:
    """Read a CSV page, from ``ncu --csv`` or ``ncu --import REPORT --csv``, with ncu's messages in it or without."""
    unpacked = Unpacked(path)
    notes = _Notes()
    rows = _rows(text_lines(unpacked), notes)
    header = next(rows, None)
    if header is None or not {"ID", "Kernel Name"} <= set(header):
        raise UnreadableFile("no-csv-header", f"{path} has no header of an ncu CSV page{_messages_text(notes)}", EXPORT)
    page = DetailsPage(header) if set(header) >= DETAILS_COLUMNS else RawPage(header)
    first = list(_sample(rows))
    mark = decimal_mark(cell for row in first for cell in metric_cells(page, row))
    for row in chain(first, rows):
        if row == header:  # several pages in one file
            continue
        if not page.add(row, mark):
            notes.damaged += 1
    kernels = page.kernels()
    if not kernels:
        raise UnreadableFile(
            "no-kernels", f"{path} has the header of an ncu CSV page, and no kernel{_messages_text(notes)}", EXPORT
        )
    return NcuReport(path, page.source, notes.version, kernels, tuple(_health(unpacked, notes, page)))


def _sample(rows: Iterable[list[str]]) -> Iterator[list[str]]:
    cells = 0
    for row in rows:
        yield row
        cells += len(row)
        if cells > _SAMPLED_CELLS:
            return


def _rows(lines: Iterable[str], notes: _Notes) -> Iterator[list[str]]:
    """The header, then the rows; other lines, such as the program's own output, are left out."""
    delimiter = ""
    units_may_follow = False
    pending = ""
    for line in lines:
        header = _HEADER.match(line)
        begins = header is not None or (bool(delimiter) and _ROW.match(line) is not None)
        if pending and begins and line.count('"') % 2 == 0:
            notes.damaged += 1  # a row without its end
            pending = ""
        if not pending:
            message = _MESSAGE.match(line)
            if message is not None:
                notes.messages[f"{message[1]}: {message[2].strip()}"] += message[1] != "PROF"
            if not notes.version and (found := _VERSION.search(line)):
                notes.version = found[1]
            if header is not None:
                delimiter, units_may_follow = header[1], True
            elif units_may_follow and _UNITS_ROW.match(line):
                units_may_follow = False
            elif not begins:
                continue
        pending += line
        if pending.count('"') % 2:
            continue
        yield from _parsed(pending, delimiter, notes)
        pending = ""
    if pending:
        notes.last_row_cut = True


def _parsed(text: str, delimiter: str, notes: _Notes) -> Iterator[list[str]]:
    try:
        yield from csv.reader(text.splitlines(keepends=True), delimiter=delimiter)
    except csv.Error:
        notes.damaged += 1


def _messages_text(notes: _Notes) -> str:
    """What ncu reported, where it reported a problem."""
    problems = [message for message, times in notes.messages.items() if times]
    return f"; ncu said: {'; '.join(problems[:_QUOTED_MESSAGES])}" if problems else ""


def _health(unpacked: Unpacked, notes: _Notes, page: RawPage | DetailsPage) -> Iterator[HealthEntry]:
    if unpacked.damage:
        yield HealthEntry("truncated-file", "error", unpacked.damage)
    if notes.last_row_cut:
        yield HealthEntry("truncated-file", "error", "The file ends within a row: the kernels of its end are missing.")
    if notes.damaged:
        message = f"Rows that could not be read, and were left out: {notes.damaged:,}."
        yield HealthEntry("damaged-rows", "warning", message)
    for message, times in notes.messages.items():
        if times:
            yield HealthEntry("ncu-message", "warning", f"ncu printed: {message}")
    if page.missing:
        names = ", ".join(sorted(page.missing)[:3]) + (" …" if len(page.missing) > 3 else "")
        yield HealthEntry("metrics-missing", "info", f"Metrics without a value (n/a) for some kernel: {names}.")


def text_lines(unpacked: Unpacked) -> Iterator[str]:
    """Lines with their ends, in UTF-8 or what a byte-order mark says; bytes that are no text are replaced."""
    decoder: codecs.IncrementalDecoder | None = None
    rest = ""
    for piece in unpacked:
        if decoder is None:
            encoding = next((name for mark, name in _BYTE_ORDER_MARKS if piece.startswith(mark)), "utf-8")
            decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
        lines = (rest + decoder.decode(piece)).split("\n")
        rest = lines.pop()
        if len(rest) > MAX_LINE_CHARS:
            raise UnreadableFile(
                "line-too-long",
                f"{unpacked.path} has a line of over {MAX_LINE_CHARS >> 20} MiB, which ncu does not write",
                "export it again: ncu --import REPORT.ncu-rep --csv --page raw",
            )
        for line in lines:
            yield line + "\n"
    if rest:
        yield rest
