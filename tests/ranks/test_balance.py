"""What is uneven in a job: told where there is something to say, and only there."""

from __future__ import annotations

from pathlib import Path

import pytest
from kineto_files import Event, annotation, call, kernel
from rank_files import job, write_rank

from warpline.ranks.balance import Balance
from warpline.ranks.job import open_job

SEND = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"


def balance(folder: Path) -> Balance:
    return open_job(folder, cache=False).balance


def test_an_even_job_says_nothing(tmp_path: Path) -> None:
    job(tmp_path)
    found = balance(tmp_path)
    assert found.sentences == ()
    assert found.to_dict() == {"load": None, "stages": (), "experts": None, "node": None, "sentences": []}


def test_uneven_compute_is_said_with_the_rank_that_is_the_busiest(tmp_path: Path) -> None:
    job(tmp_path, (400.0, 400.0, 400.0, 800.0))
    found = balance(tmp_path)
    assert found.load is not None
    assert found.load.lost_ns == pytest.approx(300_000, abs=10)
    assert found.load.share == pytest.approx(300 / 800, abs=1e-3)
    assert found.load.busiest == {3: 4}
    assert found.sentences == (
        "Load imbalance: in the mean step the busiest rank computes 300 µs longer than the mean of all (37.5 % of its "
        "compute); it is rank 3 at 4 of 4 steps.",
    )


def test_messages_of_experts_that_differ_are_said(tmp_path: Path) -> None:
    job(tmp_path, collective="all_to_allv", elements={0: 100, 1: 100, 2: 300, 3: 100})
    found = balance(tmp_path)
    assert found.experts is not None
    assert (found.experts.collectives, found.experts.ratio, found.experts.most) == (4, 2.0, {2: 4})
    assert found.sentences[0].startswith("Expert imbalance: at 4 all-to-alls the largest message is 2.00× the mean")


@pytest.mark.parametrize(
    ("name", "node"), [("rank{rank}_trace.json", "ranks 8–15"), ("node-{rank:02d}_7.1.pt.trace.json", None)]
)
def test_a_slow_node_is_named(tmp_path: Path, name: str, node: str | None) -> None:
    """By blocks of eight ranks where the files do not name hosts. Here each file has a host of its own."""
    job(tmp_path, (400.0,) * 16, late=dict.fromkeys(range(8, 16), 200.0), name=name)
    found = open_job(tmp_path, cache=False)
    assert found.straggler.ranks == tuple(range(8, 16))
    assert found.balance.node == node


def test_a_slow_node_is_named_by_its_host(tmp_path: Path) -> None:
    files = job(tmp_path, (400.0,) * 6, late=dict.fromkeys((4, 5), 200.0))
    for rank, file in enumerate(files):
        file.rename(tmp_path / f"node{rank // 2}_{4000 + rank}.1763.pt.trace.json")
    assert balance(tmp_path).sentences[-1] == "A slow node: the ranks that the job waits for are all those of node2."


def stage(rank: int, step: int) -> list[Event]:
    """Of two stages the first computes 300 µs and sends for 50 µs; the second waits for it and computes 200 µs."""
    begin, number = 1000.0 * step, 10 * step
    args = {"Collective name": "send" if rank == 0 else "recv", "Process Group Ranks": "[0, 1]", "Group size": 2}
    args |= {"Process Group Name": "0", "In msg nelems": 1024, "Out msg nelems": 1024, "dtype": "Float"}
    args |= {"Dst Rank": 1} if rank == 0 else {"Src Rank": 0}
    compute = (begin + 25.0, 300.0) if rank == 0 else (begin + 375.0, 200.0)
    transfer = (begin + 325.0, 50.0) if rank == 0 else (begin + 25.0, 350.0)
    first, second = ("gemm", SEND) if rank == 0 else (SEND, "gemm")
    spans = {"gemm": compute, SEND: transfer}
    return [
        annotation(f"ProfilerStep#{step}", begin, 990.0),
        call("cudaLaunchKernel", begin + 20.0, 4.0, number + 1),
        call("cudaLaunchKernel", begin + 30.0, 4.0, number + 2),
        kernel(
            first, *spans[first], number + 1, stream=7 if first == "gemm" else 20, **(args if first == SEND else {})
        ),
        kernel(
            second, *spans[second], number + 2, stream=7 if second == "gemm" else 20, **(args if second == SEND else {})
        ),
        call("cudaDeviceSynchronize", begin + 40.0, 600.0, number + 3),
    ]


def test_bubbles_of_a_pipeline_are_said_by_stage(tmp_path: Path) -> None:
    for rank in range(2):
        events = [event for step in range(4) for event in stage(rank, step)]
        write_rank(tmp_path / f"rank{rank}.json", events, rank, 2)
    found = balance(tmp_path)
    assert [one.ranks for one in found.stages] == [(0,), (1,)]
    assert [one.compute_ns for one in found.stages] == [300_000, 200_000]
    assert [one.bubble_ns for one in found.stages] == pytest.approx([0, 300_000], abs=10)
    assert found.load is None
    assert found.sentences[0].startswith("Pipeline bubbles: its 2 stages wait 0.0 % to ")
    assert "Stage 0 (rank 0) computes longest, 300 µs." in found.sentences[0]


def test_each_rank_has_its_own_line(tmp_path: Path) -> None:
    job(tmp_path, late={2: 200.0})
    found = open_job(tmp_path, cache=False)
    lines = {one.rank: one for one in found.per_rank}
    assert lines[0].alone_ns == pytest.approx(535_000, rel=1e-3)
    assert lines[2].alone_ns == pytest.approx(735_000, rel=1e-3)
    assert lines[0].diagnosis == "kernels take 400 µs, most in first_kernel (200 µs)"
