"""Which steps are timed, and how many processes fit."""

from __future__ import annotations

import pytest

from warpline.capture.trial.use import ModuleUse, ProgramUse
from warpline.errors import WarplineError
from warpline.trial.look import MAX_ROUNDS, alive_together, timed_steps
from warpline.trial.process import HeardEvent, LookReport

GB = 10**9


def look(*events: HeardEvent, ended: bool = False, use: ProgramUse | None = None, **memory: int) -> LookReport:
    sizes = {"gpu_bytes": 0, "gpu_reserved_bytes": 0, "gpu_free_bytes": 0, "host_bytes": GB, **memory}
    return LookReport(
        results={}, steps=0, proof={}, compile={}, ended=ended, use=use or ProgramUse(), events=events, **sizes
    )


def calls(kind: str, count: int, step_s: float, who: int = 0, name: str = "Net") -> HeardEvent:
    return HeardEvent(kind, who, name, tuple(step_s * number for number in range(count)))


def test_the_optimizer_that_appears_last_ends_the_step() -> None:
    found = timed_steps(
        look(calls("forward", 90, 0.01), calls("optimizer", 30, 0.03), calls("optimizer", 30, 0.03, who=1, name="Adam"))
    )
    assert (found.words, found.step.who, found.result) == ("Adam.step()", 1, "loss")
    # 0.5 s are 17 steps: two windows of 8. A quarter is not timed; 2 + 9 is the next prime number.
    assert (found.settle, found.per_window, found.per_round) == (2, 9, 2)


def test_generate_comes_before_the_forwards_inside_it() -> None:
    found = timed_steps(look(calls("forward", 300, 0.01), calls("generate", 4, 1.0, name="Llama"), ended=True))
    assert found.words == "generate() of Llama"
    assert (found.skip, found.per_window, found.per_round, found.rounds) == (1, 1, 1, 3)


def test_the_largest_module_called_often_is_the_step() -> None:
    use = ProgramUse(modules=[ModuleUse("Text", 10, 0, 0, False), ModuleUse("UNet", 1000, 9, 0, False)])
    found = timed_steps(look(calls("forward", 8, 0.1), calls("forward", 40, 0.02, who=1, name="UNet"), use=use))
    assert found.words == "forward of UNet"


@pytest.mark.parametrize("count", [4, 9, 20, 40, 100])
def test_all_windows_fit_into_a_program_that_ends_early(count: int) -> None:
    found = timed_steps(look(calls("optimizer", count, 0.05), ended=True))
    assert 1 <= found.rounds <= MAX_ROUNDS
    assert found.skip + found.rounds * found.per_round * (found.settle + found.per_window) <= count


def test_batches_that_a_loader_has_ready_are_used_up_before_the_first_window() -> None:
    assert timed_steps(look(calls("optimizer", 60, 0.1)), loads_ahead=True).skip == 8 + 32
    assert timed_steps(look(calls("optimizer", 60, 0.5)), loads_ahead=True).skip == 3
    assert timed_steps(look(calls("optimizer", 60, 0.1)), loads_ahead=False).skip == 8


def test_a_program_without_steps_is_refused() -> None:
    with pytest.raises(WarplineError, match="no-steps"):
        timed_steps(look())


def test_as_many_processes_are_alive_as_memory_holds() -> None:
    on_gpu = ProgramUse(on_gpu=True)
    small = look(use=on_gpu, gpu_reserved_bytes=GB, gpu_free_bytes=100 * GB)
    large = look(use=on_gpu, gpu_reserved_bytes=60 * GB, gpu_free_bytes=15 * GB)
    assert alive_together(small, 100 * GB, 16) == 16
    assert alive_together(large, 100 * GB, 16) == 1
    assert alive_together(small, 5 * GB, 16) == 3
    two_ranks = look(use=ProgramUse(world_size=2))
    assert alive_together(two_ranks, 5 * GB, 16) == 1


def test_windows_meet_a_period_of_the_program_at_all_its_places() -> None:
    """A rollout comes every 16 steps: windows that start 16 steps apart would all start at the same place of it."""
    found = timed_steps(look(calls("optimizer", 60, 0.01)))
    assert (found.settle, found.per_window, found.per_round) == (2, 11, 5)
    starts = {(found.skip + turn * (found.settle + found.per_window)) % 16 for turn in range(16)}
    assert len(starts) == 16
