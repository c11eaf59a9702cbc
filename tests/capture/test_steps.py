"""Which source of steps is believed, worked out by hand."""

from __future__ import annotations

from warpline.capture.steps import ACCUMULATING_CALLS_BEFORE_USE, EXPLICIT, FORWARD, OPTIMIZER, REPLAY, StepFinder


def test_training_follows_the_optimizer_although_the_forward_comes_first() -> None:
    finder = StepFinder()
    heard = [(finder.hear(FORWARD), finder.hear(OPTIMIZER)) for _ in range(4)]
    assert heard == [(0, 1), (0, 2), (0, 3), (0, 4)]
    assert finder.chosen == OPTIMIZER


def test_inference_is_believed_at_the_third_forward_and_counts_those_before() -> None:
    finder = StepFinder()
    assert [finder.hear(FORWARD) for _ in range(5)] == [0, 0, 3, 4, 5]


def test_micro_batches_are_not_steps_while_an_optimizer_may_come() -> None:
    finder = StepFinder()
    for _ in range(8):
        assert finder.hear(FORWARD, patience=ACCUMULATING_CALLS_BEFORE_USE) == 0
    assert finder.hear(OPTIMIZER) == 1


def test_gradients_without_an_optimizer_are_steps_in_the_end() -> None:
    finder = StepFinder()
    heard = [finder.hear(FORWARD, patience=ACCUMULATING_CALLS_BEFORE_USE) for _ in range(ACCUMULATING_CALLS_BEFORE_USE)]
    assert heard[-1] == ACCUMULATING_CALLS_BEFORE_USE
    assert not any(heard[:-1])


def test_replays_take_over_when_the_optimizer_has_gone_silent() -> None:
    finder = StepFinder()
    for _ in range(3):
        finder.hear(OPTIMIZER)
    assert [finder.hear(REPLAY) for _ in range(4)] == [0, 0, 3, 4]


def test_replays_within_a_step_are_not_steps() -> None:
    finder = StepFinder()
    for _ in range(5):
        assert [finder.hear(REPLAY), finder.hear(REPLAY)] == [0, 0]
        assert finder.hear(OPTIMIZER) > 0


def test_many_calls_within_a_step_are_not_steps_once_a_whole_step_was_seen() -> None:
    finder = StepFinder()
    for step in range(5):
        heard = [finder.hear(FORWARD) for _ in range(10)]
        assert finder.hear(EXPLICIT) == step + 1
        assert any(heard) == (step < 2)
    assert [finder.hear(FORWARD) > 0 for _ in range(21)] == [False] * 20 + [True]  # the steps ended, and calls go on


def test_a_better_source_takes_over_at_once() -> None:
    finder = StepFinder()
    for _ in range(5):
        finder.hear(FORWARD)
    assert finder.hear(EXPLICIT) == 1
    assert finder.chosen == EXPLICIT


def test_once_locked_nothing_else_counts() -> None:
    finder = StepFinder()
    assert finder.hear(OPTIMIZER, who=1) == 1
    finder.lock()
    assert finder.hear(EXPLICIT) == 0
    assert finder.hear(OPTIMIZER, who=2) == 0
    assert finder.hear(OPTIMIZER, who=1) == 2


def test_the_rarer_of_two_optimizers_makes_the_step() -> None:
    finder = StepFinder()
    cycle = [1, 1, 1, 1, 1, 2]
    heard = [finder.hear(OPTIMIZER, who) for _ in range(4) for who in cycle]
    assert heard[6:] == [0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 4]


def test_a_leader_that_is_gone_is_replaced() -> None:
    finder = StepFinder()
    finder.hear(OPTIMIZER, who=1)
    finder.hear(OPTIMIZER, who=2)
    heard = [finder.hear(OPTIMIZER, who=1) for _ in range(25)]
    assert heard[-1] > 0
    assert heard[0] == 0
