"""The tutorial shows what its commands print."""

from __future__ import annotations

from console_pages import answered
from paths import ROOT


def test_the_tutorial_shows_what_its_commands_print() -> None:
    page = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    assert answered(page) == page, "run: PYTHONPATH=tests/helpers python -m console_pages docs/tutorial.md"
