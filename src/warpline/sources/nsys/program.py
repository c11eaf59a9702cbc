"""How the profiled program ended, from the output that nsys stored (``ProcessStreams``).

nsys reports success whatever the program did. The most common cause of an empty profile is a program that failed before
its first kernel; the end of its output says why.
"""

from __future__ import annotations

import re

import polars as pl
from msgspec import Struct

from warpline.quote import quote
from warpline.secrets import REMOVED
from warpline.sources.nsys.strings import Strings
from warpline.sources.nsys.tables import Tables

LAST_LINES = 40
"""A failure is reported at the end; the program survived earlier errors."""
MAX_LINE_CHARS = 2000

# Lines that a program, its runtime or its shell writes when it fails.
_FAILURES = re.compile(
    r"""
      ^\s*+(?:[A-Za-z_][\w.]*\.)?+[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Warning(?=\b.*\berror))\b(?::|\s*$)
    | ^KeyboardInterrupt | ^SystemExit
    | \bwhat\(\): | \bterminate\ called\b
    | \bSegmentation\ fault\b | \bBus\ error\b | \bAborted\b | \bKilled\b | \bcore\ dumped\b
    | \bSIG(?:SEGV|ABRT|KILL|BUS|INT|TERM)\b
    | can't\ open\ file | \bNo\ such\ file\ or\ directory\b | \bcommand\ not\ found\b | \bPermission\ denied\b
    | error\ while\ loading\ shared\ libraries | \bundefined\ symbol\b | \bsymbol\ lookup\ error\b
    | \bcannot\ execute\b | \bExec\ format\ error\b
    | \bCUDA\ (?:runtime\ |driver\ )?error\b | \bcudaError\w* | \bCUDA_ERROR_\w+ | \bout\ of\ memory\b
    | \bMPI_ABORT\b | \bMPI_Abort\b | \bAssertion\b.{0,400}?\bfailed\b | ^thread\ '.*'\ panicked | ^panic:
    | ^\s*(?:fatal|FATAL)\b | ^\s*(?:ERROR\ )?STOP\ +[1-9]\d*\s*$ | ^forrtl:\ (?:severe|error)
    | ^\s*(?:\S+:\s+)?(?:fatal\ )?[Ee](?:rror|RROR):\s
    | ^usage:\s
    """,
    re.VERBOSE,
)
_INTERRUPTED = re.compile(r"KeyboardInterrupt|SIGINT|\bTerminated\b|SIGTERM")
_IEEE = re.compile(r"ieee_\w+ is signaling|IEEE_\w+", re.IGNORECASE)
# Output of nsys, shells and progress bars, which follows the program's last line.
_NOISE = re.compile(r"^\s*$|^[\s\W_]*$|^\s*(?:File \"|\^+|~+)|^Generating |^Collecting data|%\|")


class ProgramEnding(Struct, frozen=True):
    """What the program's stderr says about its end."""

    quote: str = ""
    """Its last meaningful line, redacted and shortened; empty if there is none."""
    failed: bool = False
    """Whether that line reports a failure."""
    removed: bool = False
    """Whether the output was removed from the file."""

    @property
    def interrupted(self) -> bool:
        """Whether it was stopped from outside, by Ctrl-C or a signal."""
        return bool(_INTERRUPTED.search(self.quote))


def read_ending(database: Tables, strings: Strings) -> ProgramEnding:
    """The end of the program, from its stderr."""
    frame = database.fetch("ProcessStreams", ["filenameId", "contentId"])
    frame = frame.with_columns(
        pl.Series("file", strings.texts(frame["filenameId"]), pl.String),
        pl.Series("text", strings.texts(frame["contentId"]), pl.String),
    )
    errors = frame.filter(pl.col("file").str.contains("stderr").fill_null(value=False))
    texts = [text for text in errors["text"].drop_nulls() if text.strip()]
    endings = [ending_of(text) for text in texts if text.strip() != REMOVED]
    failures = [ending for ending in endings if ending.failed]
    if failures or endings:
        return (failures or endings)[0]
    return ProgramEnding(removed=bool(texts))


def ending_of(text: str) -> ProgramEnding:
    """The end of one stderr text."""
    # A progress bar rewrites its line with carriage returns.
    lines = [line.rpartition("\r")[2][:MAX_LINE_CHARS] for line in text[-200_000:].rstrip().split("\n")[-LAST_LINES:]]
    lines = [line for line in lines if not _NOISE.search(line)]
    if not lines:
        return ProgramEnding()
    last = lines[-1].strip()
    if last.isdecimal() and int(last) and len(lines) > 1 and _IEEE.search(lines[-2]):
        # nvfortran's STOP n: the floating-point flags, then the bare status.
        return ProgramEnding(
            f"{quote(lines[-2])} / {last} (what a Fortran STOP with status {last} writes)", failed=True
        )
    failures = [line for line in lines if _FAILURES.search(line)]
    explained = [line for line in failures if "what():" in line] or failures
    return ProgramEnding(quote((explained or lines)[-1]), failed=bool(failures))
