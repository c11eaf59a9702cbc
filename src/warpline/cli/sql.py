"""``warpline sql``: SQL queries on the trace's tables."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from warpline.cli.options import TableFormat, json_format_option, note_json
from warpline.cli.selection import StepSelection, no_cache_option, step_range_option, trace_argument
from warpline.cli.write import print_json, put_text, table_width
from warpline.errors import UsageError
from warpline.front.query import run_query, table_list
from warpline.reports.frame_text import table_text, to_csv, to_records


@click.command()
@trace_argument
@click.argument("query", required=False, metavar="[QUERY]", help="A SELECT on the tables; default: list the tables.")
@click.option(
    "--format",
    "output_format",
    type=click.Choice([entry.value for entry in TableFormat]),
    default="table",
    callback=note_json,
    help="Set the output format.",
)
@json_format_option
@click.option("--max-rows", type=click.IntRange(min=0), metavar="N", help="Refuse an answer of more rows than this.")
@step_range_option
@no_cache_option
def sql(
    trace: Path,
    query: str | None,
    output_format: str,
    as_json: bool,
    max_rows: int | None,
    step_range: str | None,
    no_cache: bool,
) -> None:
    """Query the trace's tables with SQL (polars' dialect); without a query, list tables and columns.

    Examples:

      warpline sql trace.json.gz

      warpline sql trace.json.gz "select name, sum(end_ns - start_ns) ns from gpu group by name order by ns desc"

      warpline sql profile.sqlite "select gpu.name, api.name from gpu join api on gpu.api_id = api.id" --format csv
    """
    if query is not None and not trace.exists() and Path(query).is_file():
        hint = shlex.join(["warpline", "sql", query, str(trace)])
        raise UsageError("usage", "the trace stands before the query", hint)
    opened = StepSelection(step_range=step_range, no_cache=no_cache).open(trace)
    frame = table_list(opened) if query is None else run_query(opened, query, max_rows=max_rows)
    if as_json or output_format == TableFormat.JSON:
        print_json(to_records(frame))
    elif output_format == TableFormat.CSV:
        put_text(to_csv(frame, as_nsys=False))
    else:
        prose = () if query else ("column", "meaning")
        put_text(table_text(frame, width=table_width(), prose=prose, as_nsys=False))
