"""Facts of a Kineto file's head."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from warpline.sources.kineto import read_kineto


@pytest.mark.parametrize(("base", "epoch"), [(1_700_000_000_000_000_000, "1700000000000000000"), (10**21, "0")])
def test_a_base_that_no_clock_shows_is_not_used(tmp_path: Path, base: int, epoch: str) -> None:
    kernel = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 0, "dur": 5, "args": {"stream": 7}}
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"baseTimeNanoseconds": base, "traceEvents": [kernel]}))
    assert read_kineto(path).meta["epoch_ns"] == epoch
