"""Every rule has a page that says what the code does, and the index lists them all."""

from __future__ import annotations

import ast
import importlib
import json
import os
import pkgutil
import re
from pathlib import Path
from types import ModuleType

import pytest
from paths import ROOT, SUITES

from warpline import api_names
from warpline.findings import confidence, judge, verdict
from warpline.fixes import model
from warpline.fixes.model import Rule
from warpline.fixes.registry import all_fixes, fix_of, rules
from warpline.replay import compiler, graph_edit, labelled_graph, patterns, ranges
from warpline.replay.costs import host, shares

PAGES = ROOT / "docs" / "findings"
HEADINGS = ["What it is", "How it is measured", "When it is wrong", "How to fix", "How to verify"]
MOST_LINES = 45
START, END = "<!-- fixes: WARPLINE_UPDATE=1 pytest tests/fixes/test_pages.py writes them -->\n", "<!-- end -->\n"
EFFORTS = {"setting": "a setting", "few_lines": "a few lines", "rewrite": "a rewrite"}
CODE = r"\w+(?:\.\w+)+|\w+_\w+|\w+(?=\(|=)"
"""What looks like code in a sentence: dotted names, names with an underscore, and what is called or set."""

every_rule = pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.name)


def page(rule: Rule) -> str:
    file = PAGES / f"{rule.name}.md"
    assert file.exists(), f"write docs/findings/{file.name}, with the headings {', '.join(HEADINGS)}"
    return file.read_text()


def test_there_is_a_rule_for_every_page() -> None:
    assert {file.stem for file in PAGES.glob("*.md")} - {rule.name for rule in rules()} == {"README"}


@every_rule
def test_a_page_has_its_headings_in_order_and_is_short(rule: Rule) -> None:
    text = page(rule)
    assert text.startswith(f"# {rule.name}\n")
    assert re.findall(r"^\*\*(.+)\.\*\*", text, flags=re.MULTILINE) == HEADINGS
    assert len(text.splitlines()) <= MOST_LINES


@every_rule
def test_a_page_shows_code_and_the_commands_that_verify_it(rule: Rule) -> None:
    text = page(rule)
    assert "```python\n" in text
    assert f"replay of `{fix_of(rule.name).name}`" in " ".join(text.split())
    assert f"$ warpline whatif before.json.gz --fix {fix_of(rule.name).name}\n" in text
    assert "$ warpline compare before.json.gz after.json.gz " in text


@every_rule
def test_the_advice_s_code_is_on_the_page(rule: Rule) -> None:
    text = page(rule)
    assert [word for word in re.findall(CODE, rule.advice.pytorch) if word not in text] == []


@every_rule
def test_a_page_says_how_sure_the_rule_can_be(rule: Rule) -> None:
    sure = {"high": "", "medium": "confidence is medium at most", "low": "confidence is always low"}
    assert sure[rule.most] in " ".join(page(rule).split())


def modules_of(rule: Rule | None) -> list[ModuleType]:
    """Where a page's constants may live."""
    shared = [verdict, judge, confidence, ranges, host, shares, labelled_graph, graph_edit, api_names]
    if rule is None:
        return shared
    own = importlib.import_module(fix_of(rule.name).apply.__module__)
    parts = [patterns, compiler]
    recognisers = [
        importlib.import_module(f"{part.__name__}.{item.name}")
        for part in parts
        for item in pkgutil.iter_modules(part.__path__)
    ]
    return [own, model, *shared, *recognisers]


def known(name: str, modules: list[ModuleType]) -> list[object]:
    return [getattr(module, name) for module in modules if hasattr(module, name)]


@pytest.mark.parametrize("rule", [*rules(), None], ids=lambda rule: rule.name if rule else "index")
def test_constants_exist_and_have_the_values_that_a_page_gives(rule: Rule | None) -> None:
    text = page(rule) if rule else (PAGES / "README.md").read_text()
    modules = modules_of(rule)
    values = dict(re.findall(r"`([A-Z][A-Z_]+)` = ([\d.]*\d)", " ".join(text.split())))
    for name in set(re.findall(r"`([A-Z]+(?:_[A-Z]+)+)`", text)) - {"TORCHINDUCTOR_CACHE_DIR"}:
        assert known(name, modules), name
        if name in values:
            assert known(name, modules)[0] == ast.literal_eval(values[name]), name


def test_the_index_lists_every_rule_with_its_cause_and_fix() -> None:
    rows = "".join(
        f"| [{rule.name}]({rule.name}.md) | `{rule.cause}` | `{fix_of(rule.name).name}` | {rule.summary} |\n"
        for rule in rules()
    )
    is_listed(PAGES / "README.md", f"| rule | cause | fix | in one line |\n|---|---|---|---|\n{rows}")


def test_the_page_of_whatif_lists_every_fix_with_its_effort() -> None:
    rows = "".join(
        f"| `{name}` | {EFFORTS[fix.effort]} | {fix.summary} |\n" for name, fix in sorted(all_fixes().items())
    )
    is_listed(ROOT / "docs/commands/whatif.md", f"| fix | effort | what it does |\n|---|---|---|\n{rows}")


def is_listed(file: Path, table: str) -> None:
    """Whether a page has this table between its marks; with WARPLINE_UPDATE=1 it is written there."""
    head, rest = file.read_text().split(START)
    written, tail = rest.split(END)
    if os.environ.get("WARPLINE_UPDATE"):
        file.write_text(head + START + table + END + tail)
        written = table
    assert written == table, f"{file.name} is behind the fixes: WARPLINE_UPDATE=1 pytest tests/fixes/test_pages.py"


FAULTS = sorted(SUITES.glob("*/faults.json"))


def measured() -> dict[str, tuple[float, float]]:
    """Milliseconds of each planted and each held-out case, faulty and fixed, by the stopwatch."""
    cases = [case for file in FAULTS for case in json.loads(file.read_text())["cases"]]
    both = ("faulty", "fixed")
    return {
        case["name"]: (
            case["bare_step_ns"][both[0]]["step_ns"] / 1e6,
            case["bare_step_ns"][both[1]]["step_ns"] / 1e6,
        )
        for case in cases
    }


@pytest.mark.skipif(not FAULTS, reason="the recorded faults are absent")
@every_rule
def test_figures_are_those_that_were_measured(rule: Rule) -> None:
    text, cases = " ".join(page(rule).split()), measured()
    figures = re.findall(r"`(\w+)`(?: \([^)]*\))? ([\d.]+) → ([\d.]+) ms", text)
    assert len(figures) == text.count("→")
    assert figures or "There is no planted case" in text, (
        'give its times (`case` 2 → 1 ms) or say "There is no planted case"'
    )
    for case, faulty, fixed in figures:
        assert (float(faulty), float(fixed)) == pytest.approx(cases[case], rel=0.01), case
