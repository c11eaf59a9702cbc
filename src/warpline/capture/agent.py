"""The agent that `warpline run` injects into the program: it starts a session in every process that loads torch."""

from __future__ import annotations

import atexit
import os
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

from warpline.capture.listeners import Listeners
from warpline.capture.patches import before
from warpline.capture.plan import Plan
from warpline.capture.process_record import RECORDED
from warpline.capture.session import Session
from warpline.capture.watch import LimitWatch, first_here


class Agent:
    """The session of this process and its listeners."""

    def __init__(self, torch: Any, plan: Plan) -> None:
        self._torch, self._plan = torch, plan
        self.session, self._listeners = self._session_and_listeners(speaks=first_here(Path(plan.folder)))
        LimitWatch(torch, self.session)
        atexit.register(self._at_exit)
        os.register_at_fork(after_in_child=self._after_fork)
        before(os, "_exit", lambda *_: self._at_exit())
        self._hook = sys.excepthook
        if plan.stop:
            sys.excepthook = self._on_exception
        if plan.whole:
            self.session.open_window()

    def _session_and_listeners(self, speaks: bool) -> tuple[Session, Listeners]:
        session = Session(self._torch, self._plan, self._idle, speaks)
        return session, Listeners(self._torch, session)

    def _idle(self) -> None:
        self._listeners.keep_only_profiler()

    def _on_exception(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        """Show no traceback of the Ctrl-C with which `warpline run --stop` ends the program, nor of what follows."""
        is_ours = issubclass(kind, KeyboardInterrupt) and self.session.record.state == RECORDED
        if not (is_ours or lacks_receiver(kind, trace)):
            self._hook(kind, error, trace)

    def _at_exit(self) -> None:
        self.session.close("exit")

    def _after_fork(self) -> None:
        """Reset a forked process: a running recording belongs to its parent."""
        self._listeners.remove()
        self.session.abandon()
        self.session, self._listeners = self._session_and_listeners(speaks=False)


def lacks_receiver(kind: type[BaseException], trace: TracebackType | None) -> bool:
    """Whether an error says only that nobody takes a tensor: the program has ended before the worker that loaded it."""
    sends = trace is not None and trace.tb_frame.f_globals.get("__name__") == "multiprocessing.resource_sharer"
    return sends and issubclass(kind, (ConnectionError, EOFError))


_agent: Agent | None = None


def arm(torch: Any) -> None:
    """Called once torch has been imported."""
    global _agent  # noqa: PLW0603 - one a process
    plan = Plan.from_environment()
    if plan is not None and _agent is None:
        _agent = Agent(torch, plan)


def agent() -> Agent | None:
    """The agent of this process, under `warpline run`."""
    return _agent
