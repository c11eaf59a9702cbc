"""Arguments and options that several commands share."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from warpline.trace.trace import Trace

trace_argument = click.argument(
    "trace",
    type=click.Path(path_type=Path),
    metavar="TRACE",
    help="A torch.profiler or JAX trace (.json, .json.gz), nsys export (.sqlite), .nsys-rep or .nvvp; - reads stdin.",
)
steps_option = click.option(
    "--steps", metavar="START:STOP", help="Use only these steps, START:STOP from 0: 3:6, 3:, -1."
)
step_range_option = click.option(
    "--step-range", metavar="NAME", help="Take this NVTX range or record_function as one step."
)
no_cache_option = click.option("--no-cache", is_flag=True, help="Parse the file again instead of using the cache.")
shapes_from_option = click.option(
    "--shapes-from",
    type=click.Path(path_type=Path),
    metavar="OTHER",
    help="Take shapes from this torch.profiler trace of the same program, for kernels without ops (nsys).",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
json_format_option = click.option("--json", "as_json", is_flag=True, help="Short for --format json.")
verbose_option = click.option("-v", "--verbose", is_flag=True, help="Show all sections.")
output_option = click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write to this file: .md, .txt or .json."
)
gpu_hour_option = click.option(
    "--gpu-hour",
    type=click.FloatRange(min=0, min_open=True),
    metavar="PRICE",
    help="Say what each fix saves a day at this price of a GPU hour.",
)
ncu_option = click.option(
    "--ncu",
    "ncu_reports",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="REPORT",
    help="Add what this report of Nsight Compute says of the trace's kernels; may be repeated.",
)
force_option = click.option("-f", "--force", is_flag=True, help="Overwrite the file given with -o.")


def open_with_progress(
    path: Path,
    steps: str | None,
    step_range: str | None,
    no_cache: bool,
) -> Trace:
    """Open a trace, with a spinner on stderr if it is a terminal."""
    from warpline.sources.stdin import STDIN, spooled_stdin  # noqa: PLC0415 - loaded when used
    from warpline.trace.open import open_trace  # noqa: PLC0415

    path = spooled_stdin() if path == STDIN else path
    with ExitStack() as stack:
        if sys.stderr.isatty():
            from warpline.reports.console import spinner  # noqa: PLC0415

            stack.enter_context(spinner(f"reading {path.name} …"))
        return open_trace(path, steps=steps, step_range=step_range, cache=not no_cache)


def open_lender(path: Path | None, no_cache: bool) -> Trace | None:
    """Open the trace given with --shapes-from."""
    return open_with_progress(path, None, None, no_cache) if path is not None else None


class Format(StrEnum):
    """How frames are written."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
