"""Blocks of a transformer by what runs between two norms."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from kineto_files import op, write

from warpline.analyses.parts.blocks import block_roles
from warpline.trace.open import open_trace

NORM, SDPA, MM, GELU = "aten::layer_norm", "aten::scaled_dot_product_attention", "aten::mm", "aten::gelu"
SOFTMAX, BMM, RSQRT, ADD = "aten::_softmax", "aten::bmm", "aten::rsqrt", "aten::add"


def roles(folder: Path, *names: str) -> list[str]:
    trace = open_trace(write(folder, [op(name, 100 * at, 50) for at, name in enumerate(names)]))
    return [str(role) for role in block_roles(trace, np.zeros(len(names), bool))[:-1]]


def test_attention_and_mlp_lie_between_norms(tmp_path: Path) -> None:
    found = roles(tmp_path, MM, NORM, MM, SDPA, MM, ADD, NORM, MM, GELU, MM, ADD, NORM, MM)
    assert found == ["", *["attention"] * 5, *["MLP"] * 5, "", ""]


def test_attention_and_norms_written_by_hand(tmp_path: Path) -> None:
    found = roles(tmp_path, RSQRT, MM, BMM, SOFTMAX, BMM, MM, RSQRT, MM, GELU, MM, RSQRT)
    assert found == [*["attention"] * 6, *["MLP"] * 4, ""]


@pytest.mark.parametrize("inside", [(MM, SDPA, GELU, MM), (MM, ADD), (MM, GELU), (GELU,)])
def test_what_is_both_or_neither_has_no_role(tmp_path: Path, inside: tuple[str, ...]) -> None:
    assert set(roles(tmp_path, NORM, *inside, NORM)) == {""}


def test_no_ops(tmp_path: Path) -> None:
    assert roles(tmp_path) == []
