"""One nsys recording with several processes or devices is a job."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from nsys_files import GLOBAL_PID, Export

from warpline.cli.main import run
from warpline.ranks.job import open_job
from warpline.trace.open import open_trace

STEPS = 4
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
COMPUTE_NS, TRANSFER_NS, LATE_NS = 400_000, 100_000, 200_000


def recording(path: Path, *, one_process: bool = False, communicates: bool = True) -> Path:
    """Two ranks, each with a kernel of 400 µs and an all-reduce of 100 µs a step; rank 1 computes 200 µs longer."""
    export = Export()
    for rank in range(2):
        pid = GLOBAL_PID + (0 if one_process else rank << 24)
        thread = {"globalTid": pid | (4321 + rank)}
        for step in range(STEPS):
            begin = 1_000_000 + step * 800_000
            number = 100 * step + 10 * rank
            arrival = begin + 25_000 + COMPUTE_NS + rank * LATE_NS
            end = begin + 25_000 + COMPUTE_NS + LATE_NS + TRANSFER_NS
            export.range(begin, begin + 790_000, f"step {step}", **thread)
            place = {"deviceId": rank, "globalPid": pid}
            export.call(begin + 20_000, begin + 24_000, "cudaLaunchKernel", number + 1, **thread)
            export.kernel(begin + 25_000, arrival, "gemm", number + 1, **place)
            if communicates:
                export.call(begin + 30_000, begin + 34_000, "cudaLaunchKernel", number + 2, **thread)
                export.kernel(arrival, end, NCCL, number + 2, streamId=20, **place)
            export.call(begin + 40_000, end + 2_000, "cudaDeviceSynchronize", number + 3, **thread)
    return export.write(path)


@pytest.mark.parametrize("one_process", [False, True], ids=["two processes", "two devices of one process"])
def test_ranks_are_told_apart_and_the_late_one_is_named(tmp_path: Path, one_process: bool) -> None:
    found = open_job(recording(tmp_path / "job.sqlite", one_process=one_process), cache=False)
    assert found.ranks == (0, 1)
    assert found.straggler.ranks == (1,)
    waits = {one.rank: one.comm_wait_ns for one in found.per_rank}
    assert waits[0] == pytest.approx(LATE_NS, abs=20_000)
    assert waits[1] == pytest.approx(0, abs=20_000)


def test_the_command_answers_for_the_job_or_one_rank(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = recording(tmp_path / "job.sqlite")
    assert run([str(file), "--json", "--no-cache"]) == 0
    assert json.loads(capsys.readouterr().out)["schema"] == "warpline.job/1"
    assert run([str(file), "--rank", "1", "--json", "--no-cache"]) == 0
    alone = json.loads(capsys.readouterr().out)
    assert [one["device"] for one in alone["devices"]] == [1]
    assert run([str(file), "--no-cache"]) == 0
    assert "job.sqlite --rank 1" in capsys.readouterr().out


def test_processes_that_do_not_communicate_are_no_job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = recording(tmp_path / "both.sqlite", communicates=False)
    assert len(open_trace(file, cache=False).gpu) == 2 * STEPS
    assert run([str(file), "--json", "--no-cache"]) == 0
    assert json.loads(capsys.readouterr().out)["schema"] == "warpline.diagnosis/1"
