"""Calls of the program's own modules, heard while it is looked at and in the windows only where that serves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch.utils.checkpoint")

from warpline.capture.trial.changes import CHANGES  # noqa: E402
from warpline.capture.trial.outermost import OutermostCalls  # noqa: E402


class Outer(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(2, 2)

    def forward(self, x: object) -> object:
        return self.inner(x)


@pytest.fixture(autouse=True)
def _calls_restored() -> Iterator[None]:
    original = torch.nn.Module.__call__
    yield
    torch.nn.Module.__call__ = original
    if "__call__" in vars(Outer):
        del Outer.__call__


def heard_calls() -> tuple[OutermostCalls, list[str]]:
    heard: list[str] = []

    def handle(module: object, who: int, call: object, arguments: object, named: object) -> object:
        heard.append(f"{type(module).__name__} {who}")
        return call(module, arguments, named)  # type: ignore[operator]

    return OutermostCalls(torch, lambda module, who: None, handle), heard


@pytest.mark.parametrize(("hears", "expected"), [(True, 2), (False, 1)])
def test_in_windows_a_call_is_heard_only_if_it_serves(hears: bool, expected: int) -> None:
    calls, heard = heard_calls()
    model = Outer()
    model(torch.zeros(1, 2))
    calls.stop_searching(hears)
    model(torch.zeros(1, 2))
    assert heard == ["Outer 0"] * expected
    assert ("__call__" in vars(Outer)) == hears


def test_what_torch_calls_in_backward_is_no_call_of_the_program() -> None:
    _, heard = heard_calls()
    layer = torch.nn.Linear(2, 2)  # outside of any module: the checkpoint calls it again in backward()

    def first(x: object) -> object:
        return layer(x)

    torch.utils.checkpoint.checkpoint(first, torch.ones(1, 2, requires_grad=True), use_reentrant=False).sum().backward()
    assert heard == ["Linear 0"]


def test_a_call_within_a_transform_is_not_heard() -> None:
    _, heard = heard_calls()
    torch.func.vmap(torch.nn.Linear(2, 2))(torch.zeros(3, 2))
    assert heard == []


def test_changes_that_act_at_calls_say_so() -> None:
    acting = {name for name, change in CHANGES.items() if change(torch).acts_at_calls}
    assert acting == {"bf16", "channels_last", "torch_compile_graphs", "cuda_graph"}
