"""``warpline view``: the page of a trace of any size, served to this machine's browser."""

from __future__ import annotations

import shlex
from importlib.util import find_spec
from pathlib import Path

import click

from warpline.cli.options import (
    ncu_option,
    no_cache_option,
    open_with_progress,
    step_range_option,
    steps_option,
    trace_argument,
)
from warpline.cli.output import say, short_path
from warpline.errors import WarplineError

INSTALL = "pip install 'warpline[view]'"
LARGEST_PORT = 65535


@click.command()
@trace_argument
@click.option(
    "--port", type=click.IntRange(0, LARGEST_PORT), default=0, help="Listen on this port; 0 takes a free one."
)
@click.option("--browser/--no-browser", default=True, help="Open the page in the browser.")
@steps_option
@step_range_option
@click.option("--why/--no-why", default=None, help="Replay the trace for a verdict and fixes; default: if quick.")
@ncu_option
@no_cache_option
def view(
    trace: Path,
    port: int,
    browser: bool,
    steps: str | None,
    step_range: str | None,
    why: bool | None,
    ncu_reports: tuple[Path, ...],
    no_cache: bool,
) -> None:
    """Show the report of a trace of any size in the browser; short events are fetched when you zoom in.

    The page is served on 127.0.0.1 alone, under a secret address, until Ctrl-C.

    Examples:

      warpline view trace.json.gz

      warpline view trace.json.gz --port 8080 --no-browser
    """
    missing = [package for package in ("starlette", "uvicorn") if find_spec(package) is None]
    if missing:
        raise WarplineError("needs-view", f"view needs {' and '.join(missing)}", INSTALL)
    opened = open_with_progress(trace, steps, step_range, no_cache)
    from warpline.dive.answer import dive_files  # noqa: PLC0415 - polars loads only when it is used
    from warpline.findings.diagnosis import diagnose  # noqa: PLC0415
    from warpline.reports.page.document import ServedPage  # noqa: PLC0415
    from warpline.ui.view import serve  # noqa: PLC0415

    dive = dive_files(ncu_reports, opened) if ncu_reports else None
    page = ServedPage(diagnose(opened, why), shlex.join(["warpline", "diagnose", short_path(trace)]), dive=dive)

    def ready(address: str) -> None:
        say(f"{address}  (Ctrl-C ends it)")
        if browser:
            import webbrowser  # noqa: PLC0415

            webbrowser.open(address)

    try:
        serve(page, port, ready)
    except OSError as error:
        raise WarplineError("cannot-listen", f"port {port}: {error.strerror}", "use --port 0") from error
