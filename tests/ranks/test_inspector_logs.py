"""Logs of NCCL Inspector joined: who is late, the split of every rank's time, and damage."""

from __future__ import annotations

import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from inspector_files import line, small, write_log

from warpline.cli.main import run
from warpline.errors import CannotAnswer, UnreadableFile
from warpline.ranks.inspector_logs import InspectedJob, inspect, inspector_logs
from warpline.sources.detect import detect
from warpline.sources.kinds import NCCL_INSPECTOR
from warpline.sources.nccl_inspector import read_inspector_log
from warpline.sources.stdin import as_typed
from warpline.trace.open import open_trace

US = 1_000


def joined(folder: Path) -> InspectedJob:
    return inspect(folder.name, inspector_logs(folder))


def codes(job: InspectedJob) -> set[str]:
    return {entry.code for entry in job.health}


def test_the_rank_with_the_shortest_time_is_the_last(tmp_path: Path) -> None:
    """Longest times: 1,000 + 400 + 100 = 1,500 µs. Rank 2 comes 700 and 200 µs after the next to last: 900 µs."""
    job = joined(small(tmp_path / "job"))
    late = job.per_rank[2]
    assert (job.late_rank, late.times_last, late.delay_ns) == (2, 2, 900 * US)
    assert job.sentence == (
        "Rank 2 is waited for: it arrives last at 2 of 3 collectives, and without that these would take 600 µs instead "
        "of 1.50 ms."
    )
    assert job.health == ()


def test_every_nanosecond_of_a_rank_is_transfer_or_waiting(tmp_path: Path) -> None:
    """Transfer is 200 + 100 + 100 µs for all; rank 0 waits for 800 + 300, rank 1 for 700 + 200, rank 2 for nobody."""
    job = joined(small(tmp_path / "job"))
    assert [one.transfer_ns for one in job.per_rank] == [400 * US] * 3
    assert [one.wait_ns for one in job.per_rank] == [1_100 * US, 900 * US, 0]
    assert [one.time_ns for one in job.per_rank] == [1_500 * US, 1_300 * US, 400 * US]
    assert all(one.time_ns == one.transfer_ns + one.wait_ns + one.unmatched_ns for one in job.per_rank)


def test_bus_bandwidth_is_that_of_the_transfer(tmp_path: Path) -> None:
    """Three times 1 MB in 400 µs is 7.5 GB/s; an all-reduce of three ranks sends 4/3 of it."""
    (group,) = joined(small(tmp_path / "job")).groups
    assert (group.collective, group.ranks, group.collectives, group.matched) == ("all_reduce", 3, 3, 3)
    assert (group.transfer_ns, group.wait_ns) == (400 * US, round(2_000 * US / 3))
    assert group.bus_bandwidth == pytest.approx(10e9)


def test_a_gather_counts_the_parts_of_all_ranks(tmp_path: Path) -> None:
    """A part of 65,536 bytes of each of 2 ranks in 100 µs: half of 131,072 bytes leaves each rank."""
    for rank in (0, 1):
        own = line(rank, 1, 100, size=2, coll="ReduceScatter", message_bytes=65_536)
        write_log(tmp_path / f"{rank}.log", [own])
    (group,) = joined(tmp_path).groups
    assert group.bus_bandwidth == pytest.approx(65_536 / 100e-6)


def test_ranks_of_small_communicators_are_named_as_in_the_largest(tmp_path: Path) -> None:
    """Processes 102 and 100 are ranks 0 and 1 of a pair; process 100 is late there."""
    small(tmp_path / "job")
    for rank, process, time in ((0, 102, 500), (1, 100, 100)):
        own = line(rank, 1, time, group="0xpair", size=2, process=process)
        write_log(tmp_path / "job" / f"pair{rank}.log", [own])
    job = joined(tmp_path / "job")
    assert [one.rank for one in job.per_rank] == [0, 1, 2]
    assert job.per_rank[0].delay_ns == 400 * US
    assert job.per_rank[2].wait_ns == 400 * US


def test_ranks_that_come_together_are_not_late(tmp_path: Path) -> None:
    for rank, times in enumerate([(100, 100), (101, 100), (100, 99)]):
        write_log(tmp_path / f"{rank}.log", [line(rank, number, time) for number, time in enumerate(times)])
    job = joined(tmp_path)
    assert job.late_rank is None
    assert job.sentence.startswith("No rank is waited for")


def test_ranks_late_by_turns(tmp_path: Path) -> None:
    """Twelve collectives of 3 ranks; each is last four times, by 9 of 100 µs, so none costs a tenth."""
    for rank in range(3):
        own = [line(rank, number, 88 if number % 3 == rank else 97 if number % 3 == 0 else 100) for number in range(12)]
        write_log(tmp_path / f"{rank}.log", own)
    assert joined(tmp_path).sentence.startswith("Ranks arrive late by turns")


def test_one_log_says_that_lateness_is_unknown(tmp_path: Path) -> None:
    job = inspect("a", [write_log(tmp_path / "a.log", [line(0, 1, 100)])])
    assert job.sentence == "Who is late is unknown: only one rank has a log."
    assert codes(job) == {"missing-logs"}
    assert job.per_rank[0].unmatched_ns == 100 * US


