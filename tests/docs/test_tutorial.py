"""The tutorial and the lessons show what their commands print."""

from __future__ import annotations

import pytest
from console_pages import answered
from paths import ROOT

LESSONS = sorted(path.stem for path in (ROOT / "docs" / "lessons").glob("*.md"))


def test_the_tutorial_shows_what_its_commands_print() -> None:
    page = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    assert answered(page) == page, "run: PYTHONPATH=tests/helpers python -m console_pages docs/tutorial.md"


@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_shows_what_its_commands_print(name: str) -> None:
    page = (ROOT / "docs" / "lessons" / f"{name}.md").read_text(encoding="utf-8")
    shown = answered(page, in_repository=True)
    assert shown == page, f"run: PYTHONPATH=tests/helpers python -m console_pages docs/lessons/{name}.md"
