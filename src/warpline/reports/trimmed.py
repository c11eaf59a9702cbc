"""What rich lays out, printed without the spaces that it fills lines with."""

from __future__ import annotations

from rich.console import Console, RenderableType
from rich.text import Text


def print_trimmed(console: Console, renderable: RenderableType) -> None:
    """Prints the lines as they are laid out, less their trailing spaces."""
    for segments in console.render_lines(renderable, pad=False):
        line = Text.assemble(*((segment.text, segment.style or "") for segment in segments))
        line.rstrip()
        console.print(line, soft_wrap=True)