@pytest.mark.parametrize("change", [{"source": "collective_cpu"}, {"coll": "Broadcast"}])
def test_what_does_not_synchronise_or_is_timed_by_the_cpu_is_not_split(change: dict[str, Any], tmp_path: Path) -> None:
    for rank in range(3):
        write_log(tmp_path / f"{rank}.log", [line(rank, 1, 100 + rank, **change)])
    job = joined(tmp_path)
    assert [one.unmatched_ns for one in job.per_rank] == [100 * US, 101 * US, 102 * US]
    assert job.sentence.startswith("Who is late is unknown")


def test_lines_without_a_header_belong_to_the_last_one(tmp_path: Path) -> None:
    first = line(1, 1, 100)
    done = first.pop("coll_perf")
    first["dump_stats"] = {"coll_records": 2, "coll_dropped_total": 7}
    lines = [first, {"coll_perf": done}, {"coll_perf": {**done, "coll_sn": 2}}, {"proxy_trace": {}}]
    log = read_inspector_log(write_log(tmp_path / "a.log", lines))
    assert log.records["rank"].to_list() == [1, 1]
    assert (log.dropped, log.damaged_lines) == (7, 0)


def test_two_runs_in_one_folder_are_said(tmp_path: Path) -> None:
    folder = small(tmp_path / "job")
    write_log(folder / "again.log", [line(0, 1, 50)])
    assert "repeated-collectives" in codes(joined(folder))


def test_a_process_with_several_ranks_of_one_communicator_is_refused(tmp_path: Path) -> None:
    write_log(tmp_path / "a.log", [line(rank, 1, 100, process=7) for rank in range(3)])
    with pytest.raises(CannotAnswer, match="several GPUs"):
        joined(tmp_path)


@pytest.mark.parametrize("packed", [bytes, gzip.compress, lzma.compress])
def test_packed_logs(packed: Callable[[bytes], bytes], tmp_path: Path) -> None:
    path = write_log(tmp_path / "a.log", [line(0, 1, 100)])
    path.write_bytes(packed(path.read_bytes()))
    assert detect(path) is NCCL_INSPECTOR
    assert len(read_inspector_log(path).records) == 1


def test_a_log_that_is_cut_short_keeps_its_whole_lines(tmp_path: Path) -> None:
    folder = small(tmp_path / "job")
    file = folder / "node-pid100.log"
    file.write_bytes(file.read_bytes()[:-40])
    job = joined(folder)
    assert [one.collectives for one in job.per_rank] == [2, 3, 3]
    assert "damaged-lines" in codes(job)


def test_a_line_that_is_no_text_is_a_damaged_line(tmp_path: Path) -> None:
    path = write_log(tmp_path / "a.log", [line(0, 1, 100), line(0, 2, 100)])
    path.write_bytes(path.read_bytes().replace(b"AllReduce", b"AllReduc\xe1", 1))
    log = read_inspector_log(path)
    assert (len(log.records), log.damaged_lines) == (1, 1)


@pytest.mark.parametrize(
    ("key", "value"),
    [("coll_exec_time_us", "long"), ("coll_exec_time_us", -1), ("coll_sn", 1 << 60), ("coll", None)],
)
def test_values_of_wrong_types_are_damaged_lines(
    key: str, value: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = line(0, 1, 100)
    wrong["coll_perf"][key] = value
    path = write_log(tmp_path / "a.log", [wrong])
    with pytest.raises(UnreadableFile, match="1 lines cannot be read"):
        read_inspector_log(path)
    assert run(["diagnose", str(path)]) == 1
    error = capsys.readouterr().err
    assert error.startswith("warpline: empty-trace: ")
    assert error.count("\n") == 1


def test_a_folder_of_logs_is_answered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = small(tmp_path / "nccl-inspector-17")
    (folder / "train.log").write_text("epoch 1\n")
    (folder / "empty.log").write_text("")
    assert run([str(folder)]) == 0
    shown = capsys.readouterr().out
    assert "nccl-inspector-17 · NCCL Inspector · 3 of 3 ranks" in shown
    assert "Rank 2 is waited for" in shown
    assert run(["diagnose", str(folder), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["schema"], answer["late_rank"], answer["world_size"]) == ("warpline.collectives/1", 2, 3)


def test_other_verbs_say_what_reads_a_log(tmp_path: Path) -> None:
    log = write_log(tmp_path / "a.log", [line(0, 1, 100)])
    with pytest.raises(UnreadableFile, match="no timeline") as error:
        open_trace(log, cache=False)
    assert error.value.hint == f"warpline diagnose {as_typed(log)}"


def test_sends_and_receives_are_counted_and_not_split(tmp_path: Path) -> None:
    """Each rank numbers its own sends: the number says nothing about the other end."""
    for rank, kind in ((0, "Send"), (1, "Recv")):
        sent = line(rank, 1, 100, size=2)
        done = sent.pop("coll_perf")
        names = {key: done[key.replace("p2p", "coll")] for key in ("p2p_sn", "p2p_msg_size_bytes", "p2p_exec_time_us")}
        sent["p2p_perf"] = {"p2p": kind, "p2p_peer": 1 - rank, "p2p_timing_source": "kernel_gpu", **names}
        write_log(tmp_path / f"{rank}.log", [sent])
    job = joined(tmp_path)
    assert [one.unmatched_ns for one in job.per_rank] == [100 * US] * 2
    assert [group.matched for group in job.groups] == [0] * len(job.groups)
    assert job.late_rank is None
