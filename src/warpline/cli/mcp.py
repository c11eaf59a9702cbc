"""``warpline mcp``: the MCP server for coding agents."""

from __future__ import annotations

import os
import secrets
from importlib.util import find_spec
from pathlib import Path

import click

from warpline.cli.options import PATH
from warpline.cli.view import LARGEST_PORT
from warpline.cli.write import say
from warpline.errors import UsageError, WarplineError
from warpline.mcp.folders import Folders

INSTALL = "pip install mcp"
TOKEN = "WARPLINE_MCP_TOKEN"
MIN_TOKEN = 16


@click.command()
@click.argument("folders", nargs=-1, type=PATH, metavar="[FOLDER]…")
@click.option("--http", is_flag=True, help="Serve streamable HTTP on 127.0.0.1 instead of stdin and stdout.")
@click.option(
    "--port", type=click.IntRange(0, LARGEST_PORT), default=0, help="With --http: listen here; 0 takes a free port."
)
@click.option("--allow-run", is_flag=True, help="Offer the tool try, which runs Python files below the folders.")
def mcp(folders: tuple[Path, ...], http: bool, port: int, allow_run: bool) -> None:
    """Serve diagnose, whatif, compare, query, explain and try to a coding agent (MCP).

    Only files below the folders are read (default: the current one), and nothing is written but the cache. On stdin and
    stdout the server ends with its client. With --http every request needs the token of WARPLINE_MCP_TOKEN, or else
    the one that is printed.

    Examples:

      warpline mcp runs

      warpline mcp --allow-run .

      warpline mcp --http --port 8090 runs
    """
    if find_spec("mcp") is None:
        raise WarplineError("needs-mcp", "the server needs the package mcp", INSTALL)
    from warpline.mcp.server import serve_http, serve_stdio  # noqa: PLC0415 - mcp is optional
    from warpline.mcp.tools import Answers  # noqa: PLC0415 - and so is anyio

    answers = Answers(Folders.of(folders or (Path(),)), allow_run)
    if not http:
        serve_stdio(answers)
        return
    chosen = os.environ.get(TOKEN, "")
    if chosen and len(chosen) < MIN_TOKEN:
        raise UsageError("short-token", f"{TOKEN} has under {MIN_TOKEN} characters", "unset it to get a random one")
    token = chosen or secrets.token_urlsafe(24)

    def ready(address: str) -> None:
        say(f"{address}  (Ctrl-C ends it)")
        if not chosen:
            say(f"Authorization: Bearer {token}")

    try:
        serve_http(answers, port, token, ready)
    except OSError as error:
        raise WarplineError("cannot-listen", f"port {port}: {error.strerror}", "use --port 0") from error
