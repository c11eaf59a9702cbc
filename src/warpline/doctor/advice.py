"""A trace's health entries as checks: the known failure that each indicates, or advice."""

from __future__ import annotations

from warpline.doctor import failures
from warpline.doctor.failures import Failure
from warpline.doctor.model import Check, State
from warpline.sources.health import HealthEntry

FAILURE_OF: dict[str, Failure] = {
    "program-failed": failures.PROGRAM_FAILED,
    "helper-processes": failures.PROCESS_WITHOUT_CUDA,
    "launches-without-kernels": failures.LAUNCHES_WITHOUT_KERNELS,
    "driver-newer-than-nsys": failures.DRIVER_NEWER_THAN_NSYS,
    "cupti-buffers-lost": failures.RECORDING_CUT_SHORT,
    "cuda-events-lost": failures.RECORDING_CUT_SHORT,
    "launch-without-work": failures.RECORDING_CUT_SHORT,
    "graph-as-one-bar": failures.GRAPH_AS_ONE_BAR,
    "clock-fault": failures.TOO_LARGE,
    "damaged-table": failures.EXPORT_INTERRUPTED,
    "missing-meta": failures.EXPORT_INTERRUPTED,
}
"""The known failure of a health code."""

ADVICE: dict[str, str] = {
    "truncated-file": "record again, let the export finish, and check the free disk space",
    "second-look-damaged": "copy the run's folder again, or record again; without it there are no source lines",
    "damaged-file": "copy the file again in binary mode",
    "damaged-report": "copy or record the report again",
    "damaged-rows": "export the page again: ncu --import REPORT.ncu-rep --csv --page raw",
    "ncu-message": "follow ncu's message",
    "other-launches": "run the printed command of warpline dive TRACE --print without --launch-skip",
    "no-counters": "profile with sections: warpline dive TRACE --print",
    "malformed-events": "avoid quotes and backslashes in record_function names, or use a newer torch",
    "negative-duration": "do not rely on the times near them",
    "impossible-time": "record again",
    "impossible-times": "nsys export --type sqlite --force-overwrite=true REPORT.nsys-rep, with a current nsys",
    "impossible-duration": "record again",
    "other-device": "read it with the vendor's tools",
    "cupti-failed": "use one tool per run; warpline doctor lists other CUPTI clients",
    "cuda-call-failed": 'warpline sql TRACE "select name, return_code from api where return_code != 0"',
    "nsys-remark": "follow the warning of nsys",
    "graphs-without-times": "record again; the device was busier than shown",
    "no-launches": "record CPU activities too: activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]",
    "empty-steps": "warm up the profiler: schedule(wait=1, warmup=1, active=3)",
    "work-without-launch": "start recording one step earlier",
}
"""What to do about entries that are not a known failure; docs/health.md explains the codes."""

HARMLESS = {
    *("newer-schema", "older-schema", "unknown-category", "capture-range", "time-limit", "devices-renumbered"),
    *("wsl2", "gvisor", "profiler-start-skew", "overlap-on-stream", "zero-durations", "clock-skew", "clock-jump"),
    *("clock-shift", "second-look-differs", "impossible-values", "missing-values", "long-names", "long-arguments"),
    *("metrics-missing", "clocks-locked", "no-instruction-counters"),
    *("missing-shapes", "helper-processes", "profiler-distortion", "slow-host"),
}
"""Entries that question single figures only; the recording itself worked."""
SYMPTOMS = {"no-kernels", "no-gpu-work", "empty-trace"}
"""Entries that are symptoms; their cause is determined separately."""

_MAX_HIDDEN_PCT = 50.0


def check_of(entry: HealthEntry, codes: set[str], recorded_kernels: bool) -> Check:
    """One entry as a check; ``codes`` are those of the whole file."""
    state = _state(entry, codes, recorded_kernels)
    failure = FAILURE_OF.get(entry.code)
    if entry.code == "helper-processes":
        means = "Compilers and data workers use no CUDA. Harmless: another process has kernels."
        return failures.PROCESS_WITHOUT_CUDA.found(entry.message, "note", means, ("nothing",))
    if failure is not None:
        return failure.found(entry.message, state)
    if entry.code == "cupti-failed" and "MULTIPLE_SUBSCRIBERS" in entry.message:
        return failures.TWO_CUPTI_CLIENTS.found(entry.message, state)
    advice = ADVICE.get(entry.code, "")
    return Check(entry.code, state, entry.message, "", (advice,) if advice else ())


def _state(entry: HealthEntry, codes: set[str], recorded_kernels: bool) -> State:
    code = entry.code
    if code in HARMLESS or (code == "work-without-launch" and "profiler-start-skew" in codes):
        return "note"
    if code == "graph-as-one-bar":
        # If less than half of the GPU's time is inside graphs, the rest of the timeline is still useful.
        return "warning" if _hidden_pct(entry.message) > _MAX_HIDDEN_PCT else "note"
    if not recorded_kernels and code in ("driver-newer-than-nsys", "cupti-buffers-lost", "cuda-events-lost"):
        return "problem"
    states: dict[str, State] = {"error": "problem", "warning": "warning", "info": "note"}
    return states[entry.severity]


def _hidden_pct(message: str) -> float:
    _, _, rest = message.partition("(")
    number = rest.partition(" %")[0]
    try:
        return float(number)
    except ValueError:
        return 0.0
