"""The first run: what it takes for the steps, and what it says of a program without any."""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import dedent

import pytest

from warpline.errors import WarplineError
from warpline.trial import first_look
from warpline.trial.first_look import look_at_program
from warpline.trial.variants import SeenProgram, VariantProcesses

pytest.importorskip("torch")

OWN_OPTIMIZER = """
    import torch
    net = torch.nn.Linear(4, 4)
    while True:
        net(torch.ones(2, 4)).sum().backward()
        with torch.no_grad():
            for weight in net.parameters():
                weight -= 1e-6 * weight.grad
                weight.grad = None
"""
LATE_OPTIMIZER = """
    import time, torch
    net = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(net.parameters())
    until = time.monotonic() + 1
    while time.monotonic() < until:  # an evaluation before the training
        net(torch.ones(2, 4))
    while True:
        net(torch.ones(2, 4)).sum().backward()
        optimizer.step()
"""
TWO_LOSSES = """
    import torch
    net = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(net.parameters())
    for _ in range(4):
        net(torch.ones(2, 4)).sum().backward()
        net(torch.zeros(2, 4)).sum().backward()
        optimizer.step()
"""
FUNCTIONS = """
    import torch
    weight = torch.ones(4, 4)
    while True:
        weight = torch.tanh(weight @ weight)
"""


def seen(tmp_path: Path, source: str, budget_s: float) -> tuple[SeenProgram, list[str]]:
    """What the first run shows of a program, and the lines that it says."""
    (tmp_path / "program.py").write_text(dedent(source))
    processes = VariantProcesses((sys.executable, "program.py"), tmp_path, budget_s)
    said: list[str] = []
    try:
        return look_at_program(processes, (), None, said.append), said
    finally:
        processes.end_all()


@pytest.mark.parametrize(
    ("source", "step"), [(OWN_OPTIMIZER, "forward of Linear"), (LATE_OPTIMIZER, "SGD.step()")], ids=["own", "late"]
)
def test_training_is_timed_by_its_optimizer_or_else_by_its_forwards(
    source: str, step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_look, "LOOK_S", 0.5)
    program, _ = seen(tmp_path, source, budget_s=3600)
    assert program.steps.words == step
    assert not program.look.use.backward_elsewhere


def test_a_second_line_with_backward_is_seen(tmp_path: Path) -> None:
    program, _ = seen(tmp_path, TWO_LOSSES, budget_s=3600)
    assert program.look.use.backward_elsewhere


def test_a_program_of_functions_is_told_what_was_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_look, "SAYS_NOTHING_CALLED_S", 0.0)
    with pytest.raises(WarplineError) as error:
        seen(tmp_path, FUNCTIONS, budget_s=30)
    assert error.value.message.startswith(f"the program had called {first_look.NO_STEPS} after 15 s")
    assert "hung" not in error.value.line()
    assert "torch.nn.Module" in error.value.hint
