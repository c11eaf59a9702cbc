"""Options that several verbs share, and how a verb gets a group of them as one object."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Any

import click
from msgspec import Struct

from warpline.estimate import LEAST_EFFECT

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
PATH = click.Path(path_type=Path)
"""A file or folder, which a verb gets as a `Path`."""
WORDS = click.UNPROCESSED
"""Words of a program, or what may name a file: any bytes. Every other word is text (`main` refuses what is none)."""


def bundle(name: str, record: type[Any], *options: Decorator) -> Decorator:
    """Add options to a verb, which gets one record of their values, as the parameter `name`."""

    def decorate(verb: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(verb)
        def with_bundle(**values: Any) -> Any:
            fields = {field: values.pop(field) for field in record.__annotations__}
            return verb(**values, **{name: record(**fields)})

        decorated: Callable[..., Any] = with_bundle
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return decorate


class Asked(Struct):
    """What an error must know of the command line; `main` hands it to click as the context's object."""

    as_json: bool = False
    """Whether the answer was to be JSON: then the error is, too."""


def note_json(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
    """Callback of --json and --format: note that JSON was asked for."""
    context.ensure_object(Asked).as_json |= value in {True, "json"}
    return value


class TableFormat(StrEnum):
    """How tables of data are written."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"


json_format_option = click.option(
    "--json", "as_json", is_flag=True, callback=note_json, help="Short for --format json."
)
json_option = click.option("--json", "as_json", is_flag=True, callback=note_json, help="Print JSON.")
force_option = click.option("-f", "--force", is_flag=True, help="Overwrite existing files.")
verbose_option = click.option("-v", "--verbose", is_flag=True, help="Show all sections.")
why_option = click.option(
    "--why/--no-why", default=None, help="Replay the trace for a verdict and fixes; default: if quick."
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
    type=PATH,
    metavar="REPORT",
    help="Add what this report of Nsight Compute says of the trace's kernels; may be repeated.",
)
anyway_option = click.option(
    "--anyway", is_flag=True, help="Compare although the program, device or number of ranks differs."
)
least_effect_option = click.option(
    "--least-effect",
    type=float,
    default=100 * LEAST_EFFECT,
    metavar="PERCENT",
    help="Ignore smaller changes of the step.",
)
