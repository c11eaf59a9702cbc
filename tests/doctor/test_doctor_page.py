"""docs/doctor.md tells of the failures as the code knows them. `WARPLINE_UPDATE=1 pytest tests/doctor` rewrites it."""

from __future__ import annotations

import os

from paths import ROOT

from warpline.doctor.failures import known_failures

PAGE = ROOT / "docs" / "doctor.md"
START, END = "<!-- failures: WARPLINE_UPDATE=1 pytest tests/doctor writes them -->\n", "<!-- end -->\n"


def failures_text() -> str:
    parts = []
    for failure in known_failures().values():
        do = "\n".join(f"- `{action}`" for action in failure.do)
        parts.append(f"## {failure.number}. {failure.name}\n\n*{failure.symptom}*\n\n{failure.cause}\n\n{do}\n\n")
    return "".join(parts)


def test_every_failure_is_documented_as_it_is_known() -> None:
    head, rest = PAGE.read_text().split(START)
    written, tail = rest.split(END)
    if os.environ.get("WARPLINE_UPDATE"):
        PAGE.write_text(head + START + failures_text() + END + tail)
        written = failures_text()
    assert written == failures_text(), "docs/doctor.md is behind: WARPLINE_UPDATE=1 pytest tests/doctor"


def test_numbers_are_in_order() -> None:
    assert [failure.number for failure in known_failures().values()] == list(range(1, len(known_failures()) + 1))
