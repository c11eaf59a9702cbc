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
    model, target = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1).requires_grad_(False)

    def call(module, times):
        for _ in range(times):
            output = change.around(lambda module, inputs, named: module(*inputs), module, (torch.ones(2),), {})
            if output.requires_grad:
                output.sum().backward()
        return len(marks)

    print(call(target, 2), call(model, 2))  # without an optimizer each call is an iteration
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    print(call(target, 2), call(model, 1))  # nothing waits for an update yet
    print(call(target, 1), call(model, 3))  # another model and four micro-batches, all of one update
    print(model.weight.grad is not None)
    optimizer.step()
    print(model.weight.grad is None)
    print(call(model, 2))
"""


def test_an_iteration_is_a_call_or_all_calls_up_to_an_update(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    program = tmp_path / "program.py"
    program.write_text(dedent(PROGRAM))
    ran = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["2", "4", "6", "7", "7", "7", "True", "True", "8"]
