"""Modules replayed as CUDA graphs: where an iteration starts, and whose memory outlives it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

PROGRAM = """
    import torch
    from warpline.capture.trial.changes import CompileWithGraphs

    marks = []
    torch.compiler.cudagraph_mark_step_begin = lambda: marks.append(1)
    change = CompileWithGraphs(torch)
    change.arm()
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def call(times):
        for _ in range(times):
            change.around(lambda module, inputs, named: module(*inputs), model, (torch.ones(2),), {}).sum().backward()
        return len(marks)

    print(call(3))  # no update yet: each call is an iteration
    optimizer.step()
    print(call(4))  # four micro-batches of the next update are one
    print(model.weight.grad is not None)
    optimizer.step()
    print(model.weight.grad is None)
    print(call(1))
"""


def test_an_iteration_is_a_call_or_all_calls_up_to_an_update(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    program = tmp_path / "program.py"
    program.write_text(dedent(PROGRAM))
    ran = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["3", "4", "True", "True", "5"]
