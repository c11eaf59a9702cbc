"""`warpline.profile`: record a part of a program from its own code."""

from __future__ import annotations

import atexit
import datetime
import functools
import importlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from warpline.capture import marks
from warpline.capture.agent import agent
from warpline.capture.environment import git_state, gpu_states, mattering_variables, scrubbed_command
from warpline.capture.launch import Ending
from warpline.capture.listeners import Listeners
from warpline.capture.manifest import gather, make_private, manifest_of, new_folder, write_manifest
from warpline.capture.missing_trace import why_nothing
from warpline.capture.plan import Plan, skipping
from warpline.capture.process_record import RECORDED
from warpline.capture.program import plain_name
from warpline.capture.session import DONE, Session
from warpline.capture.steps import EXPLICIT
from warpline.capture.watch import LimitWatch
from warpline.errors import UsageError, WarplineError
from warpline.sanitise import sanitise

UNLIMITED_S = 1e9


class profile:  # noqa: N801 - reads as a word of the language, like torch.profiler.profile
    """Record a block, some steps within it, or some calls of a function.

    `with profile("name"): …` records the whole block. With `steps`, it runs and times `skip` bare steps, runs `warmup`
    steps under the profiler, and records that many steps. Steps are found as in `warpline run`, or marked by
    `p.step()`. As a decorator, `@profile`, every call is a step. The recording ends after `seconds` at the latest.

    Afterwards `folder` is the output folder, and `trace` the file, or None if nothing was recorded.

    >>> with warpline.profile("training", steps=4) as recorded:
    ...     train()
    >>> warpline.diagnose(recorded.trace)
    """

    def __init__(
        self,
        name: str | Callable[..., Any] | None = None,
        *,
        steps: int | None = None,
        skip: int | None = None,
        warmup: int = Plan.warmup,
        seconds: float = Plan.seconds,
        megabytes: int = Plan.megabytes,
        shapes: bool = Plan.shapes,
        stacks: bool = Plan.stacks,
        memory: bool = Plan.memory,
        output: str | Path | None = None,
    ) -> None:
        if (steps is not None and steps < 1) or (skip or 0) < 0 or warmup < 0 or seconds <= 0 or megabytes < 1:
            raise UsageError("bad-bounds", "steps must be at least 1, and seconds and megabytes positive")
        self.folder: Path | None = None
        self.trace: Path | None = None
        self._function = name if callable(name) else None
        self._name = plain_name(str(getattr(name, "__name__", name) or "profile"))
        self._output = Path(output) if output is not None else None
        self._steps = steps
        self._plan = Plan(
            folder="",
            **skipping(skip),
            warmup=warmup,
            steps=steps or Plan.steps,
            seconds=seconds,
            megabytes=megabytes,
            after_s=UNLIMITED_S,
            whole=steps is None,
            shapes=shapes,
            stacks=stacks,
            memory=memory,
            look_steps=0,
        )
        self._session: Session | None = None
        self._listeners: Listeners | None = None
        self._within_run = False
        if self._function is not None:
            functools.update_wrapper(self, self._function)

    def __enter__(self) -> profile:
        self._begin(listen=self._steps is not None)
        if self._steps is None and self._session is not None:
            self._session.open_window()
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._end("exit" if kind is None else "exception")

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the decorated function; or, without one, decorate the given function."""
        if self._function is None:
            self._function = arguments[0]
            functools.update_wrapper(self, self._function)
            return self
        if self._session is None:
            self._plan = Plan(**{**self._plan.__dict__, "whole": False})
            self._begin(listen=False)
            atexit.register(self._end, "exit")
        try:
            return self._function(*arguments, **named)
        finally:
            self.step()

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def step(self) -> None:
        """Mark the end of a step."""
        if self._listeners is not None:
            marks.step()
        elif self._session is not None and self.trace is None:
            self._session.boundary(EXPLICIT)
            if self._session.record.state == RECORDED and self._session.phase == DONE:
                self._end("steps")

    def _begin(self, listen: bool) -> None:
        torch = _torch()
        running = agent()
        self._within_run = running is not None
        if running is not None:
            running.session.stand_down("the program also uses warpline.profile", says_so=False)
            folder = Path(running.session.plan.folder)
        else:
            now = datetime.datetime.now()  # the program's own clock
            folder = new_folder(f"{now:%Y%m%d-%H%M%S}-{self._name}", self._output)
        self.folder, self.trace, self._there_before = folder, None, set(folder.rglob("*"))
        self._session = Session(torch, Plan(**{**self._plan.__dict__, "folder": str(folder)}), self._stop_listening)
        if listen:
            self._listeners = Listeners(torch, self._session)
        LimitWatch(torch, self._session)
        os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        """Reset a forked process, which has no part in the recording."""
        self._stop_listening()
        if self._session is not None:
            self._session.abandon()
        self._listeners = self.folder = None

    def _stop_listening(self) -> None:
        if self._listeners is not None:
            self._listeners.remove()

    def _end(self, reason: str) -> None:
        session, folder = self._session, self.folder
        if session is None or folder is None or self.trace is not None:
            return
        session.close(reason)
        self._stop_listening()
        self._listeners = None
        if self._within_run:
            self.trace = folder / session.record.file if session.record.file else None
            return
        parts = gather(folder)
        facts: dict[str, Any] = {
            "name": folder.name,
            "started": None,
            "seconds": None,
            "command": scrubbed_command(sys.argv),
            "exit_code": None,
            "signal": None,
            "stopped": False,
            "git": git_state(),
            "devices": gpu_states(),
            "devices_sampled": "after the recording",
            "environment": mattering_variables(os.environ),
            "files": [part["file"] for part in parts if part["file"]],
        }
        try:
            write_manifest(folder, manifest_of(session.plan, parts, **facts))
        except WarplineError as error:  # the program comes first
            print(f"warpline: {error.line()}", file=sys.stderr)
        make_private(folder, self._there_before)
        nothing = why_nothing(folder, session.plan, parts, Ending(0, None, 0.0, interrupted=False), in_code=True)
        if nothing is not None:
            print(f"warpline: {nothing.line()}", file=sys.stderr)
            return
        self.trace = folder / facts["files"][0]
        typed = os.path.relpath(self.trace)
        print(sanitise(f"warpline: wrote {self.trace}; next: warpline {typed}"), file=sys.stderr)


def _torch() -> Any:
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        raise WarplineError("no-torch", "torch is not installed, and warpline.profile needs it") from error
    if torch.autograd._profiler_enabled():
        raise WarplineError("profiler-on", "another torch profiler is already active", "use one at a time")
    return torch
