"""Replay of real profiles: the unchanged graph gives back the measured step."""

from __future__ import annotations

from pathlib import Path

import pytest
from paths import DATA, SHARED

from warpline.errors import WarplineError
from warpline.replay import replay
from warpline.trace.open import open_trace

OURS = sorted([*DATA.rglob("*.json.gz"), *DATA.rglob("*.sqlite.gz")])
RECORDED = sorted(
    file
    for folder in ("h200", "public")  # the hostile files are made to break readers: no program ran as they say
    for file in (SHARED / folder).rglob("*.gz")
    if file.name.endswith((".json.gz", ".sqlite.gz"))
)


@pytest.mark.parametrize("file", OURS, ids=lambda file: file.name)
def test_the_replayed_step_is_the_measured_one(file: Path) -> None:
    trace = open_trace(file)
    if not len(trace.gpu) or not len(trace.all_steps):
        pytest.skip("no steps")
    result = replay(trace)
    assert result.error_pct < 4.0
    assert result.graph.dropped_edges <= 2


@pytest.mark.shared
@pytest.mark.parametrize("file", RECORDED, ids=lambda file: str(file.relative_to(SHARED)))
def test_the_replayed_step_of_a_shared_profile_is_the_measured_one(file: Path) -> None:
    try:
        trace = open_trace(file)
    except WarplineError as error:
        pytest.skip(f"it cannot be read: {error.code}")
    if not len(trace.gpu) or not len(trace.all_steps):
        pytest.skip("no steps")
    assert replay(trace).error_pct < 1.0
