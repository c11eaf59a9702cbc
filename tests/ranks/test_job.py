"""A folder of ranks as one job, with answers worked out on paper."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path

import pytest
from rank_files import TRANSFER_US, job, write_rank
from rank_programs import Operation, Steps, compute, cpu, meet, play, sync

from warpline.cli.main import run
from warpline.errors import CannotAnswer, WarplineError
from warpline.ranks.job import Job, open_job

HEALTHY_STEP_NS = (20 + 5 + 400 + TRANSFER_US + 10) * 1000


def opened(folder: Path, **choice: str) -> Job:
    return open_job(folder, cache=False, **choice)  # type: ignore[arg-type]


def test_the_step_is_that_of_the_last_rank(tmp_path: Path) -> None:
    job(tmp_path)
    found = opened(tmp_path)
    assert found.ranks == (0, 1, 2, 3)
    assert found.world_size == 4
    assert found.step_numbers == (3, 4, 5, 6)
    assert found.step_ns == pytest.approx(HEALTHY_STEP_NS)
    assert found.replayed_step_ns == pytest.approx(HEALTHY_STEP_NS, rel=1e-3)


def test_steps_that_are_long_once_on_all_ranks_are_left_out_and_said(tmp_path: Path) -> None:
    job(tmp_path, steps=8, stalls_us={(rank, step): 50_000.0 for rank in range(4) for step in (0, 1)})
    found = opened(tmp_path)
    assert found.step_ns == pytest.approx(HEALTHY_STEP_NS)
    assert found.step_numbers == (5, 6, 7, 8, 9, 10)
    (note,) = (entry.message for entry in found.health if entry.code == "cold-steps")
    assert note.startswith("the first 2 steps are left out: 101 ms, where later ones take 535 µs each")


def test_long_steps_that_come_again_stay(tmp_path: Path) -> None:
    job(tmp_path, steps=8, stalls_us={(rank, step): 50_000.0 for rank in range(4) for step in (0, 5)})
    assert len(opened(tmp_path).step_numbers) == 8


def test_alike_ranks_have_no_straggler(tmp_path: Path) -> None:
    job(tmp_path)
    found = opened(tmp_path)
    assert found.straggler.ranks == ()
    assert found.straggler.reason == "none"
    assert "No straggler" in found.verdict.sentence
    assert found.verdict.cause == "kernel"


def test_without_a_straggler_the_cause_is_that_of_the_slowest_rank_by_itself(tmp_path: Path) -> None:
    """All ranks begin to launch 500 µs after each step starts, so the GPU waits longer than it computes."""
    job(tmp_path, (300.0,) * 4, pause_us=dict.fromkeys(range(4), 500.0))
    verdict = opened(tmp_path).verdict
    assert verdict.cause == "dispatch"
    assert "would take as long: the GPU waits 535 µs for the CPU to launch" in verdict.sentence


def test_launched_work_that_does_not_start_is_not_waiting_for_launches(tmp_path: Path) -> None:
    """As before, but each launch is made 480 µs earlier."""
    for file in job(tmp_path, (300.0,) * 4, pause_us=dict.fromkeys(range(4), 500.0)):
        document = json.loads(file.read_text())
        for event in document["traceEvents"]:
            if event["name"] == "cudaLaunchKernel":
                event["ts"] -= 480.0
        file.write_text(json.dumps(document))
    found = opened(tmp_path)
    assert found.verdict.cause == "unknown"
    assert "mostly while launched work does not start for no recorded reason" in found.verdict.sentence


def test_a_rank_with_slow_kernels_is_named_with_its_price(tmp_path: Path) -> None:
    job(tmp_path, late={2: 200.0})
    found = opened(tmp_path)
    assert found.straggler.ranks == (2,)
    assert found.straggler.reason == "kernel"
    assert found.straggler.gain.expected == pytest.approx((HEALTHY_STEP_NS + 200_000) / HEALTHY_STEP_NS, rel=1e-3)
    assert found.straggler.new_step_ns.expected == pytest.approx(HEALTHY_STEP_NS, rel=1e-3)
    assert found.straggler.extra_ns == pytest.approx(200_000)


def test_several_pauses_in_a_step_are_pauses_and_longer_launches_everywhere_are_dispatch(tmp_path: Path) -> None:
    """The CPU of rank 1 takes 900 µs longer for 30 launches: in three of them, or 30 µs in each."""

    def program(extra_us: Mapping[int, float]) -> Steps:
        def launches(rank: int, _step: int) -> Sequence[Operation]:
            each = [(cpu(20.0 + (extra_us.get(at, 0.0) if rank == 1 else 0.0)), compute(10.0)) for at in range(30)]
            return [*chain.from_iterable(each), meet("allreduce", range(4), 100.0), sync()]

        return launches

    play(tmp_path / "few", 4, 6, program({5: 300.0, 15: 300.0, 25: 300.0}))
    play(tmp_path / "all", 4, 6, program(dict.fromkeys(range(30), 30.0)))
    found = [open_job(tmp_path / name, cache=False).straggler for name in ("few", "all")]
    assert [one.ranks for one in found] == [(1,), (1,)]
    assert [one.reason for one in found] == ["pause", "dispatch"]
    assert [one.extra_ns for one in found] == pytest.approx([900_000, 900_000], rel=0.01)


def test_a_rank_that_shares_no_collective_is_left_out(tmp_path: Path) -> None:
    """Rank 3 recorded its groups, the others did not: nothing ties it to them, and the rest is answered."""
    recorded = job(tmp_path / "arguments", offsets_us={3: 40_000.0})
    files = job(tmp_path / "plain", arguments=False, late={2: 200.0})
    files[3].write_text(recorded[3].read_text())
    found = opened(tmp_path / "plain")
    assert found.ranks == (0, 1, 2)
    assert "unmatched-ranks" in {entry.code for entry in found.health}
    assert (found.straggler.ranks, found.straggler.reason) == ((2,), "kernel")
    assert max(clock.uncertainty_ns for clock in found.clocks) < 20_000


def test_ranks_without_arguments_have_the_groups_that_others_recorded(tmp_path: Path) -> None:
    """Rank 2 is late; ranks 1 and 3 wait for it, and only ranks 0 and 2 recorded their group."""
    recorded = job(tmp_path / "arguments", late={2: 200.0})
    files = job(tmp_path / "plain", late={2: 200.0}, offsets_us={1: 40_000.0, 3: -7_000.0}, arguments=False)
    for rank in (0, 2):
        files[rank].write_text(recorded[rank].read_text())
    found = opened(tmp_path / "plain")
    assert [group.ranks for group in found.groups] == [(0, 1, 2, 3)]
    assert [one.comm_wait_ns for one in found.per_rank] == pytest.approx([200_000, 200_000, 0, 200_000], abs=50)
    assert (found.straggler.ranks, found.straggler.reason) == ((2,), "kernel")
    (entry,) = [entry for entry in found.health if entry.code == "arguments-of-other-ranks"]
    assert entry.message.startswith("ranks 1 and 3")


def test_of_two_groups_a_rank_without_arguments_has_the_one_that_it_leaves_with(tmp_path: Path) -> None:
    """Ranks (0, 1) and (2, 3) meet in each step, and so do (0, 2) and (1, 3), all on one stream; rank 3 names none."""

    def program(rank: int, step: int) -> Sequence[Operation]:
        row, column = (rank // 2 * 2, rank // 2 * 2 + 1), (rank % 2, rank % 2 + 2)
        work = 400.0 + 60.0 * ((step + rank) % 3)
        return compute(work), meet("allreduce", row, 100.0), compute(work), meet("allreduce", column, 100.0), sync()

    _drop_arguments(play(tmp_path, 4, 6, program)[3])
    found = opened(tmp_path)
    assert sorted(group.ranks for group in found.groups) == [(0, 1), (0, 2), (1, 3), (2, 3)]


def _drop_arguments(file: Path) -> None:
    document = json.loads(file.read_text())
    for event in document["traceEvents"]:
        for key in ("Collective name", "Process Group Ranks", "Src Rank", "Dst Rank"):
            event["args"].pop(key, None)
    file.write_text(json.dumps(document))


def _pipeline(rank: int, _step: int) -> Sequence[Operation]:
    """Forward and backward through three stages of two ranks, then an all-reduce of all."""
    done: list[Operation] = []
    for source, target in ((rank - 2, rank + 2), (rank + 2, rank - 2)):
        done += [meet("recv", (source, rank), 30.0)] if 0 <= source < 6 else []
        done += [compute(400.0), *([meet("send", (rank, target), 30.0)] if 0 <= target < 6 else [])]
    return *done, meet("allreduce", range(6), 100.0), sync()


def test_a_rank_that_sends_to_unknown_ranks_is_left_out_where_others_name_theirs(tmp_path: Path) -> None:
    files = play(tmp_path, 6, 5, _pipeline)
    for rank in (2, 4):
        _drop_arguments(files[rank])
    found = opened(tmp_path)
    assert found.ranks == (0, 1, 3, 5)
    assert "unmatched-ranks" in {entry.code for entry in found.health}
    assert found.straggler.ranks == ()


def test_a_stage_whose_neighbour_has_no_recording_is_not_accused(tmp_path: Path) -> None:
    """A pipeline of two replicas (ranks 0, 2, 4 and 1, 3, 5) in which all stages are alike; without rank 4, nobody
    knows how long rank 2 waits for it."""
    play(tmp_path / "whole", 6, 5, _pipeline)
    play(tmp_path / "part", 6, 5, _pipeline, unrecorded=[4])
    assert opened(tmp_path / "whole").straggler.ranks == ()
    found = opened(tmp_path / "part")
    assert found.straggler.ranks == ()
    assert found.verdict.sentence.startswith("No straggler among the recorded ranks")
    (entry,) = [entry for entry in found.health if entry.code == "missing-ranks"]
    assert "rank 2 cannot be judged" in entry.message


def test_ranks_that_no_collective_ties_together_are_said(tmp_path: Path) -> None:
    """Two replicas of two ranks: each has collectives of its own only."""

    def program(rank: int, _step: int) -> Sequence[Operation]:
        first = rank // 2 * 2
        return compute(400.0), meet("allreduce", (first, first + 1), 100.0), sync()

    play(tmp_path, 4, 4, program)
    (entry,) = [entry for entry in opened(tmp_path).health if entry.code == "separate-clocks"]
    assert entry.message.endswith("ranks 0 and 1; ranks 2 and 3")


def test_the_only_step_of_a_rank_starts_on_its_cpu_as_that_of_the_job_does(tmp_path: Path) -> None:
    job(tmp_path, steps=1, pause_us={1: 300.0})
    found = opened(tmp_path)
    last = {one.rank: one for one in found.per_rank}[1]
    assert last.step_ns == pytest.approx(20_000 + 300_000 + 5_000 + 400_000 + 1000 * TRANSFER_US)
    assert all(one.alone_ns <= one.step_ns for one in found.per_rank)
    assert last.exposed_communication_share == pytest.approx(TRANSFER_US / (400 + TRANSFER_US))


def test_a_rank_whose_cpu_pauses_is_named(tmp_path: Path) -> None:
    job(tmp_path, pause_us={1: 300.0})
    found = opened(tmp_path)
    assert (found.straggler.ranks, found.straggler.reason) == ((1,), "pause")


def test_hosts_that_stall_in_turn_are_all_named_for_the_price(tmp_path: Path) -> None:
    short = dict.fromkeys([(1, 1), (2, 2), (3, 3), (4, 2)], 4_000.0)
    job(tmp_path, (400.0,) * 5, stalls_us={(0, 1): 24_000.0, **short})
    found = opened(tmp_path)
    assert (found.straggler.ranks, found.straggler.reason) == ((0,), "pause")
    assert found.straggler.stalled_ranks == (0, 1, 2, 3, 4)
    assert found.straggler.new_step_ns.expected == pytest.approx(HEALTHY_STEP_NS, rel=1e-2)
    assert found.verdict.sentence.startswith("The CPUs of ranks 0–4 stall in turn")
    assert "the job waits most for rank 0" in found.verdict.sentence


def test_a_rank_that_begins_its_only_step_late_is_not_accused_and_may_be_worth_another_look(tmp_path: Path) -> None:
    first, *_ = job(tmp_path, (400.0,) * 5, steps=1, stalls_us={(0, 0): 24_000.0})
    document = json.loads(first.read_text())
    step = document["traceEvents"][0]
    step |= {"ts": step["ts"] + 24_000.0, "dur": step["dur"] - 24_000.0}
    first.write_text(json.dumps(document))
    found = opened(tmp_path)
    assert found.straggler.ranks == ()
    assert found.verdict.sentence.startswith("No straggler: no rank is late by more than chance. Rank 0 arrives last")
    assert "if it always does, fixing it gains" in found.verdict.sentence


def test_two_slow_ranks_are_named_together(tmp_path: Path) -> None:
    job(tmp_path, (400.0,) * 6, late={1: 200.0, 4: 200.0})
    assert opened(tmp_path).straggler.ranks == (1, 4)


def test_waiting_and_transfer_sum_to_each_collective(tmp_path: Path) -> None:
    job(tmp_path, late={2: 200.0})
    found = opened(tmp_path)
    ranks = {one.rank: one for one in found.per_rank}
    assert [ranks[rank].comm_wait_ns for rank in range(4)] == [200_000, 200_000, 0, 200_000]
    assert {one.comm_transfer_ns for one in found.per_rank} == {100_000}
    assert ranks[2].times_last == 4
    for one in found.per_rank:
        assert one.compute_ns + one.exposed_transfer_ns + one.exposed_wait_ns + one.idle_ns == one.step_ns


def test_clocks_are_aligned_by_the_ends_of_collectives(tmp_path: Path) -> None:
    job(tmp_path, offsets_us={1: 5_000.0, 3: -700.0})
    found = opened(tmp_path)
    assert [clock.offset_ns for clock in found.clocks] == pytest.approx([0, 5_000_000, 0, -700_000], abs=1000)
    assert all(clock.uncertainty_ns >= 10_000 for clock in found.clocks)
    assert {one.comm_wait_ns for one in found.per_rank} == {0}


def test_only_steps_that_all_ranks_recorded_count(tmp_path: Path) -> None:
    job(tmp_path, steps=6, first_step={1: 2})
    found = opened(tmp_path)
    assert found.step_numbers == (5, 6, 7, 8)
    assert [entry.code for entry in found.health] == ["step-windows"]


def test_a_missing_rank_is_said(tmp_path: Path) -> None:
    job(tmp_path)
    (tmp_path / "rank2_trace.json").unlink()
    found = opened(tmp_path)
    assert found.missing_ranks == (2,)
    assert "missing-ranks" in [entry.code for entry in found.health]


def test_collectives_without_arguments_are_matched_by_order(tmp_path: Path) -> None:
    job(tmp_path, late={2: 200.0}, arguments=False)
    found = opened(tmp_path)
    assert found.straggler.ranks == (2,)
    assert "no-collective-arguments" in [entry.code for entry in found.health]


def test_groups_without_arguments_are_told_apart_by_when_their_ranks_leave(tmp_path: Path) -> None:
    """Two groups of two ranks; rank 1 is late in the first, and the second does not wait for it."""
    for first, late in ((0, {1: 200.0}), (2, {})):
        for rank, file in enumerate(job(tmp_path / f"group{first}", (400.0,) * 2, late=late, steps=6, arguments=False)):
            events = json.loads(file.read_text())["traceEvents"]
            write_rank(tmp_path / "job" / f"rank{first + rank}.json", events, first + rank, 4)
    found = opened(tmp_path / "job")
    assert sorted(group.ranks for group in found.groups) == [(0, 1), (2, 3)]
    assert [one.comm_wait_ns for one in found.per_rank] == pytest.approx([200_000, 0, 0, 0], abs=20)
    assert "no-collective-arguments" in [entry.code for entry in found.health]


def test_a_clock_that_is_set_is_corrected_and_said(tmp_path: Path) -> None:
    files = job(tmp_path, steps=8)
    text = json.loads(files[1].read_text())
    for event in text["traceEvents"]:
        event["ts"] += 5_000.0 if event["args"]["step"] >= 4 else 0.0
    files[1].write_text(json.dumps(text))
    found = opened(tmp_path)
    assert "stepped-clock" in [entry.code for entry in found.health]
    assert [size for _, size in found.clocks[1].jumps] == pytest.approx([5_000_000], abs=1000)
    assert {one.comm_wait_ns for one in found.per_rank} == {0}
    assert found.straggler.ranks == ()


def test_a_folder_with_all_kinds_of_damage_is_answered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = job(tmp_path, (400.0,) * 6, late={2: 200.0})
    files[0].unlink()
    files[1].write_text("")
    text = files[3].read_text()
    files[3].write_text(text[: int(len(text) * 0.7)])
    (tmp_path / "rank4_copy.json").write_text(files[4].read_text())
    (tmp_path / "notes.json").write_text('{"a": 1}')
    (tmp_path / "rank7.sqlite").write_bytes(b"SQLite format 3\x00" + bytes(200))
    assert run([str(tmp_path), "--no-cache"]) == 0
    shown = capsys.readouterr().out
    assert "The job waits for rank 2" in shown
    for code in ("missing-ranks", "unreadable-rank", "truncated-rank", "duplicate-rank"):
        assert code in shown


def test_damaged_and_foreign_files_are_left_out(tmp_path: Path) -> None:
    files = job(tmp_path, (400.0,) * 5, late={2: 200.0})
    files[0].write_text("")
    text = files[1].read_text()
    files[1].write_text(text[: int(len(text) * 0.8)])
    (tmp_path / "rank9_notes.json").write_text('{"a": [1, 2]}')
    write_rank(tmp_path / "copy_of_rank3.json", json.loads(files[3].read_text())["traceEvents"], 3, 5)
    found = opened(tmp_path)
    assert found.ranks == (1, 2, 3, 4)
    codes = [entry.code for entry in found.health]
    assert {"unreadable-rank", "truncated-rank", "duplicate-rank", "missing-ranks"} <= set(codes)
    assert found.straggler.ranks == (2,)


def test_of_several_iterations_the_newest_is_taken(tmp_path: Path) -> None:
    for iteration in (10, 9):
        job(tmp_path / f"iteration_{iteration}")
    found = opened(tmp_path)
    assert found.name == "iteration_10"
    assert found.other_jobs == ("iteration_9",)
    assert opened(tmp_path, job="iteration_9").name == "iteration_9"
    with pytest.raises(WarplineError, match="no job 'iteration_7'"):
        opened(tmp_path, job="iteration_7")


def test_one_rank_is_no_job(tmp_path: Path) -> None:
    files = job(tmp_path)
    for file in files[1:]:
        file.write_text("")
    with pytest.raises(CannotAnswer, match="two ranks"):
        opened(tmp_path)


def test_the_json_has_the_documented_keys(tmp_path: Path) -> None:
    job(tmp_path, late={2: 200.0})
    answer = opened(tmp_path).to_dict()
    assert list(answer) == ["schema", "job", "verdict"]
    assert answer["schema"] == "warpline.job/1"
    wanted = {"ranks", "world_size", "missing_ranks", "steps", "step_ns", "clock", "straggler", "groups", "per_rank"}
    assert wanted <= set(answer["job"])
    assert set(answer["job"]["exposed_communication_share"]) == {"0", "1", "2", "3"}
    json.dumps(answer)


@pytest.mark.parametrize(
    ("device", "size", "link", "peak"),
    [
        ("NVIDIA H100 80GB HBM3", 4, "NVLink", 450e9),
        ("NVIDIA L4", 4, "PCIe", 31.5e9),
        ("a chip of next year", 4, "unknown", None),
        ("NVIDIA H100 80GB HBM3", 16, "network", 8 * 50e9),
        ("NVIDIA H100 80GB HBM3", 12, "network", 4 * 50e9),
        ("Tesla V100-SXM2-16GB", 16, "network", None),
    ],
)
def test_the_link_of_a_group_is_named_with_its_peak(
    tmp_path: Path, device: str, size: int, link: str, peak: float | None
) -> None:
    for file in job(tmp_path, (400.0,) * size):
        text = json.loads(file.read_text())
        file.write_text(json.dumps({"deviceProperties": [{"id": 0, "name": device}], **text}))
    (group,) = opened(tmp_path).groups
    assert group.link == link
    assert group.link_peak == (None if peak is None else pytest.approx(peak, rel=0.02))
