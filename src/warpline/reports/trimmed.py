"""Prints rich output without trailing spaces."""

from __future__ import annotations

from rich.console import Console, RenderableType
from rich.text import Text


def print_trimmed(console: Console, renderable: RenderableType) -> None:
    """Print the lines as laid out, without trailing spaces."""
    for segments in console.render_lines(renderable, pad=False):
        line = Text.assemble(*((segment.text, segment.style or "") for segment in segments))
        line.rstrip()
        console.print(line, soft_wrap=True)
