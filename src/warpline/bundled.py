"""The bundled trace in half the space, for the wheel: each text once, and beside them the numbers, column by column.

A line of the trace is a template with holes, and its numbers fill them. Times and ids are written as differences to
those before, which are small; of each column first all lowest bytes, then all second ones, which are mostly alike. A
wheel holds this form, which `hatch_build.py` makes with this file alone; a checkout has the trace itself.
"""

from __future__ import annotations

import lzma
import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).parent / "data"
TRACE = "demo.json.xz"
PACKED = "demo.packed.xz"
HOLE, END = "\x01", "\x02"
"""Marks a hole in a template, and ends a part of the texts; JSON has neither."""
FILTERS: list[dict[str, int]] = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "pb": 0}]
"""Bytes in planes, like those of text, are not aligned to words."""
NUMBER = re.compile(r'(?<=")(ts|dur|External id|correlation|Sequence number)": (\d+(?:\.\d{3})?)(?=[,}])')
HOLES = re.compile(rf'(?<![A-Za-z ])([A-Za-z ]++)": {HOLE}')
SPAN = re.compile(r'\{"ph": "X", "cat": "(\w+)", (?>.*?"tid": )([^,]++), (?>.*?"ts": )([\d.]++), .*\},')
DECIMALS = {"ts": 3, "dur": 3}
SUMMED = {"ts", "External id", "correlation", "Sequence number"}


@contextmanager
def bundled_trace() -> Iterator[Path]:
    """The bundled trace as a file."""
    if (HERE / TRACE).exists():
        yield HERE / TRACE
        return
    with TemporaryDirectory(prefix="warpline-demo-") as folder:
        file = Path(folder) / TRACE
        file.write_bytes(lzma.compress(unpacked((HERE / PACKED).read_bytes()).encode(), preset=0))
        yield file


def in_order(text: str) -> str:
    """The same spans by category, thread and time, which makes differences small; their order means nothing."""
    lines = text.split("\n")
    spans = {number: span.groups() for number, line in enumerate(lines) if (span := SPAN.fullmatch(line))}
    ordered = sorted(spans, key=lambda number: (*spans[number][:2], float(spans[number][2])))
    moved = [lines[number] for number in ordered]
    for number, line in zip(spans, moved, strict=True):
        lines[number] = line
    return "\n".join(lines)


def packed(text: str) -> bytes:
    """The text of a trace that has an event on each line."""
    templates: dict[str, int] = {}
    columns: dict[str, list[int]] = defaultdict(list)

    def cut(number: re.Match[str]) -> str:
        name, value = number.groups()
        if len(value.partition(".")[2]) != DECIMALS.get(name, 0):
            return number[0]
        columns[name].append(int(value.replace(".", "")))
        return f'{name}": {HOLE}'

    lines = [templates.setdefault(NUMBER.sub(cut, line), len(templates)) for line in text.split("\n")]
    for name in SUMMED & columns.keys():
        columns[name] = [value - before for value, before in zip(columns[name], [0, *columns[name]], strict=False)]
    parts, planes = ["\n".join(templates), " ".join(map(str, lines))], b""
    for name, values in columns.items():
        width = max(value.bit_length() for value in values) // 8 + 1
        parts.append(f"{name}: {len(values)} {width}")
        rows = b"".join(value.to_bytes(width, "little", signed=True) for value in values)
        planes += b"".join(rows[place::width] for place in range(width))
    texts = END.join(parts).encode()
    return lzma.compress(b"%d\n%b%b" % (len(texts), texts, planes), filters=FILTERS)


def unpacked(content: bytes) -> str:
    """What was packed, to the last character."""
    length, _, rest = lzma.decompress(content).partition(b"\n")
    templates, lines, *named = rest[: int(length)].decode().split(END)
    columns: dict[str, Iterator[int]] = {}
    at = int(length)
    for name, _, shape in (column.partition(": ") for column in named):
        count, width = map(int, shape.split())
        planes = (rest[at + place * count : at + (place + 1) * count] for place in range(width))
        numbers = (int.from_bytes(row, "little", signed=True) for row in zip(*planes, strict=True))
        columns[name] = accumulate(numbers) if name in SUMMED else numbers
        at += count * width

    def fill(hole: re.Match[str]) -> str:
        value, decimals = next(columns[hole[1]]), DECIMALS.get(hole[1], 0)
        whole, part = divmod(value, 10**decimals)
        return f'{hole[1]}": {whole}.{part:0{decimals}}' if decimals else f'{hole[1]}": {whole}'

    texts = templates.split("\n")
    return "\n".join(HOLES.sub(fill, texts[int(line)]) for line in lines.split(" "))
