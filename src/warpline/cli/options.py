"""Arguments and options that several commands share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from functools import partial
from pathlib import Path
from threading import Event, Thread
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
    load: Callable[[], Iterator[None]] | None = None,
) -> Trace:
    """Open a trace, with a spinner on stderr if it is a terminal. `load` imports what comes next, on a second core
    while the file is read: what makes its tables before it yields, and the analyses while they are made."""
    from warpline.sources.stdin import STDIN, spooled_stdin  # noqa: PLC0415 - loaded when used
    from warpline.trace.memory import hand_back_large_blocks  # noqa: PLC0415
    from warpline.trace.open import open_trace  # noqa: PLC0415

    hand_back_large_blocks()
    path = spooled_stdin() if path == STDIN else path
    opened = partial(open_trace, path, steps=steps, step_range=step_range, cache=not no_cache)
    with ExitStack() as stack:
        if sys.stderr.isatty():
            from warpline.reports.console import spinner  # noqa: PLC0415

            stack.enter_context(spinner(f"reading {path.name} …"))
        return opened(before_imports=stack.enter_context(_meanwhile(load))) if load else opened()


@contextmanager
def _meanwhile(load: Callable[[], Iterator[None]]) -> Iterator[Callable[[bool], None]]:
    """Run `load` on another thread, and give what waits until it yields, or for its end. Nothing may be imported here
    before that, nor afterwards what it may be importing: of two threads that import one package, Python gives one a
    half-made module, or an error, rather than let both wait."""
    yielded = Event()

    def run() -> None:
        try:
            for _ in load():
                yielded.set()
        finally:
            yielded.set()

    thread = Thread(target=run, name="warpline-load", daemon=True)
    thread.start()

    def wait(to_the_end: bool) -> None:
        yielded.wait()
        if to_the_end:
            thread.join()

    try:
        yield wait
    finally:
        thread.join()


def open_lender(path: Path | None, no_cache: bool) -> Trace | None:
    """Open the trace given with --shapes-from."""
    return open_with_progress(path, None, None, no_cache) if path is not None else None


class Format(StrEnum):
    """How frames are written."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
