"""Text in a given number of terminal columns: measured, shortened, folded and wrapped."""

from __future__ import annotations

import re

from rich.cells import cell_len

ELLIPSIS = "…"
_UNIT = re.compile(r"(\d) ([nµm]?s|[kMGT]?B|%)(?!\w)")


def cells(text: str) -> int:
    """Width of the text in terminal columns: East Asian characters take two."""
    return len(text) if text.isascii() else cell_len(text)


def shorten(text: str, room: int) -> str:
    """Cut the middle of a text longer than `room`: kernel names often differ at both ends."""
    if cells(text) <= room:
        return text
    tail = (room - 1) // 2
    return _start(text, room - 1 - tail) + ELLIPSIS + _start(text[::-1], tail)[::-1]


def cut(text: str, most: int) -> str:
    """Cut the end of a text of more characters than `most`."""
    return text if len(text) <= most else text[: most - 1] + ELLIPSIS


def fold(text: str, room: int) -> list[str]:
    """Wrap a name into lines of at most `room`, at a space in the line's second half, else anywhere."""
    lines = []
    while cells(text) > room:
        line = _start(text, room) or text[0]
        space = _start(text, room + 1).rfind(" ")
        if space > room // 2:
            lines.append(text[:space])
            text = text[space + 1 :]
        else:
            lines.append(line)
            text = text[len(line) :]
    return [*lines, text] if text or not lines else lines


def wrap(text: str, room: int) -> list[str]:
    """Wrap text into lines of at most `room`, between words; a word longer than a line is cut anywhere.

    A number stays with its unit.
    """
    lines: list[str] = []
    line = ""
    for word in _UNIT.sub("\\1\u00a0\\2", text).split(" "):
        joined = f"{line} {word}" if line else word
        if cells(joined) <= room:
            line = joined
            continue
        lines += [line] if line else []
        *full, line = fold(word, room)
        lines += full
    lines = [*lines, line] if line or not lines else lines
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines]


def _start(text: str, room: int) -> str:
    if text.isascii():
        return text[:room]
    taken = 0
    for position, char in enumerate(text):
        taken += cells(char)
        if taken > room:
            return text[:position]
    return text
