"""Repeats a Kineto trace into one bigger valid trace, to measure readers on sizes that cannot be shipped.

    python benchmarks/make_trace.py small.json.gz big.json --bytes 1e9
    python benchmarks/make_trace.py small.json.gz big.json.gz --copies 10

Each copy comes after the one before: its times are shifted, its correlation, external, flow, sequence and
Python ids are moved so that no two copies share one, and its steps are numbered on. Everything else is the
source's own text, layout included.
"""

from __future__ import annotations

import argparse
import gzip
import math
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from warpline.sources.kineto.decimals import parse_decimal
from warpline.sources.kineto.events import MISSING, RawEvents
from warpline.sources.kineto.header import HEADER_LIMIT, read_header
from warpline.sources.kineto.python_scan import PythonScanner
from warpline.sources.kineto.stream import scan_file

GAP_NS = 1_000_000
"""Between two copies, so that the last kernel of one never touches the next."""

CORRELATIONS = ["id", "correlation", "wait_on_cuda_event_record_corr_id"]
"""One space of numbers: the id of a launch's flow is its correlation."""
EXTERNALS = ["External id", "external id"]
COUNTED = ["Sequence number", "Ev Idx", "Python id", "Python parent id"]
"""Counted from 0, where 0 is an id; in the spaces above it says that there is none."""

_NUMBERS = re.compile(
    rb'"(?:(?P<key>ts|%s)"\s*:\s*|name"\s*:\s*"ProfilerStep#)(?P<value>-?[0-9]+(?:\.[0-9]+)?)'
    % "|".join([*CORRELATIONS, *EXTERNALS, *COUNTED]).encode()
)


@dataclass(frozen=True, slots=True)
class Template:
    """The events' text cut at its numbers: literals[0] numbers[0] literals[1] …"""

    literals: list[bytes]
    keys: list[str]
    """The key of each number; empty for the number of a step."""
    values: list[bytes]


def cut(text: bytes) -> Template:
    literals, keys, values = [], [], []
    end = 0
    for match in _NUMBERS.finditer(text):
        literals.append(text[end : match.start("value")])
        keys.append((match["key"] or b"").decode())
        values.append(match["value"])
        end = match.end()
    literals.append(text[end:])
    return Template(literals, keys, values)


def shifts(template: Template, events: RawEvents) -> dict[str, int]:
    """How far one copy is moved from the one before, by key; nanoseconds for `ts`."""
    timed = events.time_ns != MISSING
    durations = np.where(events.duration_ns == MISSING, 0, events.duration_ns)
    span = int((events.time_ns + durations)[timed].max() - events.time_ns[timed].min())
    largest: dict[str, int] = {}
    steps: list[int] = []
    for key, value in zip(template.keys, template.values, strict=True):
        if key == "":
            steps.append(int(value))
        elif key != "ts":
            largest[key] = max(largest.get(key, 0), parse_decimal(value, 0))
    result = {"ts": math.ceil((span + GAP_NS) / GAP_NS) * GAP_NS, "": max(steps) - min(steps) + 1 if steps else 1}
    for space in (CORRELATIONS, EXTERNALS, ["Python id", "Python parent id"], ["Sequence number"], ["Ev Idx"]):
        result |= dict.fromkeys(space, 1 + max(largest.get(key, 0) for key in space))
    return result


def copy_of(template: Template, shift: dict[str, int], number: int) -> bytes:
    pieces = [template.literals[0]]
    for key, value, literal in zip(template.keys, template.values, template.literals[1:], strict=True):
        pieces.append(_moved(key, value, shift[key] * number))
        pieces.append(literal)
    return b"".join(pieces)


def _moved(key: str, value: bytes, by: int) -> bytes:
    if key == "ts":
        moved = parse_decimal(value, 3) + by
        return b"%d.%03d" % divmod(moved, 1000) if b"." in value else b"%d" % (moved // 1000)
    number = int(value)
    absent = number < 0 or (number == 0 and key not in COUNTED and key != "")
    return value if absent else b"%d" % (number + by)


def make_trace(source: Path, target: Path, copies: int | None, size: float | None, level: int = 6) -> int:
    """Writes the copies, as many as asked for or as the size needs; gives their number."""
    text = gzip.decompress(source.read_bytes()) if source.suffix == ".gz" else source.read_bytes()
    header = read_header(text[:HEADER_LIMIT], complete=True)
    end = PythonScanner().feed(text, 0, header.events_start, True).position - 1
    events = text[header.events_start : end].strip()
    template = cut(events)
    shift = shifts(template, scan_file(source))
    number = copies or max(1, math.ceil((size or 0) / len(events)))
    with gzip.open(target, "wb", level) if target.suffix == ".gz" else target.open("wb") as file:
        file.write(text[: header.events_start] + b"\n")
        for index in range(number):
            file.write(copy_of(template, shift, index))
            file.write(b",\n" if index + 1 < number else b"\n")
        file.write(text[end:])
    return number


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path, help="compressed when its name ends in .gz")
    amount = parser.add_mutually_exclusive_group(required=True)
    amount.add_argument("--copies", type=int)
    amount.add_argument("--bytes", type=float, help="of text; as many copies as reach it")
    arguments = parser.parse_args()
    number = make_trace(arguments.source, arguments.target, arguments.copies, arguments.bytes)
    print(f"{number} copies, {arguments.target.stat().st_size:,} bytes: {arguments.target}")


if __name__ == "__main__":
    main()
