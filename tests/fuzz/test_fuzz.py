"""A few seconds of fuzzing with a fixed and a fresh seed, every past failure, and proof that a failure is found.

`make fuzz MINUTES=60` goes on for longer.
"""

from __future__ import annotations

import json
import random
import secrets
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.fuzz import commands, companions, harness, inputs, mutators, oracles, regressions, values
from tests.fuzz.commands import FILE, Command
from tests.fuzz.execute import attempt
from tests.fuzz.worker import keep
from warpline.analyses.stats import REPORTS
from warpline.cli.verbs import VERBS

INPUTS = 15
"""Inputs for each seed, with one command each: about two seconds."""
CASES = {**regressions.MADE, **regressions.stored()}


@pytest.mark.parametrize("seed", ["fixed", "fresh"])
def test_no_mutated_profile_breaks_a_command(seed: str) -> None:
    seed = seed if seed == "fixed" else str(secrets.randbelow(10**9))
    print(f"seed {seed}: python -m tests.fuzz --seed {seed} --count {INPUTS} --commands 1")
    for number in range(INPUTS):
        recipe = inputs.recipe_of(seed, number)
        (command,) = commands.commands_for(recipe.kind, random.Random(f"{seed} {number} commands"), 1)
        outcome = attempt(inputs.build(recipe), command, twice=number % 5 == 0)
        assert not outcome.failures, (seed, number, command.arguments, recipe, outcome.failures)


@pytest.mark.parametrize("name", CASES)
def test_what_once_failed_no_longer_does(name: str) -> None:
    files, lines = CASES[name]()
    for command in lines:
        outcome = attempt(files, command, twice=name not in regressions.MADE)
        assert not outcome.failures, (command.arguments, outcome.failures)


def test_every_verb_and_report_is_tried() -> None:
    without_input = {
        "bench",
        "demo",
        "lab",
        "mcp",
        "skill",
        "watch",
        *(name for name, verb in VERBS.items() if "PROGRAM" in verb.words()),
    }
    tried = {*commands.PROFILE_VERBS, *commands.CALLS, *commands.NAME_VERBS, *commands.LEFT_OUT}
    assert set(VERBS) - without_input == tried
    assert set(commands.REPORTS) == set(REPORTS)


@pytest.mark.parametrize("kind", inputs.KINDS)
def test_inputs_are_repeatable_and_differ_from_their_seed(kind: str) -> None:
    recipes = [inputs.recipe_of("repeat", number, kind) for number in range(5)]
    for recipe in recipes:
        assert inputs.build(recipe).content == inputs.build(recipe).content
    assert any(inputs.build(recipe).content != inputs.build(inputs.unchanged(recipe)).content for recipe in recipes)


def test_an_input_does_not_depend_on_those_made_before() -> None:
    before = repr((values.SHAPES, values.DTYPES, companions.PICKLED))
    for number in range(150):
        inputs.build(inputs.recipe_of("alone", number, ["document", "baseline", "snapshot"][number % 3]))
    assert repr((values.SHAPES, values.DTYPES, companions.PICKLED)) == before


def test_every_mutation_changes_some_input() -> None:
    for kind, seed, family in (("document", "training", mutators.KINETO), ("database", "nsys 3.24.0", mutators.SQLITE)):
        plain = inputs.build(inputs.Recipe(kind, seed, "trace", ())).content
        for name in family:
            tries = (inputs.Recipe(kind, seed, "trace", ((name, str(number)),)) for number in range(20))
            assert any(inputs.build(recipe).content != plain for recipe in tries), name


WHOLE = {
    "schema": "warpline.diagnosis/1",
    "trace": {},
    "devices": [],
    "replay": None,
    "verdict": None,
    "plan": [],
    "findings": [],
    "audit": [],
}
DEVICE = {"window_ns": 10, "busy_ns": 7, "idle_ns": 3, "busy": {"compute_ns": 7}, "idle": {"sync_ns": 3}}


