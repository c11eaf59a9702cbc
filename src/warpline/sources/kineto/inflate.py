"""Pieces of a file, read and unpacked by a second thread."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from queue import Empty, Queue
from typing import Final

AHEAD: Final = 3
"""Windows unpacked in advance, because windows differ in length."""


@contextmanager
def ahead(pieces: Iterable[bytes]) -> Iterator[Iterator[bytes]]:
    """The same pieces, inflated by a second thread while the first thread reads earlier ones."""
    ready: Queue[bytes | BaseException | None] = Queue(AHEAD)
    stopped = threading.Event()

    def produce() -> None:
        try:
            for piece in pieces:
                ready.put(piece)
                if stopped.is_set():
                    return
            ready.put(None)
        except BaseException as error:  # raised again in the thread that waits for the piece
            ready.put(error)

    def consume() -> Iterator[bytes]:
        while True:
            item = ready.get()
            if item is None:
                return
            if isinstance(item, BaseException):
                raise item
            yield item

    thread = threading.Thread(target=produce, name="warpline-inflate", daemon=True)
    thread.start()
    try:
        yield consume()
    finally:
        stopped.set()
        while thread.is_alive():
            try:
                ready.get_nowait()
            except Empty:
                thread.join(0.001)
