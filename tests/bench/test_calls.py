"""Arguments: given once, copied, in several sets, or made."""

from __future__ import annotations

from typing import Any

import pytest
from fake_torch import Tensor

from warpline.bench.calls import calls_of
from warpline.errors import UsageError


def test_sets_of_arguments_are_used_in_turn() -> None:
    seen: list[Any] = []
    calls = calls_of(lambda *args: seen.append(args), (), [(1, 2), (3, 4)], 1)
    for _ in range(3):
        calls()
    assert seen == [(1, 2), (3, 4), (1, 2)]


def test_a_factory_is_asked_for_several_sets() -> None:
    calls = calls_of(print, (), lambda index: (index,), 1)
    assert calls.sets == [(0,), (1,), (2,), (3,)]


def test_copies_clone_tensors_and_share_the_rest() -> None:
    tensor, other = Tensor(1), object()
    calls = calls_of(print, (tensor, [tensor], {"x": tensor}, other), None, 2)
    first, second = calls.sets
    assert first[0] is tensor
    assert [second[0].data_ptr(), second[1][0].data_ptr(), second[2]["x"].data_ptr()] == [1_000_001] * 3
    assert second[3] is other


def test_bytes_of_inputs_count_each_tensor_once() -> None:
    tensor = Tensor(1, size=1000)
    assert calls_of(print, (tensor, tensor), None, 1).input_bytes == 4000
    assert calls_of(print, (tensor, tensor), None, 3).input_bytes == 8000


@pytest.mark.parametrize(
    ("args", "inputs", "copies", "code"),
    [
        ((1,), [(1,)], 1, "two-inputs"),
        ((), [], 1, "bad-inputs"),
        ((), [3], 1, "bad-inputs"),
        ((), None, 0, "bad-copies"),
    ],
)
def test_impossible_requests_are_refused(args: Any, inputs: Any, copies: int, code: str) -> None:
    with pytest.raises(UsageError, match=code):
        calls_of(print, args, inputs, copies)
