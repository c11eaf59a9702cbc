"""What profilers print when something goes wrong, and the failure that each message indicates.

The same messages occur in the log of a run, in the program output that nsys stores, and in nsys's own diagnostics.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec import Struct

from warpline.doctor import failures
from warpline.doctor.failures import Failure
from warpline.doctor.model import Check, State
from warpline.quote import quote

MAX_LINE_CHARS = 2000
MAX_NAME_CHARS = 80


class Message(Struct, frozen=True):
    """A message and the failure it indicates."""

    pattern: re.Pattern[str]
    failure: Failure
    state: State | None = None
    means: str = ""
    do: tuple[str, ...] = ()


def _message(pattern: str, failure: Failure, state: State | None = None, means: str = "", do: str = "") -> Message:
    return Message(re.compile(pattern, re.IGNORECASE), failure, state, means, (do,) if do else ())


MESSAGES = (
    _message(
        r"ERR_NVGPUCTRPERM|CUPTI_ERROR_(?:VIRTUALIZED_DEVICE_)?INSUFFICIENT_PRIVILEGES", failures.COUNTERS_FORBIDDEN
    ),
    _message(
        r"driver is not compatible with Nsight Compute|LibraryNotLoaded|Failed to load Nsight Compute CUDA modules",
        failures.NCU_AND_DRIVER,
    ),
    _message(r"MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED", failures.TWO_CUPTI_CLIENTS),
    _message(r"driver resource was unavailable", failures.COUNTERS_BUSY),
    _message(
        r"Failed to prepare kernel for profiling",
        failures.COUNTERS_BUSY,
        means="The counters could not be set up. Possible causes: an ncu older than the driver, DCGM's exporter, WSL2, "
        "or a program that uses green contexts.",
    ),
    _message(
        r"No reports were generated",
        failures.NVTX_RANGE_UNREGISTERED,
        means="The recording never started: its NVTX range is an unregistered string, as torch pushes, and nsys "
        "matches only registered ones; or the name differs; or cudaProfilerStart was not called. Record once without "
        "--capture-range first: that shows whether nsys sees CUDA at all.",
    ),
    _message(r"__libc_dlclose|libToolsInjection\w{0,60}\.so: undefined symbol", failures.OLD_NSYS_ON_NEW_GLIBC),
    _message(
        r"Wrong event order has been detected|non-?monotonic timestamps?",
        failures.TOO_LARGE,
        means="nsys failed to order its own events, which happens in long recordings of many processes.",
    ),
    _message(r"Importer error status|skipping importation of the QDSTRM", failures.STREAM_NOT_IMPORTED),
    _message(
        r"report was created (?:in|by|with).{0,80}version|newer than (?:this|the current) .{0,20}(?:nsys|Nsight)",
        failures.REPORT_FROM_NEWER_NSYS,
    ),
    _message(
        r"Invalid version prefix",
        failures.REPORT_FROM_NEWER_NSYS,
        means="The report was corrupted in transit, for example by a download in text mode.",
        do="copy the report again in binary mode: scp, or docker cp",
    ),
    _message(r"file is not a database|database disk image is malformed", failures.EXPORT_INTERRUPTED),
    _message(r"Installed CUDA driver version \([\d.]+\) is not supported", failures.DRIVER_NEWER_THAN_NSYS, "warning"),
    _message(
        r"CUPTI buffers:\s*\d+ of \d+|Not all CUDA events might have been collected",
        failures.RECORDING_CUT_SHORT,
        "warning",
    ),
    _message(
        r"re-?initiali[sz]e CUDA in forked subprocess|exit ?code:? -11\b|died with .{0,40}(?:signal 11|SIGSEGV)",
        failures.FORKED_WORKERS,
    ),
    _message(
        r"Unable to access the following \d+ metrics?: *ctc__",
        failures.METRIC_UNAVAILABLE,
        "note",
        "These metrics count chip-to-chip (C2C) traffic, which this machine does not have: harmless.",
        "nothing",
    ),
    _message(
        r"Failed to find metric|Unable to access the following \d+ metrics?|^\s*+(?=\w+?__\S)\S++ .*\(!\) n/a",
        failures.METRIC_UNAVAILABLE,
    ),
    _message(r"perf event paranoid level|perf_event_paranoid", failures.PERF_PARANOID),
    _message(
        r"No space left on device",
        failures.STREAM_NOT_IMPORTED,
        means="The disk was full: nsys stores its raw stream in the temporary folder until the import.",
        do="NSYS_TMPDIR=/with/room nsys profile …   (df -h /tmp . shows the free space)",
    ),
    _message(
        r"application returned (?:an error code|a? ?non-?zero exit code)|CUDA error: no kernel image",
        failures.PROGRAM_FAILED,
        "warning",
    ),
    _message(
        r"does not contain CUDA (?:kernel|trace) data|No CUDA events collected"
        r"|CUDA profiling might have not been started",
        failures.PROCESS_WITHOUT_CUDA,
        "warning",
        means="nsys saw no CUDA call: it ran outside the container of the program (nsys profile docker run …), the GPU "
        "work is in a process that it does not follow, or the program used no GPU.",
        do="docker run --gpus all … IMAGE nsys profile -t cuda,nvtx,osrt python train.py   (nsys inside the container)",
    ),
)

_HINT = re.compile(r"If you see")
"""Kineto explains errors that it did not meet."""
_NOTHING = re.compile(r"No kernels were profiled", re.IGNORECASE)
_CHILDREN = re.compile(r"requires the --target-processes all", re.IGNORECASE)
_AVAILABLE = re.compile(r"^\s*Available Kernels:\s*$", re.IGNORECASE)
_LISTED = re.compile(r"^\s*\d+\.\s+(.+)$")
_EXPLAINS_NOTHING = {10, 11, 13, 14}
"""Failures after which ncu also reports that no kernels were profiled; that report then needs no other cause."""


def read_messages(text: str, kept: Callable[[Message], bool] = lambda _: True) -> list[Check]:
    """The failures that a text reports: each once, with the first line that shows it."""
    found: dict[int, Check] = {}
    lines = [line[:MAX_LINE_CHARS] for line in text.splitlines()]
    for line in lines:
        if _HINT.search(line):
            continue
        for message in MESSAGES:
            if message.pattern.search(line):
                failure = message.failure
                if kept(message) and failure.number not in found:
                    found[failure.number] = failure.found(
                        f"it says: {quote(line)}", message.state, message.means, message.do
                    )
                break
    if not found.keys() & _EXPLAINS_NOTHING and any(_NOTHING.search(line) for line in lines):
        found[failures.NO_KERNELS_PROFILED.number] = _no_kernels_profiled(lines)
    return list(found.values())


def _no_kernels_profiled(lines: list[str]) -> Check:
    failure = failures.NO_KERNELS_PROFILED
    listed = next((index for index, line in enumerate(lines) if _AVAILABLE.match(line)), None)
    if listed is not None:
        matches = [_LISTED.match(line) for line in lines[listed + 1 : listed + 6]]
        names = [_printable(match[1]) for match in matches if match]
        seen = f"ncu profiled nothing; it lists the kernels that ran: {', '.join(names)}"
        means = "Kernels ran, but the filter (-k, --launch-skip, --nvtx-include) matched none of them."
        return failure.found(seen, means=means, do=(f"ncu --kernel-name {_name_of(names)} --launch-count 1 …",))
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


def _name_of(names: list[str]) -> str:
    """The short name that ncu matches: without arguments, template and namespace."""
    first = re.split(r"[<(]", names[0].removeprefix("void "))[0] if names else ""
    return first.rpartition("::")[2].strip() or "NAME"
