"""Roles of a transformer block by shapes alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kineto_files import op, write

from warpline.analyses.parts.shape_roles import shape_roles
from warpline.trace.open import open_trace

Call = tuple[str, list[list[int]]]
QKV: list[Call] = [("aten::mm", [[64, 32], [32, 32]])] * 3
SCORES: Call = ("aten::bmm", [[4, 16, 32], [4, 32, 16]])
SOFTMAX: Call = ("aten::_softmax", [[4, 16, 16], [], []])
VALUES: Call = ("aten::bmm", [[4, 16, 16], [4, 16, 32]])
OUT: Call = ("aten::mm", [[64, 32], [32, 32]])
ADD: Call = ("aten::add", [[4, 16, 32], [4, 16, 32], []])
UP: Call = ("aten::addmm", [[128], [64, 32], [32, 128]])
RELU: Call = ("aten::clamp_min", [[4, 16, 128], []])
DOWN: Call = ("aten::addmm", [[32], [64, 128], [128, 32]])


def roles(folder: Path, *calls: Call) -> list[Any]:
    events = [op(name, 100 * at, 50, **{"Input Dims": sizes}) for at, (name, sizes) in enumerate(calls)]
    return shape_roles(open_trace(write(folder, events)), np.zeros(len(calls), bool)).tolist()[:-1]


def test_a_block_without_norms_and_modules(tmp_path: Path) -> None:
    found = roles(
        tmp_path, *QKV, SCORES, ("aten::div", [[4, 16, 16], []]), SOFTMAX, VALUES, OUT, ADD, UP, RELU, DOWN, ADD
    )
    assert found == [*["attention"] * 8, "residual", *["MLP"] * 3, "residual"]


def test_a_gated_mlp_has_two_matmuls_before_its_activation(tmp_path: Path) -> None:
    assert roles(tmp_path, UP, UP, RELU, DOWN) == ["MLP"] * 4


def test_projections_make_no_more_than_queries_keys_and_values(tmp_path: Path) -> None:
    """A fourth matmul of that size before attention belongs to something else."""
    assert roles(tmp_path, OUT, *QKV, SCORES, SOFTMAX, VALUES)[:2] == ["", "attention"]


def test_one_matmul_makes_queries_keys_and_values(tmp_path: Path) -> None:
    fused: Call = ("aten::mm", [[64, 32], [32, 96]])
    assert roles(tmp_path, fused, SCORES, SOFTMAX, VALUES)[0] == "attention"


@pytest.mark.parametrize(
    "calls",
    [
        (UP, DOWN),  # no activation
        (("aten::mm", [[64, 128], [128, 32]]), RELU, ("aten::mm", [[64, 32], [32, 128]])),  # narrower inside
        (OUT, SOFTMAX, OUT),  # a softmax over classes
        (SCORES, ("aten::_softmax", [[4, 16, 15], [], []]), VALUES),  # not over the scores
        (ADD,),
    ],
)
def test_what_is_neither_has_no_role(tmp_path: Path, calls: tuple[Call, ...]) -> None:
    assert set(roles(tmp_path, *calls)) == {""}


def test_without_shapes_there_is_no_role(tmp_path: Path) -> None:
    assert set(roles(tmp_path, *[(name, []) for name, _ in (*QKV, SCORES, SOFTMAX, VALUES, OUT)])) == {""}
