"""The health of an nsys profile: what is missing from it, and why."""

from __future__ import annotations

import polars as pl

from warpline.api_names import LAUNCH
from warpline.sources.health import HealthEntry
from warpline.sources.nsys.columns import ReadingNotes
from warpline.sources.nsys.diagnostics import Remarks, read_remarks, remark_health
from warpline.sources.nsys.facts import NEWEST_SCHEMA, OLDEST_SCHEMA, ProfileFacts
from warpline.sources.nsys.program import ProgramEnding, read_ending
from warpline.sources.nsys.strings import Strings
from warpline.sources.nsys.tables import Tables
from warpline.units import several

# CUDA errors after which a context is unusable, and out of memory; others, such as not ready (600), are normal.
OUT_OF_MEMORY = 2
STICKY_ERRORS = range(700, 720)
HARMLESS_ERRORS = {704, 705, 708}
"""Peer access already or not enabled, primary context active: these are not device failures."""

DRIVER_THREAD = r"^cuda-EvtHandlr|^cuda\d{6,}"
"""Threads that the CUDA driver starts in a process that uses it."""
GPU_DOMAINS = ("TensorRT", "NCCL")
"""NVTX domains of libraries that run on a GPU only."""


def health(
    database: Tables, strings: Strings, facts: ProfileFacts, tables: dict[str, pl.DataFrame], notes: ReadingNotes
) -> list[HealthEntry]:
    """All entries, the most serious cause first."""
    remarks, ending = read_remarks(database), read_ending(database, strings)
    gpu, api = tables["gpu"], tables["api"]
    kernels = gpu.filter(pl.col("kind").cast(pl.String).is_in(["kernel", "graph"])).height
    launches = api.filter(pl.col("name").cast(pl.String).str.contains(LAUNCH)).height
    cuda_processes = set(gpu["process"].unique().drop_nulls()) | set(api["process"].unique().drop_nulls())
    entries = _file_health(database, facts, notes)
    if ending.failed:
        entries.append(_program_failed(ending, kernels))
    if not kernels:
        evidence = _cuda_evidence(tables)
        entries.append(_no_kernels(facts, remarks, ending, launches, api.height, evidence))
    entries += remark_health(remarks, kernels, cuda_processes)
    entries += _capture_health(facts, kernels, notes)
    entries += _failed_calls(api)
    return entries


def _cuda_evidence(tables: dict[str, pl.DataFrame]) -> str:
    """What shows that the program used CUDA, apart from its calls; empty if nothing does."""
    if tables["threads"]["name"].cast(pl.String).str.contains(DRIVER_THREAD).any():
        return "threads of its driver, such as cuda-EvtHandlr, ran in it"
    ranges = tables["ranges"].filter(pl.col("domain").cast(pl.String).is_in(GPU_DOMAINS))
    if ranges.height:
        return f"it has NVTX ranges of {ranges['domain'].cast(pl.String)[0]}"
    return ""


def _file_health(database: Tables, facts: ProfileFacts, notes: ReadingNotes) -> list[HealthEntry]:
    entries = [
        HealthEntry(
            "damaged-table",
            "error",
            f"{damage.table} is damaged: {damage.rows} rows were read before the damage ({damage.reason}); export the "
            "report again.",
        )
        for damage in database.damage
    ]
    number = facts.schema_number
    if not facts.has_export_facts:
        entries.append(
            HealthEntry(
                "missing-meta",
                "warning",
                "The file does not say which nsys wrote it: the export is from before 2022 or was interrupted, and "
                "tables may be missing.",
            )
        )
    elif number and number > NEWEST_SCHEMA:
        entries.append(
            HealthEntry(
                "newer-schema",
                "warning",
                f"The export's schema {facts.schema} is newer than {NEWEST_SCHEMA[0]}.{NEWEST_SCHEMA[1]}, the newest "
                "that warpline knows: it was read, but renamed columns may be missing.",
            )
        )
    elif number and number < OLDEST_SCHEMA:
        entries.append(
            HealthEntry(
                "older-schema",
                "warning",
                f"The export's schema {facts.schema} is older than {OLDEST_SCHEMA[0]}.{OLDEST_SCHEMA[1]}, the oldest "
                "that warpline knows: columns with other names may be missing.",
            )
        )
    for table, count in notes.impossible.items():
        entries.append(
            HealthEntry(
                "impossible-times",
                "warning",
                f"{count} of {notes.rows[table]} rows of {table} have no times, or end before they start; left out.",
            )
        )
    return entries


def _program_failed(ending: ProgramEnding, kernels: int) -> HealthEntry:
    verb = "was interrupted" if ending.interrupted else "failed"
    effect = "before its first kernel" if not kernels else "so the profile may be incomplete"
    return HealthEntry(
        "program-failed",
        "warning" if kernels else "error",
        f"The profiled program {verb}, {effect}; its error output ends with: {ending.quote}",
    )


