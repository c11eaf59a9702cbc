"""Host activity: CUDA calls, NVTX ranges, OS runtime calls, and the profiler's own overhead."""

from __future__ import annotations

import polars as pl

from warpline.sources.nsys.columns import ReadingNotes, checked_spans, narrow, process, words
from warpline.sources.nsys.strings import Strings
from warpline.sources.nsys.tables import Tables
from warpline.sources.nsys.threads import NsysThreads

CALLS = "CUPTI_ACTIVITY_KIND_RUNTIME"
OS_CALLS = "OSRT_API"
PROFILER = "PROFILER_OVERHEAD"
CUPTI = "CUPTI_ACTIVITY_KIND_OVERHEAD"

VERSION_SUFFIX = r"_v\d+$"
# ENUM_NSYS_EVENT_CLASS. Runtime and driver calls share one table.
RUNTIME, DRIVER, BACKTRACE = 0, 1, 67
OS_STARTED, OS_FINISHED = 31, 32
LAYERS = {RUNTIME: "runtime", DRIVER: "driver"}

# ENUM_CUPTI_OVERHEAD_TYPE, as nsys labels it.
OVERHEADS = {
    0: "Unknown",
    1: "Driver compiler",
    2: "Driver JIT compile",
    3: "CUPTI buffer flush",
    4: "CUPTI instrumentation",
    5: "CUPTI resource",
    6: "Runtime-triggered module loading",
    7: "Lazy function loading",
    8: "Command buffer full",
}
NVTX = "NVTX_EVENTS"
# ENUM_NSYS_EVENT_TYPE; the NVTXT ones (70, 71, 65) come from imported text files.
STYLES = {59: "pushpop", 70: "pushpop", 60: "startend", 71: "startend", 34: "mark", 65: "mark"}
DOMAIN_CREATED = 75


def fetch_calls(database: Tables, notes: ReadingNotes) -> pl.DataFrame:
    """CUDA calls with the file's own ids, by start time.

    With CUDA backtraces on, every traced call has a second row, of the backtrace's class and with the same correlation:
    the call is counted once.
    """
    wanted = ["start", "end", "eventClass", "globalTid", "correlationId", "nameId", "returnValue"]
    frame = checked_spans(database.fetch(CALLS, wanted), CALLS, notes)
    return frame.filter(pl.col("eventClass").ne_missing(BACKTRACE)).sort("start", maintain_order=True)


def finish_calls(frame: pl.DataFrame, strings: Strings, threads: NsysThreads, notes: ReadingNotes) -> pl.DataFrame:
    """The ``api`` table."""
    recorded = strings.texts(frame["nameId"].unique())
    for name in recorded.drop_nulls().unique().sort():
        stem, mark, digits = name.rpartition("_v")
        # nsys prints names without a four-digit version, and keeps shorter and longer ones.
        if mark and digits.isdecimal() and len(digits) != 4:
            notes.api_suffixes[stem] = mark + digits
    return frame.select(
        pl.lit(strings.names(frame["nameId"], VERSION_SUFFIX)).alias("name"),
        words("eventClass", LAYERS).alias("layer"),
        pl.lit(threads.row(frame["globalTid"])).alias("thread"),
        pl.col("start").alias("start_ns"),
        pl.col("end").alias("end_ns"),
        process("globalTid").alias("process"),
        pl.col("correlationId").alias("correlation"),
        narrow("returnValue").alias("return_code"),
    )


def fetch_os_calls(database: Tables, notes: ReadingNotes) -> pl.DataFrame:
    """OS runtime calls with the file's own ids, by start time."""
    wanted = ["start", "end", "eventClass", "globalTid", "nameId", "returnValue", "nestingLevel"]
    frame = database.fetch(OS_CALLS, wanted)
    # Tracing a thread also writes marks of its own start and end, which are not calls.
    frame = frame.filter(~pl.col("eventClass").is_in([OS_STARTED, OS_FINISHED]).fill_null(value=False))
    return checked_spans(frame, OS_CALLS, notes).sort("start", maintain_order=True)


def finish_os_calls(frame: pl.DataFrame, strings: Strings, threads: NsysThreads) -> pl.DataFrame:
    """The ``osrt`` table."""
    return frame.select(
        pl.lit(strings.names(frame["nameId"])).alias("name"),
        pl.lit(threads.row(frame["globalTid"])).alias("thread"),
        pl.col("start").alias("start_ns"),
        pl.col("end").alias("end_ns"),
        pl.col("returnValue").alias("return_code"),
        narrow("nestingLevel").alias("nesting"),
    )


def fetch_overhead(database: Tables, notes: ReadingNotes) -> pl.DataFrame:
    """The overhead of the profiler and CUPTI with the file's ids, by start time."""
    wanted = ["start", "end", "globalTid", "nameId", "overheadType"]
    frames = [checked_spans(database.fetch(table, wanted), table, notes) for table in (PROFILER, CUPTI)]
    return pl.concat(frames).sort("start", maintain_order=True)


def finish_overhead(frame: pl.DataFrame, strings: Strings, threads: NsysThreads) -> pl.DataFrame:
    """The ``overhead`` table."""
    return frame.select(
        pl.coalesce(pl.lit(strings.names(frame["nameId"])), words("overheadType", OVERHEADS)).alias("name"),
        pl.lit(threads.row(frame["globalTid"])).alias("thread"),
        pl.col("start").alias("start_ns"),
        pl.col("end").alias("end_ns"),
    )


def fetch_ranges(database: Tables) -> pl.DataFrame:
    """NVTX rows with the file's own ids, unchecked: categories and domains have no times."""
    wanted = ["start", "end", "eventType", "rangeId", "globalTid", "endGlobalTid", "textId", "domainId"]
    return database.fetch(NVTX, wanted, ["text"])


def finish_ranges(frame: pl.DataFrame, strings: Strings, threads: NsysThreads, notes: ReadingNotes) -> pl.DataFrame:
    """The ``ranges`` table, by thread and start time. A range that was never closed has no end."""
    registered = pl.Series(strings.texts(frame["textId"]), dtype=pl.String)
    frame = frame.with_columns(
        pl.coalesce("text", pl.lit(registered)).alias("name"), process("globalTid").alias("process")
    )
    domains = (
        frame.filter(pl.col("eventType") == DOMAIN_CREATED)
        .select("process", "domainId", pl.col("name").alias("domain"))
        .unique(["process", "domainId"], keep="last")
    )
    frame = frame.filter(pl.col("eventType").is_in(list(STYLES)))
    # A mark is a moment: it has no end in the file.
    moment = words("eventType", STYLES).cast(pl.String) == "mark"
    frame = frame.with_columns(pl.when(moment).then(pl.col("start")).otherwise("end").alias("end"))
    frame = checked_spans(frame, NVTX, notes, open_end=True)
    frame = frame.join(domains, on=["process", "domainId"], how="left", maintain_order="left")
    return frame.select(
        pl.col("name").fill_null("").cast(pl.Categorical),
        pl.col("domain").cast(pl.Categorical),
        words("eventType", STYLES).alias("style"),
        pl.lit(threads.row(frame["globalTid"])).alias("thread"),
        pl.col("start").alias("start_ns"),
        pl.col("end").alias("end_ns"),
        pl.col("rangeId").alias("range_id"),
        pl.lit(threads.row(frame["endGlobalTid"])).alias("end_thread"),
    ).sort("thread", "start_ns", maintain_order=True)
