"""``warpline watch``: judges each trace that appears in a folder."""

from __future__ import annotations

import shlex
import subprocess
import time
from pathlib import Path

import click
from msgspec import Struct

from warpline.cli.options import PATH, WORDS, bundle, json_option, least_effect_option
from warpline.cli.write import json_text, say
from warpline.errors import EXIT_REGRESSION, UsageError
from warpline.sources.record_files import record_file
from warpline.ui.watch import Watch, WatchedTrace


class WhenSlower(Struct, frozen=True):
    """What to do when the step has become slower."""

    command: str | None
    stop: bool


class WaitTimes(Struct, frozen=True):
    """How long to wait for what, in seconds."""

    settle: float
    patience: float
    interval: float


@click.command()
@click.argument("folder", type=PATH, metavar="FOLDER")
@click.option("--once", is_flag=True, help="End when everything that is there has been judged.")
@bundle(
    "when_slower",
    WhenSlower,
    click.option(
        "--exec",
        "command",
        type=WORDS,
        metavar="CMD",
        help="Run this when the step has become slower; it gets the line of --json.",
    ),
    click.option("--stop", is_flag=True, help="End with exit code 3 when the step has become slower."),
)
@click.option("--name", metavar="NAME", help="Record under this name in the history; default: the folder's.")
@least_effect_option
@bundle(
    "waits",
    WaitTimes,
    click.option(
        "--settle",
        type=click.FloatRange(0.0),
        default=2.0,
        metavar="S",
        help="Judge a file that has not changed for S seconds.",
    ),
    click.option(
        "--patience",
        type=click.FloatRange(0.0),
        default=60.0,
        metavar="S",
        help="Judge a truncated file, or ranks of which some are missing, after S seconds without a change.",
    ),
    click.option(
        "--interval", type=click.FloatRange(0.05), default=1.0, metavar="S", help="Look at the folder every S seconds."
    ),
)
@json_option
def watch(
    folder: Path,
    once: bool,
    when_slower: WhenSlower,
    name: str | None,
    least_effect: float,
    waits: WaitTimes,
    as_json: bool,
) -> int:
    """Judge each trace, or set of ranks, that appears in a folder, and say when the step has changed.

    Each is judged once, also when the watch is ended and started again: its step is recorded in the history, where
    warpline history shows it. Exit code with --once or --stop: 3 if the step has become slower, else 0.

    Examples:

      warpline watch profile_traces

      warpline watch profile_traces --exec ./notify.sh

      warpline watch profile_traces --once --json
    """
    if not folder.is_dir():
        raise UsageError("no-folder", f"{folder} is not a folder", "name the folder in which traces appear")
    words = shlex.split(when_slower.command or "")
    name = name or folder.resolve().name
    watched = Watch(folder, record_file(), name, waits.settle, waits.patience, least_effect / 100)
    is_slower = False
    while True:
        for found in watched.look():
            say(_json(found) if as_json else found.line())
            if found.outcome == "slower":
                is_slower = True
                _run(words, found)
                if when_slower.stop:
                    return EXIT_REGRESSION
        if once and watched.is_idle:
            return EXIT_REGRESSION if is_slower else 0
        time.sleep(waits.interval)


def _json(found: WatchedTrace) -> str:
    return json_text(found.to_dict(), ascii_only=True, indent=None).rstrip()


def _run(words: list[str], found: WatchedTrace) -> None:
    """Run the command without a shell; the line is its input."""
    if not words:
        return
    try:
        code = subprocess.run(words, input=f"{_json(found)}\n".encode(), check=False).returncode
        problem = f"exit code {code}" if code else ""
    except OSError as error:
        problem = str(error.strerror)
    if problem:
        say(f"warpline: {words[0]}: {problem}", err=True)
