"""One page for each reason, with constants that exist and have the values that the page gives, and an index of all."""

import ast
import importlib
import os
import pkgutil
import re
from types import ModuleType

import pytest
from paths import ROOT

import warpline.dive.reasons
from warpline.dive import gains
from warpline.dive.reasons import REASONS

PAGES = ROOT / "docs" / "reasons"
START, END = "<!-- reasons: WARPLINE_UPDATE=1 pytest tests/dive/test_pages.py writes them -->\n", "<!-- end -->\n"
PARTS = ("What it is", "How it is measured", "When it is wrong", "How to fix", "How to verify")


def modules() -> list[ModuleType]:
    names = [found.name for found in pkgutil.iter_modules(warpline.dive.reasons.__path__)]
    return [gains, *(importlib.import_module(f"warpline.dive.reasons.{name}") for name in names)]


def module_of(name: str) -> list[ModuleType]:
    """The module that looks for a reason, and those that it shares constants with."""
    look = next(reason.look for reason in REASONS if reason.name == name)
    return [importlib.import_module(look.__module__), gains]


def test_every_reason_has_a_page_with_all_parts() -> None:
    assert {file.stem for file in PAGES.glob("*.md")} == {reason.name for reason in REASONS} | {"README"}
    for reason in REASONS:
        text = (PAGES / f"{reason.name}.md").read_text()
        assert [part for part in PARTS if f"**{part}.**" not in text] == [], reason.name


@pytest.mark.parametrize("name", [*(reason.name for reason in REASONS), "README"])
def test_constants_have_the_values_that_a_page_gives(name: str) -> None:
    text = " ".join((PAGES / f"{name}.md").read_text().split())
    places = modules() if name == "README" else module_of(name)
    for constant, value in re.findall(r"`([A-Z][A-Z_]+)` = ([\d.]*\d)", text):
        found = [getattr(place, constant) for place in places if hasattr(place, constant)]
        assert found and found[0] == ast.literal_eval(value), constant


def test_the_index_lists_every_reason() -> None:
    rows = "".join(
        f"| [{reason.name}]({reason.name}.md) | {reason.rank} | {reason.question} | {reason.threshold} |\n"
        for reason in REASONS
    )
    table = f"| reason | kind | question | yes, if |\n|---|---|---|---|\n{rows}"
    page = PAGES / "README.md"
    head, rest = page.read_text().split(START)
    written, tail = rest.split(END)
    if os.environ.get("WARPLINE_UPDATE"):
        page.write_text(head + START + table + END + tail)
        written = table
    assert written == table, "docs/reasons/README.md is behind: WARPLINE_UPDATE=1 pytest tests/dive/test_pages.py"
