"""The lines of a text file, plain, gzipped or xz, of bounded length, tolerant of a damaged end."""

from __future__ import annotations

import codecs
from collections.abc import Iterator

from warpline.errors import UnreadableFile
from warpline.sources.unpack import Unpacked

MAX_LINE_CHARS = 8 << 20
"""A raw page with every metric of a chip has headers of under a megabyte."""
_BYTE_ORDER_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


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
