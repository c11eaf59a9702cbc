"""``warpline sql``: SQL queries on the trace's tables."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from warpline.cli.options import Format, NoCacheOption, StepRangeOption, TraceArgument, open_with_progress
from warpline.cli.output import print_json, table_width


def sql(
    trace: TraceArgument,
    query: Annotated[
        str | None, typer.Argument(metavar="QUERY", help="A SELECT on the tables; default: list the tables.")
    ] = None,
    output_format: Annotated[Format, typer.Option("--format", help="Set the output format.")] = Format.TABLE,
    as_json: Annotated[bool, typer.Option("--json", help="Short for --format json.")] = False,
    step_range: StepRangeOption = None,
    no_cache: NoCacheOption = False,
) -> None:
    """Query the trace's tables with SQL (polars' dialect); without a query, list tables and columns.

    Examples:

      warpline sql trace.json.gz

      warpline sql trace.json.gz "select name, sum(end_ns - start_ns) ns from gpu group by name order by ns desc"

      warpline sql profile.sqlite "select gpu.name, api.name from gpu join api on gpu.api_id = api.id" --format csv
    """
    from warpline.front.query import run_query, table_list  # noqa: PLC0415 - polars loads only when it is used
    from warpline.reports.tabular import table_text, to_csv, to_records  # noqa: PLC0415

    opened = open_with_progress(trace, None, step_range, no_cache)
    frame = table_list(opened) if query is None else run_query(opened, query)
    if as_json or output_format is Format.JSON:
        print_json(to_records(frame))
    elif output_format is Format.CSV:
        sys.stdout.write(to_csv(frame))
    else:
        sys.stdout.write(table_text(frame, width=table_width()))