def _no_kernels(
    facts: ProfileFacts, remarks: Remarks, ending: ProgramEnding, launches: int, calls: int, evidence: str
) -> HealthEntry:
    seconds = f" in {facts.duration_ns / 1e9:.2f} s" if facts.duration_ns else ""
    if launches:
        recorded = several(launches, "launch was", "launches were")
        why = _lost_kernels(facts, remarks, ending)
        return HealthEntry("launches-without-kernels", "error", f"{recorded} recorded, but no kernel: {why}")
    recorded = f"{several(calls, 'CUDA call')} and no launch{seconds}" if calls else f"no CUDA call{seconds}"
    why = _absent_kernels(facts, remarks, ending, calls, evidence)
    return HealthEntry("no-kernels", "error", f"No kernel was recorded ({recorded}): {why}")


def _cut_short(facts: ProfileFacts, remarks: Remarks) -> str:
    """How the recording ended before the program, if it did."""
    if facts.stopped_by_limit and facts.limit_ms is not None:
        return f"the recording was stopped by its time limit of {facts.limit_ms / 1e3:g} s"
    if remarks.buffers_returned is not None or remarks.events_lost:
        return "the recording ended, or the program was killed, before CUPTI delivered its buffers"
    return ""


def _driver(remarks: Remarks) -> str:
    if not remarks.driver_installed:
        return ""
    return (
        f"this nsys supports CUDA drivers up to {remarks.driver_supported} and the installed one is "
        f"{remarks.driver_installed}"
    )


def _lost_kernels(facts: ProfileFacts, remarks: Remarks, ending: ProgramEnding) -> str:
    causes = [cause for cause in (_driver(remarks), _cut_short(facts, remarks)) if cause]
    if facts.platform == "wsl2":
        causes.insert(0, "under WSL2, GPU activity needs a newer Windows driver and nsys than these")
    if causes:
        return "; and ".join(causes) + "."
    if ending.failed:
        return "the program ended before CUPTI delivered its buffers."
    return (
        "the program was killed before CUPTI delivered its buffers, or CUPTI may not record GPU work here; let it "
        "end by itself, or call cudaProfilerStop() after a synchronisation."
    )


def _absent_kernels(facts: ProfileFacts, remarks: Remarks, ending: ProgramEnding, calls: int, evidence: str) -> str:
    if ending.failed:
        return "the program ended before it launched one."
    causes = [cause for cause in (_driver(remarks), _cut_short(facts, remarks)) if cause]
    if causes:
        either = "; either alone can cause this" if len(causes) > 1 else ""
        return "; and ".join(causes) + f"{either}."
    if facts.collected and "Cuda" not in facts.collected:
        return f"CUDA was not recorded ({', '.join(facts.collected)}); record with --trace=cuda."
    if remarks.cupti_failures:
        return "nsys reports that it could not trace CUDA."
    hidden = "its error output was removed from the file" if ending.removed else ""
    said = f"its error output ends with: {ending.quote}" if ending.quote else hidden
    if calls:
        return "the program called CUDA but launched nothing during the recording" + (f"; {said}" if said else ".")
    if evidence:
        return (
            f"the program used CUDA ({evidence}), but nsys traced none of it; record again with --trace=cuda, without "
            "another profiler" + (f"; {said}" if said else ".")
        )
    return (
        "no recorded process used CUDA; the GPU work may be in a process that nsys did not follow, as in a container"
        + (f"; {said}" if said else ".")
    )


def _capture_health(facts: ProfileFacts, kernels: int, notes: ReadingNotes) -> list[HealthEntry]:
    entries: list[HealthEntry] = []
    if notes.graphs_without_times:
        entries.append(
            HealthEntry(
                "graphs-without-times",
                "warning",
                f"{notes.graphs_without_times} CUDA-graph replays have no times and are left out: the GPU was busier "
                "than shown.",
            )
        )
    if facts.platform == "wsl2":
        entries.append(
            HealthEntry("wsl2", "info", "Recorded under WSL2, where launches are batched and GPU times are less exact.")
        )
    if facts.platform == "gvisor":
        entries.append(
            HealthEntry("gvisor", "info", "Recorded under gVisor, where system calls cost more than on Linux.")
        )
    if facts.stopped_by_limit and kernels and facts.limit_ms is not None:
        entries.append(
            HealthEntry(
                "time-limit", "info", f"The recording was stopped by its time limit of {facts.limit_ms / 1e3:g} s."
            )
        )
    if notes.renumbered_devices:
        entries.append(
            HealthEntry(
                "devices-renumbered",
                "info",
                "The processes number their devices differently; devices are shown by their physical number.",
            )
        )
    return entries


def _failed_calls(api: pl.DataFrame) -> list[HealthEntry]:
    code = pl.col("return_code")
    grave = (code == OUT_OF_MEMORY) | (code.is_in(list(set(STICKY_ERRORS) - HARMLESS_ERRORS)))
    failed = (
        api.filter(grave)
        .group_by("name", "return_code")
        .agg(pl.len().alias("count"))
        .sort("count", "name", "return_code", descending=[True, False, False])
    )
    if failed.is_empty():
        return []
    name, number, count = failed.row(0)
    what = "out of memory" if number == OUT_OF_MEMORY else f"error {number}"
    return [
        HealthEntry(
            "cuda-call-failed",
            "warning",
            f"{failed['count'].sum()} CUDA calls failed, {count} of them {name} with {what}.",
        )
    ]
