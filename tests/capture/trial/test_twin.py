"""The rounding twin: how far its weights are moved."""

from __future__ import annotations

import subprocess
import sys
from textwrap import dedent

import pytest

torch = pytest.importorskip("torch")

from warpline.capture.trial.twin import move_by_rounding, round_again  # noqa: E402

EPS = 2.0**-23
"""Of FP32: one rounding error of a number near 1."""


def test_each_update_moves_each_weight_by_another_part_of_one_rounding_error() -> None:
    model = torch.nn.Linear(64, 64, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.nn.init.ones_(model.weight)
    seen = []
    for update in (1, 2):
        before = model.weight.detach().clone()
        round_again(torch, optimizer, update)
        moved = model.weight.detach() - before
        assert 0 < moved.abs().max() <= 2 * EPS  # the product is itself rounded
        seen.append(moved)
    assert not torch.equal(*seen)


def test_at_the_start_weights_move_by_the_type_that_they_are_computed_in() -> None:
    model = torch.nn.Linear(64, 64, bias=False)
    torch.nn.init.ones_(model.weight)
    with torch.autocast("cpu", torch.bfloat16):
        move_by_rounding(torch, model)
    assert 2.0**-9 < (model.weight - 1).abs().max() <= 2.0**-7


def test_lazy_and_expanded_parameters_stay_as_they_are() -> None:
    model = torch.nn.Sequential(torch.nn.LazyLinear(4), torch.nn.Linear(4, 4, bias=False))
    model.scale = torch.nn.Parameter(torch.ones(1).expand(4))
    before = model[1].weight.detach().clone()
    move_by_rounding(torch, model)
    assert not torch.equal(model[1].weight, before)
    assert model.scale.tolist() == [1.0] * 4


def test_a_sharded_parameter_is_moved_in_place() -> None:
    program = """
        import os, torch
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0", RANK="0", WORLD_SIZE="1")
        torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        from torch.distributed.tensor import Shard, distribute_tensor, init_device_mesh
        from warpline.capture.trial.twin import move_by
        whole = distribute_tensor(torch.ones(64), init_device_mesh("cpu", (1,)), [Shard(0)])
        parameter = torch.nn.Parameter(whole)
        move_by(torch, parameter, 0.5, seed=1)
        moved = parameter.full_tensor() - 1
        print(bool(0 < moved.abs().max() <= 0.5))
    """
    ran = subprocess.run([sys.executable, "-c", dedent(program)], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "True"
