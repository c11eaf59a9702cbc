"""Ten jobs in which an innocent rank looks guilty, with the answer worked out on paper.

Every rank is busy for 1,000 µs a step unless a test says more, and an all-reduce of 100 µs follows.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from rank_files import set_clock
from rank_programs import Operation, compute, cpu, meet, play, sync

from warpline.ranks.job import Job, open_job

WORK_US, MOVE_US = 1_000.0, 100.0
LAUNCHES_US = 4.0 + 5.0 + 1.0
"""Of one step: the CPU's launches, the latency of the first kernel, and the return of the synchronisation."""


def opened(folder: Path) -> Job:
    return open_job(folder, cache=False)


def plain(work_us: float, ranks: int) -> Sequence[Operation]:
    return compute(work_us / 2), compute(work_us / 2), meet("allreduce", range(ranks), MOVE_US), sync()


def test_a_victim_has_the_longest_nccl_kernels_and_is_not_named(tmp_path: Path) -> None:
    """Rank 0 is the fastest and waits 600 µs in NCCL, rank 3 is the slowest and waits for nobody."""
    work = [800.0, 1000.0, 1000.0, 1400.0]
    play(tmp_path, 4, 6, lambda rank, _step: plain(work[rank], 4))
    found = opened(tmp_path)
    assert found.straggler.ranks == (3,)
    assert found.straggler.reason == "kernel"
    waits = {one.rank: one.comm_wait_ns for one in found.per_rank}
    assert waits == {0: 600_000, 1: 400_000, 2: 400_000, 3: 0}
    assert found.step_ns - found.straggler.new_step_ns.expected == pytest.approx(400_000, rel=0.01)


def test_a_rank_that_is_late_at_no_cost_is_not_named(tmp_path: Path) -> None:
    """Every CPU takes 2,000 µs a step. The GPU of rank 1 computes 300 µs longer than the others, and still waits for its
    CPU."""
    work = [1000.0, 1300.0, 1000.0, 1000.0]
    play(
        tmp_path,
        4,
        6,
        lambda rank, _step: (compute(work[rank]), meet("allreduce", range(4), MOVE_US), cpu(2000.0)),
    )
    found = opened(tmp_path)
    assert max(found.per_rank, key=lambda one: one.times_last).rank == 1
    assert found.straggler.ranks == ()
    assert found.straggler.last_rank_gain == pytest.approx(1.0, abs=0.01)
    assert "would take as long: " in found.verdict.sentence


def test_jitter_names_nobody(tmp_path: Path) -> None:
    """In each step another rank computes 4 % longer."""
    play(tmp_path, 6, 12, lambda rank, step: plain(WORK_US * (1.04 if rank == 5 * step % 6 else 1.0), 6))
    found = opened(tmp_path)
    assert found.straggler.ranks == ()
    assert "No straggler" in found.verdict.sentence


def test_a_rank_whose_clock_steps_is_not_named_for_it(tmp_path: Path) -> None:
    """The clock of rank 1 is set by 3 ms in the middle; rank 2 is the one that is slow."""
    work = [1000.0, 1000.0, 1400.0, 1000.0]
    files = play(tmp_path, 4, 20, lambda rank, _step: plain(work[rank], 4))
    set_clock(files[1], 1.0, jump_us=3_000.0)
    found = opened(tmp_path)
    assert [entry.code for entry in found.health] == ["stepped-clock"]
    assert found.straggler.ranks == (2,)
    assert found.straggler.gain.expected == pytest.approx((1500 + LAUNCHES_US) / (1100 + LAUNCHES_US), rel=0.01)


def test_a_chain_of_broadcasts_moves_no_clock_and_names_nobody(tmp_path: Path) -> None:
    """Rank 0 leaves each broadcast 300 µs before the others, which receive one after the other; all compute alike."""
    early = {0: -300.0, 1: -200.0, 2: -100.0}

    def program(_rank: int, _step: int) -> Sequence[Operation]:
        chain = [meet("broadcast", range(4), 400.0, early) for _ in range(3)]
        return (*chain, *plain(WORK_US, 4))

    play(tmp_path, 4, 6, program)
    found = opened(tmp_path)
    assert [clock.offset_ns for clock in found.clocks] == pytest.approx([0, 0, 0, 0], abs=2_000)
    assert found.straggler.ranks == ()


