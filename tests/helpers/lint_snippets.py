"""The labelled snippets: programs in text files, with the expected findings as `#! code` at the end of lines."""

from __future__ import annotations

import re
from dataclasses import dataclass

from paths import ROOT

FOLDER = ROOT / "tests" / "lint" / "snippets"
_LABEL = re.compile(r"\s*#! ([a-z-]+(?:, [a-z-]+)*)$")


@dataclass(frozen=True)
class Snippet:
    """One program and its findings, as (line, code)."""

    name: str
    text: str
    expected: frozenset[tuple[int, str]]
    clean: bool


def snippets() -> list[Snippet]:
    """All of them."""
    return [
        _snippet(part, file.name.startswith("clean"))
        for file in sorted(FOLDER.glob("*.txt"))
        for part in file.read_text(encoding="utf-8").split("=== ")[1:]
    ]


def _snippet(part: str, clean: bool) -> Snippet:
    name, _, body = part.partition("\n")
    expected: set[tuple[int, str]] = set()
    lines = []
    for number, line in enumerate(body.splitlines(), start=1):
        match = _LABEL.search(line)
        if match:
            expected |= {(number, code) for code in match[1].split(", ")}
        lines.append(_LABEL.sub("", line))
    return Snippet(name, "\n".join(lines) + "\n", frozenset(expected), clean)
