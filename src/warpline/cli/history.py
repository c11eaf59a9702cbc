"""``warpline history``: the trend of a program over all runs of its gate, and where it changed."""

from __future__ import annotations

from pathlib import Path

import click

from warpline.cli.baseline import folder_option
from warpline.cli.options import PATH
from warpline.cli.output import ReportOutput, output_options
from warpline.cli.write import refuse_existing, say, write_text
from warpline.compare.history import names_in, read_history
from warpline.errors import UsageError, meant
from warpline.reports.history import history_svg, report
from warpline.sources.record_files import record_file


@click.command()
@click.argument("name", required=False, metavar="[NAME]")
@click.option("--number", default="step_ms", metavar="NUMBER", help="Show this number of the gate.")
@click.option("--least-effect", type=float, default=2.0, metavar="PERCENT", help="Ignore smaller changes of the level.")
@click.option("--svg", type=PATH, metavar="FILE", help="Draw the trend into this file.")
@folder_option
@output_options
def history(
    name: str | None, number: str, least_effect: float, svg: Path | None, folder: Path, output: ReportOutput
) -> None:
    """Show how a number of the gate developed, run by run, and where its level changed.

    Every run of warpline gate is recorded. NAME is the baseline, or the --name given to the gate.

    Examples:

      warpline history train

      warpline history train --number launches --svg launches.svg
    """
    refuse_existing(svg, output.force)
    if not 0 <= least_effect < 100:
        raise UsageError("bad-effect", f"the least effect is a percentage, not {least_effect}")
    path, project = record_file(), folder.resolve().parent
    known = names_in(path, project)
    if name is None and len(known) == 1:
        name = known[0]
    if name is None or name not in known:
        if name is None and known:
            raise UsageError("which-history", f"{len(known)} baselines have a history", f"name one: {', '.join(known)}")
        what = meant(name, known) if name and known else "no gate has run here yet"
        raise UsageError("no-history", f"there is no history of {name or 'this project'}", what)
    found = read_history(path, project, name, number, least_effect / 100)
    if svg is not None:
        write_text(svg, history_svg(found))
        say(f"wrote {svg}", err=True)
    output.put(lambda: report(found), found.to_dict)
