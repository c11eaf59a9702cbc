"""The store at which the ranks of a job meet: the processes of `warpline try` run one command side by side, which names
one port or file, and each job gets its own in place of it."""

from __future__ import annotations

import contextlib
import os
import socket
from pathlib import Path
from typing import Any

from warpline.capture.patches import replace


def give_own_stores(torch: Any, folder: Path) -> None:
    """Replace the port or the file of each store; all processes of a job have the same folder."""
    if not torch.distributed.is_available():
        return

    def with_own_port(original: Any) -> Any:
        def init(store: Any, host_name: str, port: int, *arguments: Any, **named: Any) -> None:
            original(store, host_name, port and own_port(folder, port), *arguments, **named)
            own_port(folder, store.port, store.port)  # which the other ranks may get instead of the port that was named

        return init

    def with_own_file(original: Any) -> Any:
        def init(store: Any, file_name: str, *arguments: Any, **named: Any) -> None:
            original(store, str(folder / f"store-{file_name.replace(os.sep, '-')}"), *arguments, **named)

        return init

    replace(torch.distributed.TCPStore, "__init__", with_own_port)
    replace(torch.distributed.FileStore, "__init__", with_own_file)


def own_port(folder: Path, port: int, own: int = 0) -> int:
    """The port that a job uses in place of this one: what the first process to ask chooses, a free one by default."""
    chosen = folder / f"port-{port}"
    if not chosen.is_symlink():
        with contextlib.suppress(FileExistsError):  # unlike a file, a link never exists without its content
            chosen.symlink_to(str(own or free_port()))
    return int(chosen.readlink().name)


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as one:
        one.bind(("", 0))
        return int(one.getsockname()[1])
