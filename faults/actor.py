"""A process that holds something to measure, and works whenever it is asked."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

from faults.jobs import JOB_LIMIT_S, Result, failure, limited

Worker = Callable[[Any], Result]


class Actor:
    """A process, forked before CUDA starts, that builds its work and then does it whenever it is asked."""

    def __init__(self, job: Any, build: Callable[[], Worker]) -> None:
        self.job = job
        """What it holds, for messages."""
        self._failure: Result | None = None
        context = multiprocessing.get_context("fork")
        self._pipe, there = context.Pipe()
        self._process = context.Process(target=_live, args=(build, there))
        self._process.start()
        there.close()

    def ask(self, what: Any) -> Result:
        """What the process answers; an answer with an `error` is its last."""
        self.tell(what)
        return self.answer()

    def tell(self, what: Any) -> None:
        """Ask without waiting for the answer."""
        with contextlib.suppress(OSError):
            self._pipe.send(what)

    def answer(self) -> Result:
        """Waits for what the process has to say."""
        if self._failure is not None:
            return self._failure
        result: Result = {"error": "the process is gone"}
        with contextlib.suppress(EOFError, OSError):
            if self._pipe.poll(JOB_LIMIT_S + 10):
                result = self._pipe.recv()
        if "error" in result:
            print(f"{self.job}: {result['error']}", file=sys.stderr, flush=True)
            self._failure = result
        return result

    @property
    def failed(self) -> bool:
        """Whether it has given its last answer."""
        return self._failure is not None

    def end(self) -> None:
        """Ends the process, whatever it is doing."""
        self.tell(None)
        self._process.join(2)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


def _live(build: Callable[[], Worker], pipe: Any) -> None:
    """A process's life: it builds its work, says that it is ready, and works when asked until it is told to end."""
    try:
        with limited():
            worker = build()
        pipe.send({})
        while (asked := pipe.recv()) is not None:
            with limited():
                result = worker(asked)
            pipe.send(result)
    except Exception as error:
        traceback.print_exc()
        pipe.send(failure(error))
    finally:
        os._exit(0)
