"""The examples of docs/python.md and of the README's Python paragraph run, and give what they show."""

from __future__ import annotations

import doctest
import re
import shutil
from pathlib import Path

import pytest
from paths import DEMO, ROOT


@pytest.fixture(autouse=True)
def in_a_folder_with_a_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(DEMO, tmp_path / "trace.json.gz")
    monkeypatch.chdir(tmp_path)


def blocks(page: str, language: str) -> list[str]:
    return re.findall(
        rf"^```{language}\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )


def test_the_page_shows_what_python_answers() -> None:
    pytest.importorskip("pandas")
    examples = doctest.DocTestParser().get_doctest(
        "\n".join(blocks("docs/python.md", "pycon")), {}, "python.md", None, 0
    )
    failures: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(examples, out=failures.append)
    assert len(examples.examples) > 20
    assert "".join(failures) == ""


@pytest.mark.parametrize(
    "page",
    ["README.md", "docs/commands/diagnose.md", "docs/commands/roofline.md", "docs/commands/stats.md", "docs/replay.md"],
)
def test_other_pages_python_runs(page: str) -> None:
    code = [block for block in blocks(page, "python") if "warpline.open" in block]
    assert code
    for block in code:
        exec(compile(block, page, "exec"), {})
