"""The console that every command prints with: text is text, never markup or emoji codes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
from rich.text import Text

from warpline.sanitise import sanitise


def plain_console(*, stderr: bool = False, width: int | None = None) -> Console:
    """A console that shows text as it is. What comes from a file is sanitised before it: reports by their renderer."""
    return Console(stderr=stderr, width=width, markup=False, emoji=False, highlight=False)


class Say(Protocol):
    """Changes what a spinner says."""

    def __call__(self, what: str) -> None: ...


@contextmanager
def spinner(what: str) -> Iterator[Say]:
    """A spinner on stderr if it is a terminal, else nothing; the text is no markup."""
    console = plain_console(stderr=True)
    if not console.is_terminal:
        yield lambda what: None
        return
    with console.status(Text(sanitise(what))) as status:
        yield lambda what: status.update(Text(sanitise(what)))


@contextmanager
def progress(what: str) -> Iterator[Callable[[float], None]]:
    """A progress bar on stderr if it is a terminal, else nothing; it takes the share that is done, and disappears."""
    console = plain_console(stderr=True)
    if not console.is_terminal:
        yield lambda share: None
        return
    columns = TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn()
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(sanitise(what), total=1.0)
        yield lambda share: bar.update(task, completed=share)
