"""Clocks of ranks: drift and steps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rank_files import job

from warpline.ranks.job import open_job


def rewritten(file: Path, clock: float, jump_us: float = 0.0) -> None:
    """The same file by a clock that runs faster by this factor, and is set in the middle."""
    document = json.loads(file.read_text())
    events = document["traceEvents"]
    middle = max(event["ts"] for event in events) / 2
    for event in events:
        start, end = event["ts"], event["ts"] + event["dur"]
        event["ts"] = start * clock + (jump_us if start > middle else 0.0)
        event["dur"] = end * clock + (jump_us if end > middle else 0.0) - event["ts"]
    file.write_text(json.dumps(document))


def test_a_clock_that_drifts_is_found(tmp_path: Path) -> None:
    files = job(tmp_path, (40_000.0,) * 4, steps=20)
    rewritten(files[1], 1 + 40e-6)
    found = open_job(tmp_path, cache=False)
    assert found.clocks[1].drift_ppm == pytest.approx(40, abs=4)


def test_a_clock_that_is_set_during_the_recording_is_corrected(tmp_path: Path) -> None:
    files = job(tmp_path, steps=20)
    rewritten(files[2], 1.0, jump_us=3_000.0)
    found = open_job(tmp_path, cache=False)
    assert [entry.code for entry in found.health] == ["stepped-clock"]
    ((_, size_ns),) = found.clocks[2].jumps
    assert size_ns == pytest.approx(3_000_000, abs=20_000)
    assert found.straggler.ranks == ()
