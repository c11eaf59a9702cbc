"""``warpline sql``: SQL queries on the trace's tables."""

from __future__ import annotations

from pathlib import Path

import click

from warpline.cli.options import (
    Format,
    json_format_option,
    no_cache_option,
    open_with_progress,
    step_range_option,
    trace_argument,
)
from warpline.cli.output import print_json, put_text, table_width


@click.command()
@trace_argument
@click.argument("query", required=False, metavar="QUERY", help="A SELECT on the tables; default: list the tables.")
@click.option(
    "--format",
    "output_format",
    type=click.Choice([entry.value for entry in Format]),
    default="table",
    help="Set the output format.",
)
@json_format_option
@step_range_option
@no_cache_option
def sql(
    trace: Path,
    query: str | None,
    output_format: str,
    as_json: bool,
    step_range: str | None,
    no_cache: bool,
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
    if as_json or Format(output_format) is Format.JSON:
        print_json(to_records(frame))
    elif Format(output_format) is Format.CSV:
        put_text(to_csv(frame))
    else:
        put_text(table_text(frame, width=table_width()))