def pipeline(rank: int, work_us: Sequence[float]) -> Sequence[Operation]:
    """Four micro-batches through stages of one rank each, forward and then backward."""
    last = len(work_us) - 1
    found: list[Operation] = []
    for _ in range(4):
        found += [meet("recv", (rank - 1, rank), 20.0)] if rank else []
        found.append(compute(work_us[rank]))
        found += [meet("send", (rank, rank + 1), 20.0)] if rank < last else []
    for _ in range(4):
        found += [meet("recv", (rank + 1, rank), 20.0)] if rank < last else []
        found.append(compute(work_us[rank]))
        found += [meet("send", (rank, rank - 1), 20.0)] if rank else []
    return (*found, meet("allreduce", range(len(work_us)), MOVE_US), sync())


def test_the_bubbles_of_a_pipeline_name_nobody(tmp_path: Path) -> None:
    play(tmp_path, 4, 5, lambda rank, _step: pipeline(rank, [300.0] * 4))
    assert opened(tmp_path).straggler.ranks == ()


def test_a_slow_stage_is_named_and_not_those_that_wait_for_it(tmp_path: Path) -> None:
    play(tmp_path, 4, 5, lambda rank, _step: pipeline(rank, [300.0, 300.0, 600.0, 300.0]))
    assert opened(tmp_path).straggler.ranks == (2,)


def test_two_ranks_that_are_slow_in_turn_are_named_together(tmp_path: Path) -> None:
    """Fixing one of them halves the price; both must go."""
    play(
        tmp_path,
        5,
        8,
        lambda rank, step: plain(WORK_US + (500.0 if rank == (1 if step % 2 else 4) else 0.0), 5),
    )
    found = opened(tmp_path)
    assert found.straggler.ranks == (1, 4)
    assert found.straggler.gain.expected == pytest.approx((1600 + LAUNCHES_US) / (1100 + LAUNCHES_US), rel=0.01)


def test_a_slow_link_between_nodes_is_no_fault_of_a_rank_that_waits_behind_it(tmp_path: Path) -> None:
    """Two ranks a node. The columns reduce across the nodes: 0 with 4, 1 with 5, and so on; the link of 3 and 7 takes
    900 µs instead of 300, and their neighbours then wait for them."""

    def program(rank: int, _step: int) -> Sequence[Operation]:
        column, node = (rank % 4, rank % 4 + 4), range(rank // 4 * 4, rank // 4 * 4 + 4)
        slow = 900.0 if rank % 4 == 3 else 300.0
        across, within = meet("allreduce", column, slow), meet("allreduce", tuple(node), MOVE_US)
        return compute(WORK_US), across, compute(200.0), within, sync()

    play(tmp_path, 8, 6, program)
    found = opened(tmp_path)
    assert (found.straggler.ranks, found.straggler.reason) == ((3, 7), "link")
    assert found.step_ns - found.straggler.new_step_ns.expected == pytest.approx(600_000, rel=0.02)


def test_collector_pauses_at_different_steps_do_not_name_a_rank_without_one(tmp_path: Path) -> None:
    """The CPU of each rank but 2 pauses for 5 ms in a step of its own, as garbage collectors do."""
    pauses = {0: 1, 1: 3, 3: 5}

    def program(rank: int, step: int) -> Sequence[Operation]:
        return (cpu(5_000.0 if pauses.get(rank) == step else 10.0), *plain(WORK_US, 4))

    play(tmp_path, 4, 8, program)
    found = opened(tmp_path)
    assert found.straggler.reason == "pause"
    assert 2 not in found.straggler.ranks
    assert 2 not in found.straggler.stalled_ranks
    assert found.step_ns - found.straggler.new_step_ns.expected == pytest.approx(3 * 4_990_000 / 7, rel=0.03)


def test_a_slow_rank_without_a_recording_is_not_blamed_on_another(tmp_path: Path) -> None:
    """Rank 3 computes 600 µs longer in every other step, and its file is missing: nobody else may be named."""

    def program(rank: int, step: int) -> Sequence[Operation]:
        return plain(WORK_US + (600.0 if rank == 3 and step % 2 else 0.0), 4)

    play(tmp_path, 4, 8, program, unrecorded=[3])
    found = opened(tmp_path)
    assert found.missing_ranks == (3,)
    assert found.straggler.ranks in {(), (3,)}
    assert found.straggler.reason in {"none", "unknown"}
