"""``warpline scrub``: makes a profile safe to share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from warpline.cli.options import json_option
from warpline.cli.output import print_json, put_report, say
from warpline.errors import EXIT_FAILED, UsageError

if TYPE_CHECKING:
    from warpline.scrub.file import ScrubResult

SCHEMA = "warpline.scrub/2"


@click.command()
@click.argument(
    "file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A torch.profiler trace (.json, .json.gz) or an nsys export.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="OUT",
    help="Write to this file; default: NAME.scrubbed.ext in the working directory.",
)
@click.option("--check", is_flag=True, help="Write nothing; list what would change (exit code 1).")
@click.option("--in-place", is_flag=True, help="Replace the file itself.")
@click.option("-f", "--force", is_flag=True, help="Replace the output if it exists.")
@click.option(
    "--keep",
    multiple=True,
    metavar="FIELD",
    help="Keep a field that --check lists, or names (NVTX ranges, Python functions); repeatable.",
)
@json_option
def scrub(
    file: Path,
    output: Path | None,
    check: bool,
    in_place: bool,
    force: bool,
    keep: tuple[str, ...],
    as_json: bool,
) -> None:
    """Write a copy of a profile that can be shared: only what an analysis needs and what is known to be harmless.

    Times, ids, shapes, kernel and op names pass; names that you chose become pseudonyms; everything else is dropped.
    The diagnosis is the same.

    Examples:

      warpline scrub trace.json.gz

      warpline scrub --check profile.sqlite

      warpline scrub profile.sqlite -o shared.sqlite.gz --keep names
    """
    from warpline.reports.console import progress  # noqa: PLC0415 - loads when it is used
    from warpline.scrub import file as work  # noqa: PLC0415

    if check and (in_place or output is not None):
        raise UsageError("nothing-written", "--check writes nothing", "leave out -o and --in-place")
    with progress(f"scrubbing {file.name}") as done:
        if check:
            result = work.check(file, keep, done)
        else:
            result = work.scrub(file, output, keep=keep, in_place=in_place, force=force, progress=done)
    if as_json:
        print_json(_as_dict(result))
    else:
        from warpline.reports.scrub import scrub_report  # noqa: PLC0415

        put_report(scrub_report(result))
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
        "changes": [
            {"action": change.action, "place": change.place, "count": change.count} for change in result.changes
        ],
    }
