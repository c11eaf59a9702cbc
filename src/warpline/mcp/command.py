"""Runs `warpline VERB … --json` in a process of its own, with bounds, and gives its answer back.

So every tool answers what the command line answers, a call that is cancelled or takes too much is ended, and a file
that breaks its reader does not end the server.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from subprocess import PIPE
from typing import Any

import anyio
import msgspec
from anyio.abc import ByteReceiveStream, Process
from msgspec import Struct

from warpline.errors import UsageError, WarplineError

MAX_ANSWER_BYTES = 64 << 20
MAX_WORD_BYTES, MAX_WORDS_BYTES = 100_000, 1_000_000
"""Of one argument, and of all. Linux takes no argument of 128 KiB, and by default no 2 MiB of them."""
END_S = 5.0
"""How long a process may take to end the programs that it started."""
TELL_S = 2.0
"""How often a client hears that the work goes on."""
Tell = Callable[[float, str], Awaitable[None]]
"""Gets the seconds so far, and what is being done."""


class ProcessBounds(Struct, frozen=True):
    """What a call may take."""

    seconds: float = 600.0
    memory_bytes: int | None = None
    """Of the process, on Linux; None for no bound."""


class CommandRunner:
    """The processes that answer, of which a few run at once."""

    def __init__(self, folder: Path, at_once: int) -> None:
        self._folder = folder
        self._turns = anyio.Semaphore(at_once)
        self._running: set[int] = set()

    async def answer(self, words: Sequence[str], bounds: ProcessBounds, tell: Tell) -> Any:
        """The document that the command prints; raises the error that it prints instead."""
        _check_words(words)
        start = time.monotonic()

        async def said(text: str) -> None:
            await tell(time.monotonic() - start, text)

        output = bytearray()
        async with self._turns, self._process(words, bounds) as process, anyio.create_task_group() as tasks:
            assert process.stdout is not None and process.stderr is not None
            tasks.start_soon(_forward, process.stderr, said)
            tasks.start_soon(_repeat, words[0], said)
            with anyio.move_on_after(bounds.seconds) as limit:
                if await _read(process.stdout, output):
                    await process.wait()
            tasks.cancel_scope.cancel()
        if limit.cancelled_caught:
            what = f"{words[0]} took over {bounds.seconds:.0f} s and was ended"
            raise WarplineError("too-slow", what, "ask for less")
        return _document(words[0], output, process.returncode, bounds)

    @contextlib.asynccontextmanager
    async def _process(self, words: Sequence[str], bounds: ProcessBounds) -> AsyncIterator[Process]:
        process = await anyio.open_process(
            [sys.executable, "-m", "warpline.mcp.child", *words],
            stdin=PIPE,  # never written: its end tells the process that this server has ended
            stdout=PIPE,
            stderr=PIPE,
            cwd=self._folder,
            start_new_session=True,  # so that what it starts is ended with it
        )
        self._running.add(process.pid)
        try:
            _bound(process.pid, bounds)
            yield process
        finally:
            with anyio.CancelScope(shield=True):
                await self._end(process)

    async def _end(self, process: Process) -> None:
        if process.returncode is None:
            _signal(process.pid, signal.SIGINT)  # as Ctrl-C: `try` then ends the programs that it runs
            with anyio.move_on_after(END_S):
                await process.wait()
        _signal(process.pid, signal.SIGKILL)
        await process.aclose()
        self._running.discard(process.pid)

    def end_all(self) -> None:
        """End every process now."""
        for pid in tuple(self._running):
            _signal(pid, signal.SIGKILL)


def _check_words(words: Sequence[str]) -> None:
    lengths = [len(os.fsencode(word)) for word in words]
    if max(lengths) > MAX_WORD_BYTES or sum(lengths) > MAX_WORDS_BYTES:
        what = f"an argument of {words[0]} has over {MAX_WORD_BYTES:,} bytes, or all have over {MAX_WORDS_BYTES:,}"
        raise UsageError("bad-arguments", what, "ask for less")
    if any("\0" in word for word in words):
        raise UsageError("bad-arguments", f"an argument of {words[0]} has a zero byte", "remove it")


def _signal(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _bound(pid: int, bounds: ProcessBounds) -> None:
    """The kernel ends the process at these bounds, even if this server has ended before."""
    import resource  # noqa: PLC0415 - not on Windows

    if not hasattr(resource, "prlimit"):  # not Linux
        return
    seconds = math.ceil(bounds.seconds) * (os.cpu_count() or 1)
    with contextlib.suppress(ProcessLookupError):
        resource.prlimit(pid, resource.RLIMIT_CPU, (seconds, seconds))
        if bounds.memory_bytes is not None:
            resource.prlimit(pid, resource.RLIMIT_DATA, (bounds.memory_bytes, bounds.memory_bytes))


async def _read(stream: ByteReceiveStream, output: bytearray) -> bool:
    """Whether all of it could be read."""
    async for chunk in stream:
        output += chunk
        if len(output) > MAX_ANSWER_BYTES:
            return False
    return True


async def _forward(stream: ByteReceiveStream, said: Callable[[str], Awaitable[None]]) -> None:
    """Tell what the command writes to stderr, line by line."""
    rest = b""
    async for chunk in stream:
        *lines, rest = (rest + chunk[:MAX_ANSWER_BYTES]).split(b"\n")
        for line in lines:
            await said(line.decode(errors="replace").removeprefix("warpline: ")[:300])


async def _repeat(verb: str, said: Callable[[str], Awaitable[None]]) -> None:
    while True:
        await anyio.sleep(TELL_S)
        await said(f"{verb} is running")


def _document(verb: str, output: bytearray, code: int | None, bounds: ProcessBounds) -> Any:
    if len(output) > MAX_ANSWER_BYTES:
        what = f"the answer has over {MAX_ANSWER_BYTES >> 20} MiB"
        raise WarplineError("answer-too-large", what, "ask for less: aggregate, or add a limit")
    try:
        document = msgspec.json.decode(bytes(output))
    except msgspec.DecodeError as error:
        if bounds.memory_bytes is not None:
            what = f"{verb} needs over {bounds.memory_bytes >> 20} MiB of memory and was ended"
            raise WarplineError("too-much-memory", what, "ask for less: aggregate, or join fewer rows") from error
        what = f"{verb} ended with exit code {code} and no answer"
        raise WarplineError("no-answer", what, f"see what `warpline {verb}` prints") from error
    if isinstance(document, dict) and isinstance(document.get("error"), dict):
        code_word, message, hint = (str(document["error"].get(name, "")) for name in ("code", "message", "hint"))
        raise WarplineError(code_word, message, hint)
    return document
