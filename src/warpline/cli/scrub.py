"""``warpline scrub``: makes a profile safe to share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from msgspec import Struct, to_builtins

from warpline.cli.options import PATH, bundle, json_option
from warpline.cli.output import print_report
from warpline.cli.write import print_json, say
from warpline.errors import EXIT_FAILED, UsageError
from warpline.reports.console import progress
from warpline.reports.scrub import scrub_report
from warpline.scrub import file as work
from warpline.scrub.file import ScrubResult

SCHEMA = "warpline.scrub/2"


class ScrubTarget(Struct, frozen=True):
    """The file to write."""

    output: Path | None
    in_place: bool
    force: bool


@click.command()
@click.argument("file", type=PATH, metavar="FILE", help="A torch.profiler trace (.json, .json.gz) or an nsys export.")
@bundle(
    "target",
    ScrubTarget,
    click.option(
        "-o",
        "--output",
        type=PATH,
        metavar="OUT",
        help="Write to this file; default: NAME.scrubbed.ext in the working directory.",
    ),
    click.option("--in-place", is_flag=True, help="Replace the file itself."),
    click.option("-f", "--force", is_flag=True, help="Replace the output if it exists."),
)
@click.option("--check", is_flag=True, help="Write nothing; list what would change (exit code 1).")
@click.option(
    "--keep",
    multiple=True,
    metavar="FIELD",
    help="Keep a field that --check lists, or names (NVTX ranges, Python functions); repeatable.",
)
@json_option
def scrub(file: Path, target: ScrubTarget, check: bool, keep: tuple[str, ...], as_json: bool) -> None:
    """Write a copy of a profile that can be shared: only what an analysis needs and what is known to be harmless.

    Times, ids, shapes, kernel and op names pass; names that you chose become pseudonyms; everything else is dropped.
    The diagnosis is the same.

    Examples:

      warpline scrub trace.json.gz

      warpline scrub --check profile.sqlite

      warpline scrub profile.sqlite -o shared.sqlite.gz --keep names
    """
    if check and (target.in_place or target.output is not None):
        raise UsageError("nothing-written", "--check writes nothing", "leave out -o and --in-place")
    with progress(f"scrubbing {file.name}") as done:
        if check:
            result = work.check(file, keep, done)
        else:
            result = work.scrub(
                file, target.output, keep=keep, in_place=target.in_place, force=target.force, progress=done
            )
    if as_json:
        print_json(_as_dict(result))
    else:
        print_report(scrub_report(result))
    _summarise(result)
    if check and not result.clean:
        raise click.exceptions.Exit(EXIT_FAILED)


def _summarise(result: ScrubResult) -> None:
    replaced, dropped = result.count("pseudonymised"), result.count("dropped")
    say(f"{result.kept:,} values kept, {replaced:,} pseudonymised, {dropped:,} dropped", err=True)


def _as_dict(result: ScrubResult) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "file": str(result.file),
        "format": result.format,
        "output": None if result.output is None else str(result.output),
        "clean": result.clean,
        "keep": list(result.keep),
        "counts": {
            "kept": result.kept,
            "pseudonymised": result.count("pseudonymised"),
            "dropped": result.count("dropped"),
        },
        "texts": to_builtins(result.texts),
        "changes": to_builtins(result.changes),
    }
