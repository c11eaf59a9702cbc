"""``warpline whatif``: predicts the step time with a fix, by replaying the trace with it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import click

from warpline.analyses.platform import platform_of
from warpline.cli.output import ReportOutput, output_options
from warpline.cli.selection import StepSelection, selection_options, trace_argument
from warpline.errors import UsageError
from warpline.findings.fix_table import every_fix
from warpline.findings.fix_table import whatif as predict
from warpline.fixes.registry import all_fixes
from warpline.fixes.words import StepNoun
from warpline.hardware.vocabulary import in_words_of
from warpline.reports.pages import concept
from warpline.reports.title import recording
from warpline.reports.whatif import report, report_all


class ListsFixes(click.Command):
    """A command whose help lists fixes, those of other packages too."""

    fixes: Callable[[], Iterable[str]] = staticmethod(all_fixes)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The help with the list filled in."""
        written = self.help
        self.help = (written or "").format(fixes=", ".join(sorted(self.fixes())))
        super().format_help_text(ctx, formatter)
        self.help = written


def completed_fix(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """The fixes of such a command that begin so."""
    known = context.command.fixes() if isinstance(context.command, ListsFixes) else ()
    return [name for name in sorted(known) if name.startswith(incomplete)]


@click.command(cls=ListsFixes)
@trace_argument
@click.option(
    "--fix",
    multiple=True,
    metavar="NAME",
    shell_complete=completed_fix,
    help="Apply this fix; repeat, or separate by commas, to combine. Default: each fix alone.",
)
@output_options
@selection_options
def whatif(trace: Path, fix: tuple[str, ...], output: ReportOutput, selection: StepSelection) -> None:
    """Predict the step time with a fix, by replaying the trace with it and without profiler overhead.

    The fixes: {fixes}.

    Examples:

      warpline whatif trace.json.gz

      warpline whatif trace.json.gz --fix cuda_graph

      warpline whatif trace.json.gz --fix tf32 --fix remove_sync --json
    """
    opened = selection.open(trace)
    title, said = recording(opened), partial(in_words_of, platform_of(opened))
    noun = StepNoun.of(has_steps=len(opened.steps_in_view) > 0)
    if fix:
        names = [name for names in fix for name in names.split(",")]
        if unknown := next((name for name in names if name not in all_fixes() and concept(name)), None):
            raise UsageError("unknown-fix", f"{unknown!r} is not predicted", f"warpline explain {shlex.quote(unknown)}")
        prediction = predict(opened, names)
        output.put(lambda: said(report(prediction, title, noun)), lambda: said(prediction.to_dict()))
    else:
        predictions = every_fix(opened)
        output.put(
            lambda: said(report_all(predictions, title, noun)), lambda: said([one.to_dict() for one in predictions])
        )
