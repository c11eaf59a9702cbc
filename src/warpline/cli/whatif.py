"""``warpline whatif``: predicts the step time with a fix, by replaying the trace with it."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from warpline.cli.options import (
    JsonOption,
    NoCacheOption,
    StepRangeOption,
    StepsOption,
    TraceArgument,
    open_with_progress,
)
from warpline.cli.output import print_json, put_report

FIXES = "{fixes}"
"""Placeholder for the list of fixes; the registry loads only when the help is shown."""


def _names(incomplete: str = "") -> list[str]:
    from warpline.fixes.registry import all_fixes  # noqa: PLC0415 - polars loads only when it is used

    return sorted(name for name in all_fixes() if name.startswith(incomplete))


class WithFixes(TyperCommand):
    """A command whose help lists all fixes."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Fill in the list, then show the help."""
        self.help = (self.help or "").replace(FIXES, ", ".join(_names()))
        super().format_help(ctx, formatter)


def whatif(
    trace: TraceArgument,
    fix: Annotated[
        list[str] | None,
        typer.Option(
            "--fix",
            metavar="NAME",
            autocompletion=_names,
            help="Apply this fix; repeat to combine. Default: each fix alone.",
        ),
    ] = None,
    as_json: JsonOption = False,
    steps: StepsOption = None,
    step_range: StepRangeOption = None,
    no_cache: NoCacheOption = False,
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
    from warpline.reports.whatif import report, report_all  # noqa: PLC0415

    opened = open_with_progress(trace, steps, step_range, no_cache)
    predictions = [predict(opened, fix)] if fix else every_fix(opened)
    if as_json:
        answer = predictions[0].to_dict() if fix else [prediction.to_dict() for prediction in predictions]
        print_json(answer)
        return
    put_report(report(predictions[0], str(trace)) if fix else report_all(predictions, str(trace)))
