"""``warpline whatif``: predicts the step time with a fix, by replaying the trace with it."""

from __future__ import annotations

from pathlib import Path

import click

from warpline.cli.options import (
    json_option,
    no_cache_option,
    open_with_progress,
    step_range_option,
    steps_option,
    trace_argument,
)
from warpline.cli.output import print_json, put_report

FIXES = "{fixes}"
"""Placeholder for the list of fixes; the registry loads only when the help is shown."""


def _names() -> list[str]:
    from warpline.fixes.registry import all_fixes  # noqa: PLC0415 - polars loads only when it is used

    return sorted(all_fixes())


def _completed(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in _names() if name.startswith(incomplete)]


class WithFixes(click.Command):
    """A command whose help lists all fixes."""

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The help with the list filled in."""
        written = self.help
        self.help = (written or "").replace(FIXES, ", ".join(_names()))
        super().format_help_text(ctx, formatter)
        self.help = written


@click.command(cls=WithFixes)
@trace_argument
@click.option(
    "--fix",
    multiple=True,
    metavar="NAME",
    shell_complete=_completed,
    help="Apply this fix; repeat to combine. Default: each fix alone.",
)
@json_option
@steps_option
@step_range_option
@no_cache_option
def whatif(
    trace: Path,
    fix: tuple[str, ...],
    as_json: bool,
    steps: str | None,
    step_range: str | None,
    no_cache: bool,
) -> None:
    """Predict the step time with a fix, by replaying the trace with it and without profiler overhead.

    The fixes: {fixes}.

    Examples:

      warpline whatif trace.json.gz

      warpline whatif trace.json.gz --fix cuda_graph

      warpline whatif trace.json.gz --fix tf32 --fix remove_sync --json
    """
    from warpline.fixes.whatif import every_fix  # noqa: PLC0415 - polars loads only when it is used
    from warpline.fixes.whatif import whatif as predict  # noqa: PLC0415
    from warpline.reports.title import recording  # noqa: PLC0415
    from warpline.reports.whatif import report, report_all  # noqa: PLC0415

    opened = open_with_progress(trace, steps, step_range, no_cache)
    predictions = [predict(opened, list(fix))] if fix else every_fix(opened)
    if as_json:
        answer = predictions[0].to_dict() if fix else [prediction.to_dict() for prediction in predictions]
        print_json(answer)
        return
    title = recording(opened)
    put_report(report(predictions[0], title) if fix else report_all(predictions, title))
