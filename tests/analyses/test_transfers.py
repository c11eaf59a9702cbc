"""Copies by their direction: bytes and bandwidth of those whose size is known."""

from __future__ import annotations

from pathlib import Path

import pytest
from kineto_files import copy, kernel, write

from warpline.analyses.transfers import copies
from warpline.cli.main import run
from warpline.trace.open import open_trace


def test_sizes_that_are_not_recorded_are_null_not_zero(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    known, unknown = "Memcpy HtoD (Pinned -> Device)", "Memcpy DtoH (Device -> Pageable)"
    events = [
        copy(known, 0, 10, 1, 4000),
        kernel(known, 20, 30, 2, category="gpu_memcpy"),
        kernel(unknown, 60, 5, 3, category="gpu_memcpy"),
    ]
    trace = write(tmp_path, events)
    rows = {row["name"]: row for row in copies(open_trace(trace)).to_dicts()}
    sized, unsized = rows[known], rows[unknown]
    assert (sized["count"], sized["bytes"], sized["largest_bytes"], sized["bytes_per_second"]) == (2, 4000, 4000, 4e8)
    assert (unsized["bytes"], unsized["largest_bytes"], unsized["bytes_per_second"]) == (None, None, None)
    assert run(["diagnose", str(trace), "-v"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "DtoH" in line]
    assert line.split()[:6] == ["5.00", "µs", "1", "–", "–", "–"]
