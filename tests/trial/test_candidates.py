"""What can be tried: the page lists every fix with how, or why not."""

from __future__ import annotations

import os

import pytest
from paths import ROOT

from warpline.capture.trial.changes import CHANGES
from warpline.capture.trial.use import LoaderUse, ModuleUse, OptimizerUse, ProgramUse
from warpline.errors import UsageError
from warpline.fixes.registry import all_fixes
from warpline.trial.candidates import candidates, tryable

PAGE = ROOT / "docs" / "commands" / "try.md"
START, END = "<!-- tried: WARPLINE_UPDATE=1 pytest tests/trial writes them -->\n", "<!-- end -->\n"


def test_everything_that_is_injected_is_declared_and_the_reverse() -> None:
    assert set(tryable()) | {"nothing"} == set(CHANGES)


def test_the_page_lists_what_can_be_tried() -> None:
    rows = [f"| `{name}` | {change.does} | `{change.lines}` |\n" for name, (change, _) in tryable().items()]
    table = "| name | what is changed | what to write |\n|---|---|---|\n" + "".join(rows)
    rows = [
        f"| `{fix.name}` | {fix.not_tried} |\n"
        for fix in sorted(all_fixes().values(), key=lambda fix: fix.name)
        if not fix.tried
    ]
    text = f"{table}\nNot from outside:\n\n| fix | why |\n|---|---|\n{''.join(rows)}"
    head, rest = PAGE.read_text().split(START)
    written, tail = rest.split(END, 1)
    if os.environ.get("WARPLINE_UPDATE"):
        PAGE.write_text(head + START + text + END + tail)
        written = text
    assert written == text, "WARPLINE_UPDATE=1 pytest tests/trial"


def test_a_fix_stands_for_all_its_forms_and_a_form_for_itself() -> None:
    assert [one.name for one in candidates(["torch_compile"])] == [
        "torch_compile",
        "torch_compile_layers",
        "torch_compile_graphs",
    ]
    assert [one.name for one in candidates(["torch_compile_layers", "threads=4"])] == [
        "torch_compile_layers",
        "threads=4",
    ]
    assert len(candidates(["torch_compile", "torch_compile_layers"])) == 3


@pytest.mark.parametrize(("name", "code"), [("pad", "cannot-try"), ("fastre", "unknown-fix")])
def test_what_cannot_be_tried_is_refused(name: str, code: str) -> None:
    with pytest.raises(UsageError, match=code):
        candidates([name])


USUAL = ProgramUse(
    on_gpu=True,
    loaders=[LoaderUse(0, False, False, False, 8)],
    optimizers=[OptimizerUse("AdamW", False, True)],
    modules=[ModuleUse("Net", 100, 3, 4, False, "eager")],
    matmuls={"float32": 3},
    empty_cache_calls=1,
    gradients_kept=1,
    generate_calls=1,
    values_read=5,
    passes=4,
)


def test_a_program_that_uses_everything_has_a_use_for_every_change() -> None:
    whys = {name: change.why_not(USUAL) for name, (change, _) in tryable().items()}
    assert {name for name, why in whys.items() if why} == {"threads"}


def test_a_program_that_uses_nothing_has_a_use_for_hardly_any() -> None:
    whys = {name: change.why_not(ProgramUse(matmuls={"bfloat16": 1})) for name, (change, _) in tryable().items()}
    assert {name for name, why in whys.items() if not why} == {"no_gc"}
