"""Every row of a table is one bar of one track."""

from __future__ import annotations

import numpy as np
import pytest
from answers import diagnosed
from paths import DATA, DEMO

from warpline.findings.diagnosis import Diagnosis
from warpline.timeline.tracks import device_tracks, sync_tracks, thread_tracks


@pytest.fixture(scope="module", params=[DEMO, DATA / "nsys" / "graph_node.sqlite.gz"], ids=["kineto", "nsys"])
def diagnosis(request: pytest.FixtureRequest) -> Diagnosis:
    return diagnosed(request.param)


@pytest.mark.parametrize("kind", ["gpu", "api", "ops", "python", "osrt"])
def test_every_row_is_one_bar(diagnosis: Diagnosis, kind: str) -> None:
    trace = diagnosis.trace
    tracks = [*device_tracks(trace, diagnosis.gaps), *thread_tracks(trace)]
    rows = np.concatenate([np.zeros(0, np.int64), *(track.rows for track in tracks if track.kind == kind)])
    assert sorted(rows.tolist()) == list(range(len(trace.tables[kind].stored)))


def test_bars_are_sorted_with_their_times(diagnosis: Diagnosis) -> None:
    trace = diagnosis.trace
    for track in (*device_tracks(trace, diagnosis.gaps), *thread_tracks(trace), *sync_tracks(trace)):
        assert (np.diff(track.starts) >= 0).all()
        assert (track.ends >= track.starts).all()
        assert (track.device is None) != (track.thread is None)
        if track.kind == "gpu":
            assert (trace.gpu.start_ns[track.rows] == track.starts).all()