@pytest.mark.parametrize(
    ("code", "out", "err", "found"),
    [
        (0, json.dumps(WHOLE), "", ""),
        (0, json.dumps({**WHOLE, "devices": [DEVICE]}), "", ""),
        (3, json.dumps(WHOLE), "", "exit-code 3"),
        (1, "", "", "no-reason"),
        (1, "", "warpline: internal-error: TypeError: x\n", "internal-error"),
        (1, "", "oh\n", "no-reason"),
        (0, json.dumps(WHOLE) + "\x1b[0m", "", "control-character U+001B"),
        (0, json.dumps(WHOLE), "warpline: \u202e\n", "control-character U+202E"),
        (0, "{", "", "invalid-json"),
        (0, '{"a": NaN}', "", "invalid-json"),
        (0, "{}", "", "missing-keys"),
        (0, json.dumps({**WHOLE, "devices": [{**DEVICE, "idle_ns": 4}]}), "", "accounting"),
        (0, json.dumps({**WHOLE, "devices": [{**DEVICE, "busy": {"compute_ns": 9, "copy_ns": -2}}]}), "", "accounting: negative"),
        (0, json.dumps({**WHOLE, "plan": [{"gain": {"low": 2, "expected": 1, "high": 3}}]}), "", "range"),
    ],
)  # fmt: skip
def test_each_oracle_finds_what_it_is_for(code: int, out: str, err: str, found: str) -> None:
    problems = list(oracles.problems(Command(("diagnose", FILE, "--json")), code, out, err))
    assert any(problem.startswith(found) for problem in problems) if found else not problems


def test_a_defect_is_found_made_small_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def defect(name: str, arch: str | None = None) -> object:
        raise ZeroDivisionError(name)

    monkeypatch.setattr("warpline.analyses.kernels.identify", defect)
    recipe = inputs.Recipe("document", "today", "trace", (("repeated_events", "1"), ("shuffled_events", "2")))
    command = Command(("diagnose", FILE, "--no-why", "--no-cache"))
    (failure,) = attempt(inputs.build(recipe), command).failures
    assert failure.signature.startswith("internal-error analyses/kernels.py")
    assert failure.signature.endswith("ZeroDivisionError")
    keep(tmp_path, failure, "seed 1 0", recipe, command)
    (folder,) = tmp_path.iterdir()
    assert (folder / "reproduce.txt").read_text().startswith("warpline diagnose trace.json --no-why --no-cache\n")
    assert len(json.loads((folder / "trace.json").read_text())["traceEvents"]) == 1


@pytest.mark.parametrize(
    ("cpu_s", "ready", "looks", "hangs"),
    [([0.0] * 500, True, 500, False), ([0.0] * 130, False, 121, True), ([0.5 * n for n in range(60)], True, 42, True)],
    ids=["others have the CPU", "sleeps", "computes"],
)
def test_a_hang_is_time_computed_or_slept(
    monkeypatch: pytest.MonkeyPatch, cpu_s: list[float], ready: bool, looks: int, hangs: bool
) -> None:
    times = iter([0.0, *cpu_s])
    monkeypatch.setattr(harness, "cpu_seconds", lambda process: next(times))
    monkeypatch.setattr(harness, "can_run", lambda process: ready)
    patience = harness.Patience.begin(1)
    taken = next((number for number in range(1, len(cpu_s) + 1) if patience.look(1)), len(cpu_s))
    assert (taken, taken < len(cpu_s)) == (looks, hangs)


def test_a_sleeping_process_cannot_run_and_a_busy_one_can() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", "import time; print(flush=True); time.sleep(60)"], stdout=-1
    ) as asleep:
        asleep.stdout.readline()
        time.sleep(0.2)
        assert not harness.can_run(asleep.pid)
        asleep.kill()
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
        time.sleep(0.2)
        assert harness.can_run(busy.pid)
        busy.kill()
