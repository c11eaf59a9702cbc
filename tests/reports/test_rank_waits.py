"""The file of one rank: waiting for other ranks is not called communication."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from warpline.reports import diagnosis


@pytest.mark.parametrize(
    ("cause", "waited_ns", "is_said"), [("dispatch", 40e6, True), ("dispatch", 1e6, False), ("comm", 40e6, False)]
)
def test_waiting_for_other_ranks_is_said_where_the_verdict_is_of_something_else(
    cause: str, waited_ns: float, is_said: bool
) -> None:
    judgement: Any = SimpleNamespace(
        verdict=SimpleNamespace(cause=cause),
        state=SimpleNamespace(rank_wait_ns=waited_ns),
        evidence=SimpleNamespace(step_ns=100e6),
    )
    found: Any = SimpleNamespace(judgement=judgement)
    said = [text.text for text in diagnosis._rank_waits(found)]
    assert [text.startswith("Collectives include about 40.0 ms a step of waiting") for text in said] == [True] * is_said
