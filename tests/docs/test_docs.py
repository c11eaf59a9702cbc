"""The documentation says what the code does: tables, health codes, commands.

`WARPLINE_UPDATE=1 pytest tests/docs` rewrites the generated part of docs/tables.md.
"""

from __future__ import annotations

import os
import re

import pytest
from paths import ROOT

from warpline.trace.schema import TABLES

SOURCE = ROOT / "src" / "warpline"
START, END = "<!-- tables: WARPLINE_UPDATE=1 pytest tests/docs writes them -->\n", "<!-- end -->\n"


def tables_text() -> str:
    parts = []
    for name, columns in TABLES.items():
        rows = "".join(
            f"| `{column}` | {about.dtype.__name__} | {about.meaning} |\n".replace("|", "|")
            for column, about in columns.items()
        )
        parts.append(f"## {name}\n\n| column | type | meaning |\n|---|---|---|\n{rows}\n")
    return "".join(parts)


def test_every_table_and_column_is_documented() -> None:
    page = ROOT / "docs" / "tables.md"
    head, rest = page.read_text().split(START)
    written, tail = rest.split(END)
    if os.environ.get("WARPLINE_UPDATE"):
        page.write_text(head + START + tables_text() + END + tail)
        written = tables_text()
    assert written == tables_text(), "docs/tables.md is behind the schema: WARPLINE_UPDATE=1 pytest tests/docs"


def health_codes() -> set[str]:
    found: set[str] = set()
    for file in SOURCE.rglob("*.py"):
        found |= set(re.findall(r'HealthEntry\(\s*"([a-z0-9-]+)"', file.read_text()))
    return found


def test_every_health_code_is_documented() -> None:
    page = (ROOT / "docs" / "health.md").read_text()
    documented = set(re.findall(r"^\| `([a-z0-9-]+)`", page, flags=re.MULTILINE))
    assert documented == health_codes()


@pytest.mark.parametrize(
    "page", [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"], ids=lambda page: page.name
)
def test_links_between_pages_lead_somewhere(page: object) -> None:
    from pathlib import Path  # noqa: PLC0415

    file = Path(str(page))
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", file.read_text()):
        if not target.startswith(("http:", "https:")):
            assert (file.parent / target).exists(), target
