"""A fix is one file: put beside the others it is found everywhere, and taken away it is gone everywhere."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from fake_package import install
from kineto_files import write
from msgspec.structs import replace
from paths import ROOT
from small_programs import H200, Program, repeated

from warpline import fixes
from warpline.cli.main import app
from warpline.errors import UsageError, WarplineError
from warpline.findings.diagnosis import diagnose
from warpline.findings.fix_table import every_fix, whatif
from warpline.fixes.registry import ENTRY_POINTS, all_fixes, fix_of, order_of_application, rules
from warpline.replay.fix import chosen_fixes
from warpline.trace.open import open_trace

NAME, RULE = "set_to_none", "zeroed_gradients"
FILE, TEST = re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs/adding-a-fix.md").read_text(), flags=re.M | re.S)
"""The example of the page: a fix, and its test."""


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a file that is a fix."""
    folder = tmp_path / "fixes"
    folder.mkdir()
    (folder / f"{NAME}.py").write_text(FILE)
    monkeypatch.setattr(fixes, "__path__", [*fixes.__path__, str(folder)])
    _forget_fixes()
    yield folder
    _forget_module()


def _forget_module() -> None:
    sys.modules.pop(f"{fixes.__name__}.{NAME}", None)
    _forget_fixes()


def _forget_fixes() -> None:
    """The modules are searched again on next use."""
    for known in (all_fixes, rules, fix_of):
        known.cache_clear()


@pytest.fixture
def trace_file(tmp_path: Path) -> Path:
    """Steps in which gradients are filled with zeros for longer than anything else."""

    def body(program: Program) -> None:
        with program.range("Optimizer.zero_grad#SGD.zero_grad"):
            program.op(
                "aten::zero_", ("void at::native::unrolled_elementwise_kernel<at::native::FillFunctor<float>>", 900)
            )
        program.wait()

    return write(tmp_path, repeated(body).events, **H200)


def test_the_page_s_own_test_passes(toy: Path, tmp_path: Path) -> None:
    page: dict[str, Any] = {}
    exec(compile(TEST, "adding-a-fix.md", "exec"), page)
    tests = [value for name, value in page.items() if name.startswith("test_")]
    assert len(tests) == 2
    for number, run in enumerate(tests):
        (tmp_path / str(number)).mkdir()
        run(tmp_path / str(number))


def test_it_is_found_by_name_and_applied_where_it_wants_to_be(toy: Path) -> None:
    assert [fix.name for fix in chosen_fixes(all_fixes(), ["cuda_graph", NAME, "remove_sync"])][1:] == [
        NAME,
        "cuda_graph",
    ]
    assert fix_of(RULE).name == NAME
    assert RULE in {rule.name for rule in rules()}


def test_the_command_line_lists_and_takes_it(toy: Path, trace_file: Path) -> None:
    command = CliRunner()
    assert NAME in command.invoke(app, ["whatif", "--help"]).stdout
    answer = command.invoke(app, ["whatif", str(trace_file), "--fix", NAME, "--json", "--no-cache"])
    assert json.loads(answer.stdout)["fixes"][0]["name"] == NAME


def test_it_is_tried_with_the_others_and_diagnosed(toy: Path, trace_file: Path) -> None:
    trace = open_trace(trace_file, cache=False)
    predictions = {prediction.fixes[0].name: prediction for prediction in every_fix(trace)}
    saved = predictions[NAME].old_step_ns.expected - predictions[NAME].new_step_ns.expected
    assert saved == pytest.approx(900_000, rel=0.05)
    answer = diagnose(trace, why=True)
    (finding,) = [one for one in answer.to_dict()["findings"] if one["rule"] == RULE]
    assert (finding["cause"], finding["fix"], finding["how"]) == (
        "kernel",
        NAME,
        fix_of(RULE).findings[0].advice.pytorch,
    )
    assert finding["claim"] == "Gradients are filled with zeros: 1 kernel a step, 900 µs."
    assert "First, dropping the gradients: " in answer.to_dict()["verdict"]["sentence"]


def test_a_package_of_its_own_adds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, ENTRY_POINTS, f"{NAME} = my_fixes:FIX", FILE)
    _forget_fixes()
    try:
        assert fix_of(RULE) is all_fixes()[NAME]
        assert NAME in CliRunner().invoke(app, ["whatif", "--help"]).stdout
    finally:
        _forget_fixes()


def test_a_package_cannot_take_the_name_of_a_fix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, ENTRY_POINTS, "x = my_fixes:FIX", FILE.replace('name="set_to_none"', 'name="tf32"'))
    _forget_fixes()
    try:
        with pytest.raises(WarplineError, match="bad-plugin: two fixes are called tf32"):
            all_fixes()
    finally:
        _forget_fixes()


def test_without_its_file_it_is_gone(toy: Path, trace_file: Path) -> None:
    assert NAME in all_fixes()
    (toy / f"{NAME}.py").unlink()
    _forget_module()
    trace = open_trace(trace_file, cache=False)
    assert NAME not in all_fixes()
    assert NAME not in CliRunner().invoke(app, ["whatif", "--help"]).stdout
    with pytest.raises(UsageError, match="unknown-fix"):
        whatif(trace, [NAME])
    assert RULE not in {one["rule"] for one in diagnose(trace, why=True).to_dict()["findings"]}


def test_fixes_that_come_after_each_other_are_refused() -> None:
    known = dict(all_fixes())
    known["warm_up"] = replace(known["warm_up"], after=("cuda_graph",))
    with pytest.raises(ValueError, match="depend on each other in a cycle"):
        order_of_application(known)


def test_every_fix_comes_after_fixes_that_there_are() -> None:
    assert {name for fix in all_fixes().values() for name in fix.after} <= set(all_fixes())


def test_every_fix_is_in_the_file_of_its_name() -> None:
    for name, fix in all_fixes().items():
        assert fix.apply.__module__ == f"warpline.fixes.{name}"
