"""The rounding twin: how far its weights are moved."""

from __future__ import annotations

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
