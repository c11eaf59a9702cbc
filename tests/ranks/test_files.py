"""Which files of a folder are ranks of one job."""

from __future__ import annotations

from pathlib import Path

import pytest
from rank_files import job, write_rank

from warpline.ranks.files import jobs_of_folder
from warpline.ranks.job import open_job

LAYOUTS = {
    "torchtitan": [f"iteration_20/rank{rank}_trace.json.gz" for rank in range(4)],
    "torchtitan, plain": [f"profile_trace/iteration_20/rank{rank}_trace.json" for rank in range(4)],
    "megatron": [f"torch_profile/rank-{rank}.json.gz" for rank in range(4)],
    "deepspeed": [f"deepspeed_profile/rank_{rank}/trace.json" for rank in range(4)],
    "vllm": [f"host-01_4711-rank-{rank}.1763.pt.trace.json.gz" for rank in range(4)],
    "sglang": [f"1763-TP-{rank % 2}-DP-{rank // 2}.trace.json.gz" for rank in range(4)],
    "sglang, pipeline": [f"1763-TP-{rank % 2}-PP-{rank // 2}.trace.json.gz" for rank in range(4)],
    "sglang, tensor parallel": [f"1763.5-TP-{rank}.trace.json.gz" for rank in range(4)],
    "warpline run": [f"torchrun-2026/trace.rank{rank}.json.gz" for rank in range(4)],
    "hta": [f"vision_transformer/rank-{rank}.1763.pt.trace.json.gz" for rank in range(4)],
    "hta, by worker": [f"trace_worker{rank}.json" for rank in range(4)],
    "a folder a rank": [f"rank_{rank}/trace.json" for rank in range(4)],
}
"""How tools name the files of ranks."""


@pytest.mark.parametrize("names", LAYOUTS.values(), ids=LAYOUTS)
def test_ranks_come_from_names_where_headers_say_nothing(tmp_path: Path, names: list[str]) -> None:
    for name in names:
        write_rank(tmp_path / name, [], None, None)
    (found,) = jobs_of_folder(tmp_path)
    assert {file.path.relative_to(tmp_path).as_posix(): file.rank for file in found.files} == {
        name: rank for rank, name in enumerate(names)
    }


def test_headers_win_over_names(tmp_path: Path) -> None:
    for rank in range(3):
        write_rank(tmp_path / f"node0_{4000 + rank}.1763.pt.trace.json", [], 2 - rank, 3)
    (found,) = jobs_of_folder(tmp_path)
    assert [file.rank for file in found.files] == [2, 1, 0]
    assert {file.world_size for file in found.files} == {3}


def test_the_handler_of_torch_names_hosts_and_the_headers_name_ranks(tmp_path: Path) -> None:
    for rank in range(4):
        write_rank(tmp_path / f"node{rank // 2}_{4000 + rank}.{1763 + rank}.pt.trace.json", [], rank, 4)
    (found,) = jobs_of_folder(tmp_path)
    assert [file.rank for file in found.files] == [0, 1, 2, 3]


def test_several_iterations_are_several_jobs_and_the_newest_is_last(tmp_path: Path) -> None:
    for iteration in (9, 100, 20):
        for rank in range(2):
            write_rank(tmp_path / f"iteration_{iteration}" / f"rank{rank}_trace.json", [], rank, 2)
    assert [found.name for found in jobs_of_folder(tmp_path)] == ["iteration_9", "iteration_20", "iteration_100"]


def test_files_of_no_rank_are_no_job(tmp_path: Path) -> None:
    for name in ("before.json", "after.json"):
        write_rank(tmp_path / name, [], None, None)
    assert jobs_of_folder(tmp_path) == []


def test_several_recordings_of_one_folder_are_told_apart(tmp_path: Path) -> None:
    for time in (1, 2):
        for rank in range(2):
            write_rank(tmp_path / f"rank{rank}.{time}.pt.trace.json", [], rank, 2)
    assert [found.name for found in jobs_of_folder(tmp_path)] == [f"{tmp_path.name}#1", f"{tmp_path.name}#2"]


def test_a_url_is_a_folder_too(tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    job(tmp_path, late={2: 200.0})
    here, there = open_job(tmp_path, cache=False), open_job(tmp_path.as_uri(), cache=False)
    assert there.to_dict() == here.to_dict()
