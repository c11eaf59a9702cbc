"""Outermost calls heard while the modules stay as they were."""

from __future__ import annotations

import copy
import io
import pickle
import traceback
from collections.abc import Iterator

import pytest

from warpline.capture import module_calls as module_forwards
from warpline.capture.module_calls import ModuleCalls

torch = pytest.importorskip("torch")


class Heard(list[int]):
    """Who was called, in turn."""

    def __call__(self, who: int, holds_gradients: bool, only_acts: bool) -> None:
        self.append(who)


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def forwards(heard: Heard) -> Iterator[ModuleCalls]:
    listening = ModuleCalls(torch, heard)
    yield listening
    listening.remove()


def model() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Sequential(torch.nn.ReLU()))


def test_every_call_of_the_outermost_module_is_heard_and_none_of_those_inside(
    forwards: ModuleCalls, heard: Heard
) -> None:
    outer = model()
    for _ in range(5):
        outer(torch.ones(2, 4))
    assert heard == [id(outer)] * 5


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_module_that_is_heard_can_be_saved_copied_scripted_traced_and_exported(forwards: ModuleCalls) -> None:
    outer = model()
    for _ in range(3):
        outer(torch.ones(2, 4))
    assert not outer._forward_pre_hooks
    pickle.dumps(outer)
    torch.save(outer, io.BytesIO())
    copy.deepcopy(outer)(torch.ones(2, 4))
    torch.jit.script(outer)
    torch.jit.trace(outer, torch.ones(2, 4))
    torch.export.export(outer, (torch.ones(2, 4),))


def test_a_function_that_calls_it_compiles_whole(forwards: ModuleCalls) -> None:
    outer = model()
    for _ in range(3):
        outer(torch.ones(2, 4))
    whole = torch.compile(lambda x: outer(x).sum(), backend="eager", fullgraph=True)
    assert whole(torch.ones(2, 4)) == outer(torch.ones(2, 4)).sum()


def test_a_module_compiled_in_place_is_heard_once_a_call(forwards: ModuleCalls, heard: Heard) -> None:
    outer = model()
    outer.compile(backend="eager")
    for _ in range(4):
        outer(torch.ones(2, 4))
    assert heard == [id(outer)] * 4


def test_an_error_in_it_does_not_speak_of_us(forwards: ModuleCalls) -> None:
    outer = model()
    for _ in range(3):
        outer(torch.ones(2, 4))
    with pytest.raises(RuntimeError) as caught:
        outer(torch.ones(2, 5))
    files = [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert len(files) > 2
    assert module_forwards.__file__ not in files


def test_classes_are_as_they_were_afterwards(forwards: ModuleCalls) -> None:
    outer = model()
    for _ in range(3):
        outer(torch.ones(2, 4))
    assert "__call__" in vars(torch.nn.Sequential)
    forwards.remove()
    assert "__call__" not in vars(torch.nn.Sequential)
