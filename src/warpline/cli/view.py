"""``warpline view``: the page of a trace of any size, served to this machine's browser."""

from __future__ import annotations

import webbrowser
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from warpline.cli.options import ncu_option, why_option
from warpline.cli.selection import StepSelection, selection_options, trace_argument
from warpline.cli.write import command_line, say
from warpline.dive.answer import dive_files
from warpline.errors import WarplineError
from warpline.findings.diagnosis import diagnose
from warpline.reports.page.document import ServedPage
from warpline.sources.private_files import create_file

INSTALL = "pip install starlette uvicorn"
LARGEST_PORT = 65535


@click.command()
@trace_argument
@click.option(
    "--port", type=click.IntRange(0, LARGEST_PORT), default=0, help="Listen on this port; 0 takes a free one."
)
@click.option("--browser/--no-browser", default=True, help="Open the page in the browser.")
@why_option
@ncu_option
@selection_options
def view(
    trace: Path,
    port: int,
    browser: bool,
    why: bool | None,
    ncu_reports: tuple[Path, ...],
    selection: StepSelection,
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
    from warpline.ui.view import serve  # noqa: PLC0415 - starlette is optional

    opened = selection.open(trace)
    dive = dive_files(ncu_reports, opened) if ncu_reports else None
    page = ServedPage(diagnose(opened, why), command_line("diagnose", trace), dive=dive)

    with TemporaryDirectory(prefix="warpline-") as folder:

        def ready(address: str) -> None:
            say(f"{address}  (Ctrl-C ends it)")
            if browser:
                webbrowser.open(_redirection(Path(folder), address).as_uri())

        try:
            serve(page, port, ready)
        except OSError as error:
            raise WarplineError("cannot-listen", f"port {port}: {error.strerror}", "use --port 0") from error


def _redirection(folder: Path, address: str) -> Path:
    """A file that leads the browser to the address: a command line, which all users see, must not hold the token."""
    file = folder / "view.html"
    with create_file(file) as opened:
        opened.write(f'<!doctype html><meta http-equiv="refresh" content="0;url={address}">'.encode())
    return file
