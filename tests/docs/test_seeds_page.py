"""Every command on docs/seeds.md can be typed: its verb exists, and its options do."""

from __future__ import annotations

import re
import shlex

import click
import pytest
from paths import ROOT

from warpline.cli.main import app
from warpline.cli.verbs import VERBS

PAGE = (ROOT / "docs" / "seeds.md").read_text(encoding="utf-8")
ROWS = [line.split(" | ") for line in PAGE.splitlines() if line.startswith("| ") and "`warpline " in line]
COMMANDS = [re.fullmatch(r"`warpline (.*)`", row[2])[1] for row in ROWS]  # type: ignore[index]
STATES = {"works", "works, needs a GPU", "works, on the H200", "works, through nsys", "partly", "not"}


def test_there_are_75_rows_with_a_state_and_an_answer() -> None:
    assert len(ROWS) == 75
    assert {row[1] for row in ROWS} <= STATES
    assert all(row[3].strip(" |") for row in ROWS)


def test_the_counts_are_those_of_the_rows() -> None:
    works = sum(row[1].startswith("works") for row in ROWS)
    partly = sum(row[1] == "partly" for row in ROWS)
    assert f"{works} work, {partly} partly." in PAGE


@pytest.mark.parametrize("command", sorted(set(COMMANDS)))
def test_a_command_parses(command: str) -> None:
    verb, *arguments = shlex.split(command)
    assert verb in VERBS
    found = app.get_command(click.Context(app), verb)
    assert found is not None
    found.make_context(verb, arguments, parent=click.Context(app))
