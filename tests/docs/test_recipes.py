"""The recipes hand on what `warpline run` gives its program, and their folders can be read."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from kineto_files import annotation, op
from paths import ROOT
from rank_files import write_rank

from warpline.capture.plan import VARIABLE
from warpline.cli.main import run

EXAMPLES = ROOT / "docs" / "examples"


@pytest.mark.parametrize("name", ["ray_actors.py", "ray_train.py"])
def test_ray_workers_get_every_variable_of_the_injection(name: str) -> None:
    tree = ast.parse((EXAMPLES / name).read_text())
    (injected,) = [
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "INJECTED"
    ]
    assert {VARIABLE, "PYTHONPATH"} < set(injected)
    source = (ROOT / "src" / "warpline" / "capture" / "run.py").read_text()
    assert source.count("environment.setdefault(") == len(injected) - 2
    assert str(injected) in (ROOT / "docs" / "recipes.md").read_text().replace('"', "'")


def test_a_folder_of_ranks_without_a_gpu_shows_the_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for rank in (0, 1):
        events = [
            event
            for step in range(4)
            for event in (annotation(f"ProfilerStep#{step}", 1000 * step, 1000), op("aten::mm", 1000 * step, 800))
        ]
        write_rank(tmp_path / f"rank{rank}.json", events, rank, 2)
    assert run([str(tmp_path)]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("rank0.json · no GPU activity")
    assert "this is rank0.json; 1 more trace there" in printed.err
