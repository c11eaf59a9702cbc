"""Clocks of ranks: drift and steps."""

from __future__ import annotations

from pathlib import Path

import pytest
from rank_files import job, set_clock

from warpline.ranks.job import open_job


def test_a_clock_that_drifts_is_found(tmp_path: Path) -> None:
    files = job(tmp_path, (40_000.0,) * 4, steps=20)
    set_clock(files[1], 1 + 40e-6)
    found = open_job(tmp_path, cache=False)
    assert found.clocks[1].drift_ppm == pytest.approx(40, abs=4)


def test_a_clock_that_is_set_during_the_recording_is_corrected(tmp_path: Path) -> None:
    files = job(tmp_path, steps=20)
    set_clock(files[2], 1.0, jump_us=3_000.0)
    found = open_job(tmp_path, cache=False)
    assert [entry.code for entry in found.health] == ["stepped-clock"]
    ((_, size_ns),) = found.clocks[2].jumps
    assert size_ns == pytest.approx(3_000_000, abs=20_000)
    assert found.straggler.ranks == ()
