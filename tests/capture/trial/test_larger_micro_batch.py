"""Fewer, larger micro-batches: as many samples for each update as before."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from warpline.capture.trial.changes import LargerMicroBatch


@pytest.mark.parametrize(("value", "passes", "batch"), [("", 1, 16), ("2", 4, 4), ("3", 8, 2)])
def test_an_update_has_as_many_samples_as_before(value: str, passes: int, batch: int) -> None:
    """Eight passes of two samples; a value that does not divide the passes changes nothing."""
    given = SimpleNamespace(gradient_accumulation_steps=8, per_device_train_batch_size=2)
    LargerMicroBatch(None, value).arguments(given)
    assert (given.gradient_accumulation_steps, given.per_device_train_batch_size) == (passes, batch)


def test_loaders_that_an_accelerator_prepares_have_larger_batches() -> None:
    change = LargerMicroBatch(None)
    made = SimpleNamespace(gradient_accumulation_steps=4)
    change.accelerator(made)
    loader = SimpleNamespace(batch_sampler=SimpleNamespace(batch_size=8))
    change.loader(loader)
    change.loader(SimpleNamespace(batch_sampler=None))  # the program makes its own batches
    assert (made.gradient_accumulation_steps, loader.batch_sampler.batch_size) == (1, 32)
    assert change.proof() == {"4 micro-batches made one": 1}


def test_the_accelerator_of_a_trainer_and_its_loader_are_not_changed_again() -> None:
    """A Trainer makes both from its arguments, and its Accelerator prepares the loader."""
    change = LargerMicroBatch(None, "2")
    given = SimpleNamespace(gradient_accumulation_steps=4, per_device_train_batch_size=8)
    change.arguments(given)
    made = SimpleNamespace(gradient_accumulation_steps=given.gradient_accumulation_steps)
    change.accelerator(made)
    loader = SimpleNamespace(batch_sampler=SimpleNamespace(batch_size=given.per_device_train_batch_size))
    change.loader(loader)
    assert (made.gradient_accumulation_steps, loader.batch_sampler.batch_size) == (2, 16)
