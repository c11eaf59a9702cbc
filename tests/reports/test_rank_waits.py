"""The file of one rank: waiting for other ranks is not called communication."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from warpline.reports.device_time import rank_waits


def said(cause: str | None, waited_ns: float, *comm_ns: int) -> list[str]:
    """What is said of a trace whose devices communicate for so long, of 100 ms each."""
    judgement: Any = SimpleNamespace(
        verdict=SimpleNamespace(cause=cause),
        state=SimpleNamespace(rank_wait_ns=waited_ns),
        evidence=SimpleNamespace(step_ns=100e6),
    )
    devices = [SimpleNamespace(comm_ns=ns, window_ns=100_000_000) for ns in comm_ns]
    found: Any = SimpleNamespace(judgement=judgement if cause else None, shown=SimpleNamespace(devices=devices))
    return [text.text for text in rank_waits(found)]


@pytest.mark.parametrize(
    ("cause", "waited_ns", "is_said"), [("dispatch", 40e6, True), ("dispatch", 1e6, False), ("comm", 40e6, False)]
)
def test_waiting_for_other_ranks_is_said_where_the_verdict_is_of_something_else(
    cause: str, waited_ns: float, is_said: bool
) -> None:
    texts = said(cause, waited_ns)
    assert [text.startswith("Communication includes about 40.0 ms a step of waiting") for text in texts] == [
        True
    ] * is_said


@pytest.mark.parametrize("cause", ["dispatch", None])
@pytest.mark.parametrize(
    ("comm_ns", "is_said"),
    [((20_000_000,), True), ((100_000,), False), ((0,), False), ((20_000_000, 20_000_000), False)],
)
def test_the_account_of_a_single_rank_says_that_its_communication_may_be_waiting(
    cause: str | None, comm_ns: tuple[int, ...], is_said: bool
) -> None:
    texts = said(cause, 0.0, *comm_ns)
    assert [text.startswith("Communication includes any waiting for other ranks") for text in texts] == [True] * is_said
