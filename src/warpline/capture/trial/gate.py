"""Windows of steps, timed one by one: at the end of each the program waits until it may run the next.

The command that started the process keeps baseline and variants alive together and lets one at a time run a window, so
that all are measured within the same seconds. It writes into the file `windows_allowed` how many windows this process
may run; each rank of a job reads it, and the first writes the times.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

ALLOWED, WINDOWS, READY = "windows_allowed", "windows.jsonl", "ready.json"
POLL_S, STARTER_CHECK_S = 0.002, 1.0
WORKERS_START_S = 30.0
"""Workers of a compiler are not waited for longer."""


class WindowGate:
    """Counts steps, and times windows of them."""

    def __init__(
        self,
        torch: Any,
        folder: str,
        starter: int,
        steps: tuple[int, int, int],
        state: Callable[[], dict[str, Any]],
        writes: bool,
    ) -> None:
        """`steps`: before the first window, before each window's clock starts, and in a window."""
        self._torch, self._folder, self._starter, self._state, self._writes = (
            torch,
            Path(folder),
            starter,
            state,
            writes,
        )
        self._skip, self._settle, self._per = steps
        self._done = 0
        self.steps = 0
        self.on_ready: Callable[[], None] = lambda: None
        self._next = max(1, self._skip)
        self._phase = self._ready
        self._started = 0.0
        self._graphs = 0

    def step(self) -> None:
        """A step has ended."""
        self.steps += 1
        if self.steps >= self._next:
            self._phase()

    def is_amid_window(self) -> bool:
        """Whether a window is timed, and this step is not its last."""
        return self._phase == self._end and self.steps + 1 < self._next

    def _ready(self) -> None:
        self._synchronise()
        self.on_ready()
        self._wait()

    def _wait(self) -> None:
        """Wait until one more window may run."""
        checked = time.monotonic()
        while self._windows_allowed() <= self._done:
            time.sleep(POLL_S)
            if time.monotonic() - checked > STARTER_CHECK_S:
                checked = time.monotonic()
                if not is_awaited(self._folder, self._starter):
                    leave()
        self._next, self._phase = self.steps + self._settle, self._start
        if not self._settle:
            self._start()

    def _start(self) -> None:
        self._synchronise()
        self._next, self._phase = self.steps + self._per, self._end
        self._graphs = compiled_graphs()
        self._started = time.perf_counter()

    def _end(self) -> None:
        self._synchronise()
        seconds = time.perf_counter() - self._started
        self._done += 1
        window = {
            "last_step": self.steps,
            "step_s": seconds / self._per,
            "compiled": compiled_graphs() != self._graphs,
            **self._state(),
        }
        if self._writes:
            with (self._folder / WINDOWS).open("a") as file:
                file.write(json.dumps(window) + "\n")
        self._wait()

    def _windows_allowed(self) -> int:
        with contextlib.suppress(OSError, ValueError):
            return int((self._folder / ALLOWED).read_text())
        return 0

    def _synchronise(self) -> None:
        if self._torch.cuda.is_initialized():
            self._torch.cuda.synchronize()


def compiled_graphs() -> int:
    """How many graphs torch.compile has made so far."""
    return int(compile_counts().get("graphs", 0))


def compile_counts() -> dict[str, Any]:
    """What torch.compile did: graphs, breaks with their first reasons, seconds."""
    utils = sys.modules.get("torch._dynamo.utils")
    if utils is None:
        return {}
    counters = utils.counters
    seconds = utils.compilation_time_metrics.get("_compile.compile_inner", [])
    return {
        "graphs": counters["stats"]["unique_graphs"],
        "breaks": sum(counters["graph_break"].values()),
        "reasons": [" ".join(str(reason).split())[:150] for reason in list(counters["graph_break"])[:3]],
        "seconds": round(sum(seconds), 1),
        "cuda_graph_skips": counters["inductor"]["cudagraph_skips"],
    }


def await_compile_workers() -> None:
    """Wait until torch.compile's worker processes have started, where they are starting: a compilation that is over
    sooner leaves them to import torch in the first window, on cores that the program's own threads wait for."""
    compiler = getattr(sys.modules.get("torch._inductor.async_compile"), "AsyncCompile", None)
    starting = getattr(compiler, "_ready_future", None)
    if starting is not None:
        concurrent.futures.wait([starting], WORKERS_START_S)


def is_awaited(folder: Path, starter: int) -> bool:
    """Whether the command that started this process still waits for it."""
    return folder.is_dir() and _is_alive(starter)


def leave() -> NoReturn:
    """End this process in the middle of the program's loop. The program could catch an exception, and an ordinary exit
    would run its handlers as if it had finished: it would write checkpoints and logs of a run that is none."""
    os._exit(0)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # it is somebody else's
    return True
