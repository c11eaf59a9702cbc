"""One call of the server: a command of warpline that ends with the server, however that ends.

The server holds the other end of standard input, which the system closes when the server is gone.
"""

from __future__ import annotations

import os
import runpy
import signal
from threading import Thread


def end_with_server() -> None:
    """Watch for the end of the server. The command itself gets an empty standard input."""
    server, nothing = os.dup(0), os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)

    def watch() -> None:
        os.read(server, 1)
        os.killpg(0, signal.SIGKILL)  # with the programs that it started

    Thread(target=watch, daemon=True).start()


if __name__ == "__main__":
    end_with_server()
    runpy.run_module("warpline", run_name="__main__")
