"""What `ops` and `parts` have in common: a trace, one table of it, and the same options around it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import click

from warpline.cli.options import (
    force_option,
    json_option,
    no_cache_option,
    open_lender,
    open_with_progress,
    output_option,
    shapes_from_option,
    step_range_option,
    steps_option,
    trace_argument,
)
from warpline.cli.output import format_of, put_answer, refuse_existing

if TYPE_CHECKING:
    from warpline.reports.sections import Report


class Table(Protocol):
    """An answer with one table."""

    @property
    def device(self) -> str | None:
        """The chip that it was compared with."""

    @property
    def window_ns(self) -> int:
        """The time that it is about."""

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""


Made = tuple[Table, Callable[[Any, str, str, int], "Report"]]
"""The table, and what makes a report of it, a title, the file and the number of rows."""
_OPTIONS = (
    trace_argument,
    click.option("--top", type=click.IntRange(min=1), default=20, help="List this many rows."),
    click.option("--device", metavar="NAME", help="Compare with this chip; see warpline device."),
    shapes_from_option,
    json_option,
    output_option,
    force_option,
    steps_option,
    step_range_option,
    no_cache_option,
)


def table_verb(make: Callable[..., Made]) -> Callable[..., None]:
    """The verb around a function of the opened trace, the device, the trace that lends shapes, and its own options."""

    @wraps(make)
    def verb(
        trace: Path,
        top: int,
        device: str | None,
        shapes_from: Path | None,
        as_json: bool,
        output: Path | None,
        force: bool,
        steps: str | None,
        step_range: str | None,
        no_cache: bool,
        **own: Any,
    ) -> None:
        chosen = format_of(output, as_json)
        refuse_existing(output, force)
        opened = open_with_progress(trace, steps, step_range, no_cache)
        table, report = make(opened, device=device, shapes_from=open_lender(shapes_from, no_cache), **own)
        from warpline.reports.title import recording  # noqa: PLC0415 - polars loads only when it is used
        from warpline.units import duration  # noqa: PLC0415

        title = recording(opened, duration(table.window_ns), chip=device and table.device)
        put_answer(table.to_dict(), report(table, title, str(trace), top), chosen, output)

    for option in reversed(_OPTIONS):
        verb = option(verb)
    return verb
