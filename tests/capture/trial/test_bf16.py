"""Autocast to bfloat16 from outside: what counts as changed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

PROGRAM = """
    import contextlib
    import torch
    from warpline.capture.trial.changes import Bf16

    def changed(own):
        change = Bf16(torch)
        change.arm()
        net = torch.compile(torch.nn.Linear(2, 2), backend="eager")
        with own:
            change.around(lambda module, inputs, named: module(*inputs), net, (torch.ones(2),), {}).sum().backward()
        return bool(change.proof())

    print(changed(contextlib.nullcontext()), changed(torch.autocast("cpu", torch.bfloat16)))
"""


def test_a_compiled_module_that_the_program_autocasts_itself_is_not_changed(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    program = tmp_path / "program.py"
    program.write_text(dedent(PROGRAM))
    ran = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["True", "False"]
