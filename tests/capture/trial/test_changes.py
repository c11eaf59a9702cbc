"""What the first run says of modules, and what compiling does to them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

PROGRAM = """
    import copy, torch
    from torch import nn
    from torch._dynamo.utils import counters
    from warpline.capture.trial.changes import Compile, can_compile, own_module

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(2, 2)
        def forward(self, x):
            return self.linear(x)

    class Chain(nn.Sequential):
        pass

    class Keras(Net):
        def compile(self, optimizer):
            pass

    def graphs(compiled, called):
        torch._dynamo.reset()
        counters.clear()
        compiled()
        called(torch.ones(1, 2))
        return counters["stats"]["unique_graphs"]

    Compile.options = {"backend": "eager"}
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    layers = nn.Linear(2, 2), nn.ReLU()
    for module in (Net(), nn.Sequential(*layers), Chain(*layers), nn.Linear(2, 2)):
        assert can_compile(torch, module) == bool(graphs(lambda: module.compile(backend="eager"), module)), module
        for wrapped in (module, nn.parallel.DistributedDataParallel(module), nn.DataParallel(module)):
            module._compiled_call_impl = None
            assert own_module(torch, wrapped) == ("module" if wrapped is not module else "", module)
            assert graphs(lambda: Compile(torch).adopt(wrapped), wrapped) == 1, wrapped
        module._compiled_call_impl = None
        module.forward = torch.compile(type(module).forward, backend="eager").__get__(module)
        other = copy.deepcopy(module)
        assert graphs(lambda: None, other) == 1
        assert other.forward.__self__ is other
    assert not can_compile(torch, Keras())
"""


def test_every_module_is_compiled_and_those_that_compile_leaves_alone_are_known(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    program = tmp_path / "program.py"
    program.write_text(dedent(PROGRAM))
    subprocess.run([sys.executable, str(program)], check=True)
