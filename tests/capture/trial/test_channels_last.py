"""Models in channels_last."""

from __future__ import annotations

import subprocess
import sys
from textwrap import dedent

import pytest

pytest.importorskip("torch.distributed")

FIRST_GRADIENT = """
    import sys, torch
    from warpline.capture.trial.changes import CHANGES
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    torch.manual_seed(0)
    images = torch.rand(2, 3, 6, 6)
    change = CHANGES[sys.argv[1]](torch)
    change.arm()
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Conv2d(4, 4, 3))
    wrapped = torch.nn.parallel.DistributedDataParallel(model)
    change.adopt(wrapped)
    change.around(lambda module, arguments, named: module(*arguments), wrapped, (images,), {}).square().sum().backward()
    print(*model[0].weight.grad.flatten().tolist(), *change.proof().values())
"""


def test_the_first_gradients_of_data_parallel_training_stay_the_same() -> None:
    plain, changed = (_first_gradient(name) for name in ("nothing", "channels_last"))
    assert changed[-1] == 2  # convolutions
    assert changed[:-1] == pytest.approx(plain[:-1], rel=1e-4, abs=1e-4)


def _first_gradient(name: str) -> list[float]:
    ran = subprocess.run(
        [sys.executable, "-c", dedent(FIRST_GRADIENT), name], capture_output=True, text=True, check=True
    )
    return [float(word) for word in ran.stdout.split()]
