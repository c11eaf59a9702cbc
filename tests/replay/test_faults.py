"""Predictions held against the stopwatch: the planted faults, timed without a profiler."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from paths import DATA

import warpline
from warpline.replay import WhatIf
from warpline.replay.interventions import interventions

FOLDER = DATA / "faults"
MANIFEST = FOLDER / "faults.json"
pytestmark = pytest.mark.skipif(not MANIFEST.exists(), reason="the planted faults are not recorded here")


def cases() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(MANIFEST.read_text())["cases"] if MANIFEST.exists() else []
    return [case for case in found if (FOLDER / f"{case['name']}.json.gz").exists()]


@pytest.fixture(scope="module")
def answers() -> list[tuple[dict[str, Any], WhatIf]]:
    return [(case, WhatIf(warpline.open(FOLDER / f"{case['name']}.json.gz", cache=False))) for case in cases()]


def test_the_bare_step_is_near_the_stopwatch(answers: list[tuple[dict[str, Any], WhatIf]]) -> None:
    warm = [(case, question) for case, question in answers if case["cause"] != "cold_start"]
    errors = np.array(
        [question.bare_step_ns.expected / case["bare_step_ns"]["faulty"]["step_ns"] - 1 for case, question in warm]
    )
    assert np.median(np.abs(errors)) < 0.05
    assert (np.abs(errors) < 0.15).mean() >= 0.8


def test_the_predicted_step_after_the_fix_is_near_the_stopwatch(answers: list[tuple[dict[str, Any], WhatIf]]) -> None:
    errors = [
        question.ask(case["fix"]).new_step_ns.expected / case["bare_step_ns"]["cured"]["step_ns"] - 1
        for case, question in answers
        if case["fix"] in interventions()
    ]
    assert (np.abs(np.array(errors)) < 0.25).mean() >= 0.75


def test_the_planted_fix_gains_most_and_healthy_steps_gain_nothing(answers: list[tuple[dict[str, Any], WhatIf]]) -> None:
    wrong = []
    for case, question in answers:
        names = [name for name in interventions() if name != "at_roofline" or case["fix"] == name]
        gains = {name: question.ask(name).gain.expected for name in names}
        best = max(gains, key=lambda name: gains[name])
        right = {case["fix"], *case["other_cures"]}
        if (case["fix"] and best not in right) or (not case["fix"] and gains[best] > 1.05):
            wrong.append((case["name"], best, round(gains[best], 2)))
    assert len(wrong) <= 0.1 * len(answers), wrong


@pytest.mark.parametrize("name", ["sampler_of_a_small_network", "gradients_clipped_one_by_one"])
def test_a_loop_that_carries_a_state_is_no_batch(name: str) -> None:
    # Each step of the sampler takes the last one's result and slices its own time out of a tensor; the norm is a sum.
    question = WhatIf(warpline.open(DATA / "field" / f"{name}.plain.json.gz", cache=False))
    assert not question.ask("batch").applies


@pytest.mark.parametrize(
    ("folder", "name"),
    [("faults", "heads_in_a_loop"), ("faults", "samples_one_by_one"), ("field", "adapter_of_every_request")],
)
def test_a_batch_is_neither_cut_nor_gathered(folder: str, name: str) -> None:
    (case,) = [one for one in json.loads((DATA / folder / MANIFEST.name).read_text())["cases"] if one["name"] == name]
    question = WhatIf(warpline.open(DATA / folder / f"{name}.plain.json.gz", cache=False))
    cured = case["bare_step_ns"]["cured"]["step_ns"]
    assert question.ask("batch").new_step_ns.expected == pytest.approx(cured, rel=0.3)
