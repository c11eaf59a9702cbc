"""``warpline export``: the trace and its diagnosis for other viewers, and as pictures."""

from __future__ import annotations

from pathlib import Path

import click
from msgspec import Struct
from msgspec.structs import asdict

from warpline.cli.options import PATH, bundle, json_option
from warpline.cli.selection import StepSelection, selection_options, trace_argument
from warpline.cli.write import print_json, refuse_existing, say, say_error
from warpline.errors import UsageError, WarplineError
from warpline.exports.formats import Exported, Picture, export_format
from warpline.exports.formats import export as write
from warpline.units import several, size

SCHEMA = "warpline.export/1"


class ExportOutput(Struct, frozen=True):
    """The files to write, and whether the answer about them is JSON."""

    files: tuple[Path, ...]
    force: bool
    as_json: bool


@click.command()
@trace_argument
@bundle(
    "output",
    ExportOutput,
    click.option(
        "-o",
        "--output",
        "files",
        type=PATH,
        multiple=True,
        required=True,
        metavar="FILE",
        help="Write .pftrace, .perfetto.json, .perfetto.json.gz, .speedscope.json, .svg or .png; "
        "repeat for several files.",
    ),
    click.option("-f", "--force", is_flag=True, help="Overwrite files."),
    json_option,
)
@click.option(
    "--what",
    type=click.Choice(["timeline", "time", "roofline"]),
    default="timeline",
    help="Draw one step, where the time goes, or the roofline (.svg, .png).",
)
@click.option("--why/--no-why", default=None, help="Replay the trace for findings; default: if quick.")
@selection_options
def export(trace: Path, output: ExportOutput, what: Picture, why: bool | None, selection: StepSelection) -> int:
    """Write the trace with its diagnosis for Perfetto or speedscope, or draw it as SVG or PNG, by the file's name.

    Perfetto (https://ui.perfetto.dev) shows steps, findings and idle causes as tracks beside streams, ranges, ops,
    Python frames and API calls, with arrows from launches to kernels. speedscope (https://www.speedscope.app) shows
    flame graphs of GPU time by the stack that launched it, and of each thread's CPU time.

    Examples:

      warpline export trace.json.gz -o trace.pftrace

      warpline export trace.json.gz -o stacks.speedscope.json --steps 1:

      warpline export trace.json.gz -o step.svg --steps 2

      warpline export trace.json.gz -o roofline.png --what roofline -f
    """
    wanted, failed = [], []
    for file in output.files:
        refuse_existing(file, output.force)
        try:
            export_format(file)
            wanted.append(file)
        except UsageError:
            raise
        except WarplineError as error:  # a package is missing, which the other files do not need
            failed.append(error)
    if not wanted:
        raise failed[0]
    opened = selection.open(trace)
    written = [write(opened, file, what, why) for file in wanted]
    if output.as_json:
        print_json({"schema": SCHEMA, "files": [{**asdict(one), "file": str(one.file)} for one in written]})
    else:
        for one in written:
            say(_line(one))
    for missing in failed:
        say_error(missing)
    return failed[0].exit_code if failed else 0


def _line(one: Exported) -> str:
    """What was written, and how to look at it."""
    wrote = f"wrote {one.file} ({size(one.size_bytes)}"
    if one.format in {".svg", ".png"}:
        return f"{wrote})"
    if one.format == ".speedscope.json":
        return f"{wrote}, {several(one.bars, 'stack')}): open it at https://www.speedscope.app"
    return f"{wrote}, {several(one.bars, 'bar')}, {several(one.arrows, 'arrow')}): open it at https://ui.perfetto.dev"
