"""Every command on docs/seeds.md prints what the page shows."""

from __future__ import annotations

import shlex

import click
import pytest
from seed_rows import PAGE, SeedRow, line_of, page, rows, written_line

from warpline.cli.main import app
from warpline.cli.verbs import VERBS

ROWS = rows()
WRITTEN = PAGE.read_text(encoding="utf-8")
UPDATE = "run: PYTHONPATH=src:tests/helpers python -m seed_rows"


def test_the_page_has_the_rows_of_the_table() -> None:
    assert page(ROWS, [written_line(row, WRITTEN) for row in ROWS]) == WRITTEN, UPDATE


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.asked[:50])
def test_a_command_parses(row: SeedRow) -> None:
    verb, *arguments = shlex.split(row.command)[1:]
    assert verb in VERBS
    found = app.get_command(click.Context(app), verb)
    assert found is not None
    found.make_context(verb, arguments, parent=click.Context(app))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.asked[:50])
def test_a_command_prints_what_the_page_shows(row: SeedRow) -> None:
    if not (row.where or row.is_runnable):
        pytest.skip("its recording is not here")
    assert line_of(row) == written_line(row, WRITTEN), UPDATE
