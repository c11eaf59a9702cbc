"""Whether a variant computes what the program computes."""

from __future__ import annotations

from warpline.trial.sameness import Sameness, Samples, compare_results

KEY = "loss"


def samples(*losses: float, first_input: float = 1.0) -> Samples:
    return {KEY: [[loss] for loss in losses], "in": [[first_input]]}


CLEAN = samples(2.0, 1.5, 1.0)
TWIN = samples(2.0 * (1 + 1e-7), 1.5 * (1 + 2e-7), 1.0 + 1e-6)


def compared(
    variant: Samples | None, precision: str = "", random_differs: bool = False, again: Samples = CLEAN
) -> Sameness:
    return compare_results(KEY, [CLEAN, again], TWIN, variant, precision, random_differs)


def test_what_moves_no_further_than_a_few_roundings_is_the_same() -> None:
    assert compared(samples(2.0, 1.5 * (1 + 1e-6), 1.0 + 5e-6)).same is True


def test_what_moves_further_is_different() -> None:
    found = compared(samples(2.0, 1.5, 1.1))
    assert found.same is False
    assert found.sentence.startswith("different (")
    assert found.largest_difference is not None
    assert abs(found.largest_difference - 0.1) < 1e-9


def test_a_smaller_type_is_expected_to_differ_by_its_own_rounding() -> None:
    assert compared(samples(2.01, 1.5, 1.0), "bfloat16").sentence.startswith("different, as expected of bfloat16")
    assert compared(samples(2.5, 1.5, 1.0), "bfloat16").sentence.startswith("different (")


def test_another_first_batch_says_nothing() -> None:
    assert compared(samples(3.0, 3.0, 3.0, first_input=2.0)).same is None


def test_other_random_numbers_say_nothing() -> None:
    assert compared(samples(2.2, 1.5, 1.0), random_differs=True).same is None


def test_a_program_that_does_not_repeat_itself_says_nothing() -> None:
    assert compared(samples(3.0, 2.0, 1.0), again=samples(4.0, 3.0, 2.0)).same is None


def test_equal_results_are_the_same_even_where_other_runs_differ() -> None:
    assert compared(CLEAN, again=samples(4.0, 3.0, 2.0)).same is True


def test_not_a_number_is_different() -> None:
    assert compared(samples(float("nan"), 1.5, 1.0)).same is False


def test_no_results_say_nothing() -> None:
    assert compared(None).same is None
