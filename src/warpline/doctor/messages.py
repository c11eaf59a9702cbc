"""What profilers print when something goes wrong, and the failure that each message indicates (``data/messages.toml``).

The same messages occur in the log of a run, in the program output that nsys stores, and in nsys's own diagnostics.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from msgspec import Struct

from warpline.doctor.failures import known_failure
from warpline.doctor.model import Check, State
from warpline.package_data import read_table
from warpline.quote import quote
from warpline.sources.ncu.names import function_of

MAX_LINE_CHARS = 2000
MAX_NAME_CHARS = 80
MAX_TRACEBACK_LINES = 2_000
"""Python's own limit is 1,000 frames, of two lines each."""


class Message(Struct, frozen=True):
    """A message and the failure it indicates."""

    pattern: str
    """A regular expression for a part of a line, without regard to case."""
    failure: str
    state: State | None = None
    means: str = ""
    do: tuple[str, ...] = ()
    versions: str = ""
    """A sentence with {0} and {1}, for the first two versions in the text from this line on."""


class _MessageTable(Struct, frozen=True):
    message: tuple[Message, ...]


@cache
def known_messages() -> tuple[Message, ...]:
    """All messages; the first that fits a line counts."""
    return read_table("doctor", "messages", _MessageTable).message


INTERRUPTED = Check(
    "stopped-by-ctrl-c",
    "note",
    "it says: KeyboardInterrupt",
    "Somebody stopped the program with Ctrl-C: nothing failed. The profiler may not have written its file.",
)
_HINT = re.compile(r"If you see")
"""Kineto explains errors that it did not meet."""
_VERSION = re.compile(r"\((\d{4}(?:\.\d+){1,3})\)")
_NOTHING = re.compile(r"No kernels were profiled", re.IGNORECASE)
_CHILDREN = re.compile(r"requires the --target-processes all", re.IGNORECASE)
_AVAILABLE = re.compile(r"^\s*Available Kernels:\s*$", re.IGNORECASE)
_LISTED = re.compile(r"^\s*\d+\.\s+(.+)$")
_EXPLAINS_NOTHING = {10, 11, 13, 14}
"""Failures after which ncu also reports that no kernels were profiled; that report then needs no other cause."""


def read_messages(text: str, is_wanted: Callable[[Message], bool] = lambda _: True) -> list[Check]:
    """The failures that a text reports: each once, with the first line that shows it."""
    found: dict[int, Check] = {}
    lines = [line[:MAX_LINE_CHARS] for line in text.splitlines()]
    for number, line in enumerate(lines):
        if _HINT.search(line) or _is_interrupt(lines, number):
            continue
        for message in known_messages():
            if re.search(message.pattern, line, re.IGNORECASE):
                failure = known_failure(message.failure)
                if is_wanted(message) and failure.number not in found:
                    seen = _with_versions(message, lines[number : number + 3]) or f"it says: {quote(line)}"
                    found[failure.number] = failure.found(seen, message.state, message.means, message.do)
                break
    if not found.keys() & _EXPLAINS_NOTHING and any(_NOTHING.search(line) for line in lines):
        found[known_failure("no-kernels-profiled").number] = _no_kernels_profiled(lines)
    stopped = any(_is_interrupt(lines, number) for number in range(len(lines)))
    return [*found.values(), *([INTERRUPTED] if stopped else [])]


def _is_interrupt(lines: list[str], number: int) -> bool:
    """Whether a traceback begins in this line that ends with Ctrl-C."""
    if not lines[number].startswith("Traceback (most recent call last)"):
        return False
    inside = lines[number + 1 : number + 1 + MAX_TRACEBACK_LINES]
    ends = next((line for line in inside if line.strip() and not line.startswith((" ", "\t"))), "")
    return ends.startswith("KeyboardInterrupt")


def _with_versions(message: Message, lines: list[str]) -> str:
    """The message with the versions that it names; empty where it names none."""
    versions = _VERSION.findall(" ".join(lines)) if message.versions else []
    return message.versions.format(*versions) if len(versions) > 1 else ""


def _no_kernels_profiled(lines: list[str]) -> Check:
    failure = known_failure("no-kernels-profiled")
    listed = next((index for index, line in enumerate(lines) if _AVAILABLE.match(line)), None)
    if listed is not None:
        matches = [_LISTED.match(line) for line in lines[listed + 1 : listed + 6]]
        names = [_printable(match[1]) for match in matches if match]
        seen = f"ncu profiled nothing; it lists the kernels that ran: {', '.join(names)}"
        means = "Kernels ran, but the filter (-k, --launch-skip, --nvtx-include) matched none of them."
        name = function_of(names[0]) if names else "NAME"
        return failure.found(seen, means=means, do=(f"ncu --kernel-name {name} --launch-count 1 …",))
    if any(_CHILDREN.search(line) for line in lines):
        return failure.found(
            "ncu profiled nothing; it says that child processes need --target-processes all",
            means="No kernel was launched, or only by a child process, which this ncu did not follow.",
            do=("ncu --target-processes all …",),
        )
    return failure.found("it says: No kernels were profiled")


def _printable(name: str) -> str:
    """A kernel's name, shortened; names contain no secrets."""
    text = "".join(char if char.isprintable() else " " for char in name)
    return text if len(text) <= MAX_NAME_CHARS else f"{text[: MAX_NAME_CHARS - 1]}…"
