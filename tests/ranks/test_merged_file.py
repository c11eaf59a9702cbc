"""One file with several ranks, as scripts that merge traces write it."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rank_files import job

from warpline.cli.main import run
from warpline.errors import UnreadableFile
from warpline.ranks.files import jobs_of_folder
from warpline.ranks.job import Job, open_job
from warpline.ranks.merged_file import may_be_merged, take_apart
from warpline.sources.detect import detect

LATE_RANK = 2
Event = dict[str, Any]


def with_rank_argument(event: Event, rank: int) -> None:
    """As TraceLens merges: `rank`, and ids made unique with the own ones beside."""
    arguments = event["args"]
    arguments |= {"rank": rank, "pid_raw": event["pid"]}
    if "correlation" in arguments:
        arguments |= {
            "correlation_raw": arguments["correlation"],
            "correlation": arguments["correlation"] + 1000 * rank,
        }
    if isinstance(event["pid"], int):
        event["pid"] += 100_000 * rank


def with_label(event: Event, rank: int) -> None:
    """As SGLang merges: the place in each dimension before the process id."""
    event["pid"] = f"[TP{rank % 2:02d}-DP{rank // 2:02d}] {event['pid']}"


def with_process_name(event: Event, rank: int) -> None:
    """As scripts for Megatron merge: one process a rank, which is named."""
    event["pid"] = rank + 1


WAYS: dict[str, Callable[[Event, int], None]] = {
    "argument": with_rank_argument,
    "label": with_label,
    "process name": with_process_name,
}


def merge(folder: Path, way: Callable[[Event, int], None], path: Path) -> Path:
    """Write the files of a folder into one."""
    events = []
    for rank, file in enumerate(sorted(folder.glob("*.json"))):
        own = json.loads(file.read_text())["traceEvents"]
        for event in own:
            event["args"].pop("step", None)
            way(event, rank)
        if way is with_process_name:
            own.append({"name": "process_name", "ph": "M", "pid": rank + 1, "tid": 0, "args": {"name": f"Rank {rank}"}})
        events += own
    text = json.dumps({"schemaVersion": 1, "distributedInfo": {"rank": 0, "world_size": 4}, "traceEvents": events})
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@pytest.fixture
def apart(tmp_path: Path) -> Path:
    job(tmp_path / "ranks", late={LATE_RANK: 200.0})
    return tmp_path / "ranks"


def answer(found: Job) -> dict[str, Any]:
    named: dict[str, Any] = found.to_dict()["job"]
    return {key: value for key, value in named.items() if key != "name"}


@pytest.mark.parametrize("suffix", [".json", ".json.gz"])
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_merged_file_gives_the_answer_of_its_ranks(
    apart: Path, way: Callable[[Event, int], None], suffix: str
) -> None:
    merged = merge(apart, way, apart.parent / f"merged{suffix}")
    found = open_job(merged, cache=False)
    assert found.name == merged.name
    assert answer(found) == answer(open_job(apart, cache=False))
    assert found.straggler.ranks == (LATE_RANK,)


def test_the_command_takes_it_apart(apart: Path, capsys: pytest.CaptureFixture[str]) -> None:
    merged = merge(apart, with_label, apart.parent / "merged.json")
    assert run([str(merged), "--no-cache"]) == 0
    assert "The job waits for rank 2" in capsys.readouterr().out
    assert run([str(merged), "--rank", "1", "--no-cache"]) == 0
    assert "rank1.json" in capsys.readouterr().out
    assert run([str(merged), "--rank", "7", "--no-cache"]) == 2
    assert "no-such-rank" in capsys.readouterr().err


def test_beside_its_ranks_it_is_left_out(apart: Path) -> None:
    merge(apart, with_label, apart / "rank9_merged.json")
    (found,) = jobs_of_folder(apart)
    assert [path.name for path in found.merged] == ["rank9_merged.json"]
    opened = open_job(apart, cache=False)
    assert opened.ranks == (0, 1, 2, 3)
    assert [entry.code for entry in opened.health] == ["merged-ranks"]


def test_a_file_whose_events_name_one_rank_is_no_job(apart: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = apart / "rank0_trace.json"
    text = json.loads(file.read_text())
    for event in text["traceEvents"]:
        event["args"]["rank"] = 0
    alone = apart.parent / "alone.json"
    alone.write_text(json.dumps(text))
    assert take_apart(alone, apart.parent) == {}
    assert run([str(alone), "--no-cache", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["schema"] == "warpline.diagnosis/1"


def test_a_damaged_one_is_refused_with_the_reason(apart: Path, capsys: pytest.CaptureFixture[str]) -> None:
    merged = merge(apart, with_label, apart.parent / "merged.json")
    merged.write_bytes(merged.read_bytes()[:-500])
    assert run([str(merged), "--no-cache"]) == 1
    assert "damaged-merge" in capsys.readouterr().err


def test_a_pipe_is_refused_without_a_wait_for_its_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    monkeypatch.setattr(Path, "open", lambda path, *_, **__: pytest.fail(f"{path} was opened"))
    assert not may_be_merged(pipe)
    with pytest.raises(UnreadableFile, match="standard input"):
        detect(pipe)
