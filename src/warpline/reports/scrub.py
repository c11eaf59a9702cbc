"""What leaks from a profile, or was taken out of it: kinds, counts and places, never the values."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from warpline.reports.numbers import numbers_table
from warpline.scrub.file import Result

MOST_PLACES = 40


def render_scrub(result: Result, width: int) -> RenderableType:
    """The leaks as a table, and what to type next."""
    parts: list[RenderableType] = [Text(_headline(result), style="bold")]
    rows = [[f"{leak.count:,}", leak.kind, leak.place] for leak in result.leaks]
    if rows:
        parts.append(numbers_table(["count", "kind", "place"], rows[:MOST_PLACES], width))
    if len(rows) > MOST_PLACES:
        parts.append(Text(f"and {len(rows) - MOST_PLACES} further places; --json lists them all"))
    if result.output is not None:
        parts.append(Text(f"\nLook at it once more before you share it: warpline scrub --check {result.output}"))
    elif rows:
        parts.append(Text(f"\nTo take it out: warpline scrub {result.file}"))
    return Group(*parts)


def _headline(result: Result) -> str:
    kept = f" ({', '.join(result.kept)} not looked for)" if result.kept else ""
    count = sum(leak.count for leak in result.leaks)
    if result.output is not None:
        return f"{result.output} written, {count:,} values taken out{kept}"
    if result.clean:
        return f"{result.file.name} is clean{kept}"
    return f"{result.file.name} would leak {count:,} values{kept}"
