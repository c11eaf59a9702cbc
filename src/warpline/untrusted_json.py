"""Small JSON files that anybody may have written: read within a limit, and with numbers that can be computed with."""

from __future__ import annotations

import json
import math
import os
import stat
from pathlib import Path
from typing import Any, Optional

MOST_BYTES = 64 << 20
LARGEST_NUMBER = 1 << 63


def read_json(path: Path, most_bytes: int = MOST_BYTES) -> Any:
    """The content of a file; ValueError where it is too large, no file (but a pipe, say) or no JSON."""
    return parse_json(read_text(path, most_bytes))


def read_text(path: Path, most_bytes: int = MOST_BYTES) -> str:
    """The text of a file; ValueError where it is too large, no file or no text."""
    with os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("it is no regular file")
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise ValueError(f"it has more than {most_bytes:,} bytes")
    return content.decode("utf-8")


def parse_json(text: str) -> Any:
    """The content of a text; a number that nothing has, beyond 64 bits or infinite, is None. ValueError for no JSON."""
    try:
        return json.loads(text, parse_int=_whole, parse_float=_finite, parse_constant=lambda _: None)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error


def _whole(digits: str) -> Optional[int]:  # noqa: UP045 - the program that is profiled may run on Python 3.9
    number = int(digits) if len(digits) <= len(str(LARGEST_NUMBER)) + 1 else LARGEST_NUMBER
    return number if -LARGEST_NUMBER <= number < LARGEST_NUMBER else None


def _finite(digits: str) -> Optional[float]:  # noqa: UP045
    number = float(digits)
    return number if math.isfinite(number) else None
