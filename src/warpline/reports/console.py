"""The console that every command prints with: text is text, never markup, and sanitised whatever file it comes from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from warpline.sanitise import sanitise, sanitise_lines

if TYPE_CHECKING:
    from rich.progress import Progress


class SafeConsole(Console):
    """A console on which a file's text can do nothing but be read.

    Strings are neither markup nor emoji codes. Everything that is printed, also by tables and spinners, is rendered to
    segments of text and style here: a segment's text keeps only what is visible, and newlines.
    """

    def __init__(self, *, stderr: bool = False, width: int | None = None) -> None:
        super().__init__(stderr=stderr, width=width, markup=False, emoji=False, highlight=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The segments of anything that can be printed; control segments are the console's own cursor movements."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(sanitise_lines(segment.text), segment.style)


class Say(Protocol):
    """Changes what a spinner says."""

    def __call__(self, what: str) -> None: ...


@contextmanager
def spinner(what: str) -> Iterator[Say]:
    """A spinner on stderr if it is a terminal, else nothing; the text is no markup."""
    console = SafeConsole(stderr=True)
    if not console.is_terminal:
        yield lambda what: None
        return
    with console.status(Text(sanitise(what))) as status:
        yield lambda what: status.update(Text(sanitise(what)))


def progress_bar(console: Console) -> Progress:
    """A progress bar that disappears at its end; its description is no markup."""
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn  # noqa: PLC0415 - loaded when used

    columns = TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn()
    return Progress(*columns, console=console, transient=True)
