"""What the sweep over batch sizes says, for times worked out on paper."""

from __future__ import annotations

import pytest

from warpline.lab.batch_size import _seen
from warpline.lab.model import LabColumn, LabTable


@pytest.mark.parametrize(
    ("times_us", "sentence"),
    [
        (
            (100, 101, 102, 400),
            "One token takes 100 µs, 16 tokens 102 µs, 64 tokens 400 µs: up to about 16 tokens, more",
        ),
        ((100, 300, 101, 400), "One token takes 100 µs, 64 tokens 400 µs: each token costs, from the second on."),
    ],
)
def test_tokens_are_free_up_to_the_first_slower_step(times_us: tuple[int, ...], sentence: str) -> None:
    columns = (LabColumn("tokens", "tokens", "count"), LabColumn("time_ns", "step", "ns"))
    rows = tuple((tokens, 1e3 * time) for tokens, time in zip((1, 4, 16, 64), times_us, strict=True))
    assert _seen(LabTable("sweep", "Sweep", columns, rows)).startswith(sentence)
