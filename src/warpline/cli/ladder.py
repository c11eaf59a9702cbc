"""``warpline ladder``: several versions of a program, a row each."""

from __future__ import annotations

import re
from pathlib import Path

import click

from warpline.capture.run_folder import recorded_files
from warpline.cli.options import PATH, least_effect_option, verbose_option
from warpline.cli.output import ReportFormat, ReportOutput, output_options
from warpline.cli.selection import StepSelection, selection_options
from warpline.cli.write import refuse_existing, say, write_text
from warpline.compare.ladder import ladder as compare_rungs
from warpline.errors import UsageError
from warpline.exports.pages import ladder_page
from warpline.ranks.files import jobs_of_folder, natural_order
from warpline.reports.ladder import ladder_report, ladder_svg
from warpline.sources.detect import detect
from warpline.sources.kinds import DIRECTORY
from warpline.trace.open import profiles_in

SUFFIXES = {".json", ".sqlite", ".nsys-rep", ".nvvp", ".gz", ".xz", ".zst"}
"""Of profiles, plain and compressed."""
NUMBER = re.compile(r"^\d+[-_](?=.)")
"""Which keeps the files of a ladder in order."""


@click.command()
@click.argument("traces", nargs=-1, type=PATH, metavar="A B …")
@least_effect_option
@click.option("--svg", type=PATH, metavar="FILE.svg", help="Draw the ladder into this file.")
@output_options
@verbose_option
@selection_options
def ladder(
    traces: tuple[Path, ...],
    least_effect: float,
    svg: Path | None,
    output: ReportOutput,
    verbose: bool,
    selection: StepSelection,
) -> None:
    """Show several versions of a program as a ladder: time, launches, kernels that appear and vanish, predictions.

    Each rung is a recording or the folder of a run, and is compared with the one before it. A folder of several stands
    for all of them, in the order of their names. If a known fix was made between two rungs, the replay of the first of
    them says what it should gain.

    Examples:

      warpline ladder eager.json.gz graph.json.gz compiled.json.gz

      warpline ladder eager.json.gz graph.json.gz compiled.json.gz --svg ladder.svg

      warpline ladder run1 run2 run3 -o ladder.html

      warpline ladder .warpline/runs
    """
    if svg is not None and svg.suffix.lower() != ".svg":
        raise UsageError("unknown-format", f"{svg.name} is not an SVG file", "use the suffix .svg")
    refuse_existing(svg, output.force)
    rungs = tuple(rung for path in traces for rung in rungs_of(path))
    found = compare_rungs([selection.open(path) for path in rungs], rung_names(rungs), least_effect / 100)
    if svg is not None:
        write_text(svg, ladder_svg(found))
        say(f"wrote {svg}", err=True)
    if output.file is not None and output.format is ReportFormat.HTML:
        write_text(output.file, ladder_page(ladder_report(found, verbose=True), found))
        say(f"wrote {output.file}; open it in a browser", err=True)
    else:
        output.put(lambda: ladder_report(found, verbose), found.to_dict)


def rungs_of(path: Path) -> list[Path]:
    """The recordings and runs of a folder in the order of their names; anything else, a job of several ranks too, is
    one rung."""
    if not path.is_dir() or detect(path) is not DIRECTORY or recorded_files(path) or jobs_of_folder(path):
        return [path]
    files = sorted(profiles_in(path), key=lambda file: natural_order(str(file)))
    return list(dict.fromkeys(file.parent if recorded_files(file.parent) else file for file in files)) or [path]


def rung_names(paths: tuple[Path, ...]) -> list[str]:
    """A short name for each rung: of its file without number and suffixes, or with its folder if two have the same."""
    names = [NUMBER.sub("", _without_suffixes(path)) or str(path) for path in paths]
    return [
        f"{path.parent.name}/{name}" if names.count(name) > 1 else name for path, name in zip(paths, names, strict=True)
    ]


def _without_suffixes(path: Path) -> str:
    while path.suffix in SUFFIXES:
        path = path.with_suffix("")
    return path.name
