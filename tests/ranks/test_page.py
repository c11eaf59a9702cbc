"""The page of a job: its numbers worked out on paper, and how the command writes it."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

import pytest
from rank_files import TRANSFER_US, job

from warpline.cli.main import run
from warpline.ranks.account import step_times
from warpline.ranks.job import open_job
from warpline.reports import job_page
from warpline.reports.page.job_timeline import WAITING, job_timeline

EARLY_RANK, LATE_RANK = 0, 2
LATE_US = 200.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    job(tmp_path / "ranks", late={LATE_RANK: LATE_US})
    return tmp_path / "ranks"


def test_each_step_of_a_rank_sums_from_its_parts(folder: Path) -> None:
    found = open_job(folder, cache=False)
    early, late = (step_times(found.timelines[rank], found.waits) for rank in (EARLY_RANK, LATE_RANK))
    assert [one.step for one in early] == [0, 1, 2, 3]
    for one in early[:-1]:  # between two steps the GPU is idle: 10 µs, 20 µs to the launch and 5 µs to the start
        assert one.compute_ns == 400_000
        assert one.wait_ns == pytest.approx(LATE_US * 1000, abs=2)
        assert one.transfer_ns == pytest.approx(TRANSFER_US * 1000, abs=2)
        assert one.idle_ns == pytest.approx(35_000, abs=2)
        assert one.length_ns == one.compute_ns + one.wait_ns + one.transfer_ns + one.idle_ns
    assert early[-1].idle_ns == pytest.approx(0, abs=2)
    assert late[0].wait_ns == pytest.approx(0, abs=2)
    assert late[0].compute_ns == 600_000


def test_the_page_has_the_verdict_the_ranks_the_heat_map_and_the_longest_waits(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = folder.parent / "job.html"
    assert run(["report", str(folder), "-o", str(page), "--no-cache"]) == 0
    assert capsys.readouterr().out.endswith("4 ranks; open it in a browser\n")
    text = page.read_text()
    assert "The job waits for rank 2" in text
    for section in ("verdict", "ranks", "groups", "steps", "collectives", "next"):
        assert f'<section id="{section}"' in text
    assert '<section id="timeline"' in text
    assert re.search(r"<td>all_reduce</td>.*?<td[^>]*>2</td><td[^>]*><svg.*?</svg> 200 µs</td>", text)
    drawn = re.search(r"svg\+xml;base64,([^\"]+)", text)
    assert drawn
    picture = base64.b64decode(drawn[1]).decode()
    assert picture.count("<rect") == 1 + 4 * 4 * 4  # the paper; parts, ranks and steps
    assert ">rank 3</text>" in picture
    assert ">step 3</text>" in picture


def test_the_timeline_has_the_ranks_on_the_common_clock_with_waiting_and_transfer_apart(folder: Path) -> None:
    found = open_job(folder, cache=False)
    timeline, steps = job_timeline(found)
    head = timeline.head
    assert head.threads == ["rank 0", "rank 1", "rank 2", "rank 3"]
    assert steps == (3, 4, 5, 6)
    assert [step.name for step in head.steps] == ["step 3", "step 4", "step 5", "step 6"]
    rows = {(track.thread, track.label): sum(track.lanes) for track in head.tracks}
    assert {rows[rank, "GPU"] for rank in range(4)} == {8}
    assert rows[EARLY_RANK, "collectives"] == 8  # waiting, then transfer, in each of four steps
    assert rows[LATE_RANK, "collectives"] == 4
    assert WAITING in [name.text for name in head.names]


def test_a_large_job_shows_the_ranks_that_matter_on_the_timeline(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warpline.reports.page.job_timeline.MOST_RANKS", 2)
    monkeypatch.setattr("warpline.reports.page.job_timeline.MOST_ROWS", 12)
    timeline, steps = job_timeline(open_job(folder, cache=False))
    assert f"rank {LATE_RANK}" in timeline.head.threads
    assert len(timeline.head.threads) == 2
    assert steps == (4, 5)  # from the first late step on


def test_a_large_job_draws_the_ranks_that_hold_others_up(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_page, "MOST_RANKS", 1)
    monkeypatch.setattr(job_page, "MOST_STEPS", 2)
    picture = job_page.heat_map(open_job(folder, cache=False))
    assert re.findall(r">rank (\d)</text>", picture) == [str(LATE_RANK)]
    assert "Of 4 steps, the first 2 are drawn." in picture


def test_the_json_says_what_was_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = folder.parent / "job.html"
    assert run(["report", str(folder), "-o", str(page), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer == {"schema": "warpline.page/1", "file": str(page), "bytes": page.stat().st_size, "ranks": 4}


def test_options_of_one_trace_are_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report", str(folder), "-o", str(folder / "job.html"), "--gpu-hour", "2"]) == 2
    assert "options-of-job" in capsys.readouterr().err


def test_other_verbs_name_the_command_for_the_whole_job(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ops", str(folder)]) == 1
    assert "name one file; the whole job: warpline diagnose " in capsys.readouterr().err
