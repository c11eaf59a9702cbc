"""Ranks without a GPU, joined by gloo's collectives: who is late, and when the files do not show it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from kineto_files import annotation, op

from warpline.cli.main import run
from warpline.ranks.on_cpu import join_on_cpu

MS = 1_000
GLOO_THREAD = 7


def write_rank(folder: Path, rank: int, times_ms: list[float], groups: int = 1) -> None:
    """Steps of 100 ms with an all-reduce of so long at the end of each; before it the rank computes."""
    folder.mkdir(exist_ok=True)
    events: list[dict[str, Any]] = []
    for number, time in enumerate(times_ms):
        begin = number * 100 * MS
        events += [annotation(f"ProfilerStep#{number}", begin, 100 * MS)]
        events += [op("aten::mm", begin + MS, (98 - time) * MS)]
        events += [annotation("gloo:all_reduce", begin + (99 - time) * MS, time * MS) | {"tid": GLOO_THREAD}]
    each = [{"pg_name": str(one), "ranks": [0, 1]} for one in range(groups)]
    world = {"backend": "gloo", "rank": rank, "world_size": 2, "pg_config": each}
    (folder / f"rank{rank}.json").write_text(json.dumps({"distributedInfo": world, "traceEvents": events}))


def test_the_rank_with_the_shorter_collectives_is_late(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Rank 0 is in three all-reduces for 60 ms each, rank 1 for 10 ms: rank 0 waits 3 × 50 ms for it."""
    folder = tmp_path / "job"
    write_rank(folder, 0, [60, 60, 60])
    write_rank(folder, 1, [10, 10, 10])
    found = join_on_cpu(folder, cache=False)
    assert found is not None
    assert (found.late_rank, found.world_size, found.health) == (1, 2, ())
    assert [one.wait_ns for one in found.per_rank] == [150_000_000, 0]
    assert run([str(folder), "--no-cache"]) == 0
    shown = capsys.readouterr().out
    assert "job · no GPU activity · 2 of 2 ranks" in shown
    assert "Rank 1 is waited for: it arrives last at 3 of 3 collectives" in shown
    assert "--rank 1" in shown
    assert run([str(folder), "--rank", "1", "--no-cache"]) == 0
    assert "Compute-bound on the CPU" in capsys.readouterr().out


def test_ranks_with_other_numbers_of_collectives_are_not_joined(tmp_path: Path) -> None:
    write_rank(tmp_path / "job", 0, [60, 60, 60])
    write_rank(tmp_path / "job", 1, [10, 10])
    assert join_on_cpu(tmp_path / "job", cache=False) is None


def test_two_process_groups_are_not_joined(tmp_path: Path) -> None:
    """Which group a range of gloo belongs to is not recorded."""
    for rank in (0, 1):
        write_rank(tmp_path / "job", rank, [60, 60], groups=2)
    assert join_on_cpu(tmp_path / "job", cache=False) is None
