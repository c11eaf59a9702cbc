"""What the agent shows of the errors of a program that `warpline run --stop` ends."""

from __future__ import annotations

import sys
from multiprocessing.resource_sharer import _ResourceSharer
from types import SimpleNamespace

import pytest

from warpline.capture.agent import Agent

ENDED = "worker"


def shown(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> list[type[BaseException]]:
    """What is shown of an error in the thread by which a worker of a DataLoader hands a tensor over."""
    kinds: list[type[BaseException]] = []
    agent = object.__new__(Agent)
    agent.session = SimpleNamespace(record=SimpleNamespace(state=ENDED))  # type: ignore[assignment]
    agent._hook = lambda kind, *_: kinds.append(kind)
    monkeypatch.setattr(sys, "excepthook", agent._on_exception)
    sharer = _ResourceSharer()  # type: ignore[no-untyped-call]

    def send(*_: object) -> None:
        raise error

    with _ResourceSharer.get_connection(sharer.register(send, lambda: None)):  # type: ignore[attr-defined]
        pass
    sharer.stop(5)
    return kinds


@pytest.mark.parametrize("error", [BrokenPipeError(), ConnectionResetError(), EOFError()])
def test_a_worker_that_outlives_the_program_shows_no_traceback(
    error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shown(error, monkeypatch) == []


def test_other_errors_of_a_worker_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(ValueError(), monkeypatch) == [ValueError]


def test_a_broken_pipe_of_the_program_itself_is_shown() -> None:
    kinds: list[type[BaseException]] = []
    agent = object.__new__(Agent)
    agent.session = SimpleNamespace(record=SimpleNamespace(state=ENDED))  # type: ignore[assignment]
    agent._hook = lambda kind, *_: kinds.append(kind)
    try:
        raise BrokenPipeError
    except BrokenPipeError as error:
        agent._on_exception(BrokenPipeError, error, error.__traceback__)
    assert kinds == [BrokenPipeError]
