"""Replay of real profiles: the unchanged graph gives back the measured step."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from paths import DATA, EVERY_PROFILE, SHARED, sampled

from warpline.errors import WarplineError
from warpline.replay import replay
from warpline.trace.open import open_trace

OURS = sorted([*DATA.rglob("*.json.gz"), *DATA.rglob("*.sqlite.gz")])


@pytest.mark.parametrize("file", OURS, ids=lambda file: file.name)
def test_the_replayed_step_is_the_measured_one(file: Path) -> None:
    trace = open_trace(file)
    if not len(trace.gpu) or not len(trace.steps):
        pytest.skip("no steps")
    result = replay(trace)
    assert result.error_pct < 4.0
    assert result.graph.dropped_edges <= 2


@pytest.mark.shared
def test_all_shared_profiles_with_steps_replay_within_four_percent() -> None:
    errors = {}
    # The hostile files are made to break readers: no program ran as they say.
    recorded = [file for folder in ("h200", "public") for file in (SHARED / folder).rglob("*.gz")]
    profiles = sorted(file for file in recorded if file.name.endswith((".json.gz", ".sqlite.gz")))
    for file in sampled(profiles, 3):
        try:
            trace = open_trace(file)
        except WarplineError:
            continue
        if len(trace.gpu) and len(trace.steps):
            errors[file.name] = replay(trace).error_pct
    assert len(errors) > (15 if EVERY_PROFILE else 5)
    assert np.median(list(errors.values())) < 1.0
    assert max(errors.values()) < 4.0
