"""``warpline explain``: one plain sentence about any name that a profile or an answer shows."""

from __future__ import annotations

import click

from warpline.cli.options import json_option
from warpline.cli.write import print_json, put_text, say_error
from warpline.errors import EXIT_FAILED, WarplineError
from warpline.reports.explain import SCHEMA, Meaning, explained, meanings, near

LONGEST = 16_384
"""Characters of a name, as in a trace."""


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME…", help="Names as a report shows them.")
@json_option
def explain(names: tuple[str, ...], as_json: bool) -> None:
    """Explain a name: a call, kernel, op, cause, fix, finding, health or lint code, metric, concept or lesson.

    A name of several words needs no quotes. A name that is unknown gets its closest matches, and exit code 1.

    Examples:

      warpline explain cuLibraryLoadData pthread_cond_wait

      warpline explain hidden_sync remove_sync no-kernels sync-in-loop

      warpline explain aten::copy_ "autograd::engine::evaluate_function: AddmmBackward0"

      warpline explain occupancy "pinned memory" lessons

      warpline explain ampere_sgemm_128x64_nn --json
    """
    found: list[Meaning] = []
    unknown: list[tuple[str, list[str]]] = []
    phrase = " ".join(names)
    is_one = any(meaning.kind in {"cause", "concept"} for meaning in meanings(phrase[:LONGEST]))
    for name in [phrase] if is_one else names:
        here = meanings(name[:LONGEST])
        found += here
        if not here:
            unknown.append((name, near(name[:LONGEST])))
    if as_json:
        missing = [{"name": name, "near": listed} for name, listed in unknown]
        print_json({"schema": SCHEMA, "names": [one.to_dict() for one in found], "unknown": missing})
    elif found:
        put_text("".join(map(explained, found)))
    for name, listed in unknown:
        hint = f"close: {', '.join(listed)}" if listed else "warpline kernel NAME and warpline metric NAME say more"
        say_error(WarplineError("unknown-name", f"nothing is known about {name!r}", hint))
    if unknown:
        raise click.exceptions.Exit(EXIT_FAILED)
