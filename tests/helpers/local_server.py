"""The server of `warpline view` on a thread of the test."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import uvicorn

from warpline.ui.view import Served, serve

PATIENCE_S = 60


@contextmanager
def listening(page: Served) -> Iterator[str]:
    """The address of the page while it is served."""
    servers: list[uvicorn.Server] = []
    addresses: list[str] = []
    ready = threading.Event()

    class Remembered(uvicorn.Server):
        def __init__(self, config: uvicorn.Config) -> None:
            super().__init__(config)
            servers.append(self)
            ready.set()

    with patch("uvicorn.Server", Remembered):
        thread = threading.Thread(target=serve, args=(page, 0, addresses.append))
        thread.start()
        assert ready.wait(PATIENCE_S)
    yield addresses[0]
    servers[0].should_exit = True
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
