"""Tries a range of inputs and reports each run as a line of JSON; a process of its own, since an input may kill it."""

from __future__ import annotations

import faulthandler
import json
import os
import random
import re
import resource
import shlex
import signal
import sys
from pathlib import Path
from typing import Any, TextIO

from tests.fuzz.commands import FILE, FOLDER, OTHER, OUTPUT, SEED, TRACE, Command, commands_for
from tests.fuzz.execute import Failure, attempt
from tests.fuzz.inputs import RUN_FOLDER, Files, Recipe, build, recipe_of
from tests.fuzz.minimise import Minimiser

ADDRESS_SPACE_BYTES = 8 << 30
"""No input may take the machine's memory; what polars reserves and does not use counts here."""
TWICE = 8
"""One command in so many is run twice."""


def work(seed: str, first: int, count: int, commands: int, only: list[str], output: Path) -> None:
    """Try the inputs, and write what fails into the output folder."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE_BYTES, ADDRESS_SPACE_BYTES))
    faulthandler.register(signal.SIGUSR1, file=sys.__stderr__, all_threads=True)
    lines = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    for number in range(first, first + count):
        recipe = recipe_of(seed, number)
        files = build(recipe)
        chosen = chosen_commands(seed, number, recipe, commands, only)
        for place, command in enumerate(chosen):
            say(lines, begin=[number, place, command.verb])
            outcome = attempt(files, command, twice=random.Random(f"{seed} {number} {place}").randrange(TWICE) == 0)
            shown = [[failure.signature, failure.kind] for failure in outcome.failures]
            say(lines, end=[number, place, command.verb, outcome.cpu_s, outcome.peak_bytes, outcome.code, shown])
            for failure in outcome.failures:
                keep(output, failure, f"{seed} {number} {place}", recipe, command)


def chosen_commands(seed: str, number: int, recipe: Recipe, count: int, only: list[str]) -> list[Command]:
    """The commands for that input."""
    return commands_for(recipe.kind, random.Random(f"{seed} {number} commands"), count, only)


def say(lines: TextIO, **what: Any) -> None:
    """One line for the parent."""
    lines.write(json.dumps(what) + "\n")
    lines.flush()


def keep(output: Path, failure: Failure, origin: str, recipe: Recipe, command: Command) -> None:
    """Write the first input with this signature, made small, with the command that fails on it."""
    folder = output / re.sub(r"[^A-Za-z0-9.]+", "-", failure.signature)[:100]
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        return
    minimiser = Minimiser(command, failure.signature)
    smaller = minimiser.recipe(recipe)
    write(folder, minimiser.files(build(smaller)), command, failure.kind, origin, smaller)


def write(folder: Path, files: Files, command: Command, kind: str, origin: str, recipe: Recipe) -> None:
    """The files, and how to see the failure."""
    for name, content in files.content.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    if SEED in command.arguments:
        (folder / "seed").write_bytes(files.seed)
    if OTHER in command.arguments:
        (folder / "other").write_bytes(files.partner[1] or files.seed)
    stands_for = {FILE: files.main, SEED: "seed", OTHER: "other", OUTPUT: "written", FOLDER: RUN_FOLDER}
    stands_for[TRACE] = "whole.json"  # tests.fuzz.seeds.training
    words = list(command.arguments)
    for mark, meant in stands_for.items():
        words = [word.replace(mark, meant) for word in words]
    line = f"front_door {shlex.join(words)}" if command.front else f"warpline {shlex.join(words)}"
    piped = f" < {shlex.quote(files.main)}" if command.stdin else ""
    changes = ", ".join(name for name, _ in recipe.changes)
    note = [f"{line}{piped}", f"# {kind}", f"# input {origin}: {recipe.kind} {recipe.seed}, {changes}"]
    (folder / "reproduce.txt").write_text("\n".join(note) + "\n", encoding="utf-8")
