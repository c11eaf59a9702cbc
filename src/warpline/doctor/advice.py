"""A trace's health entries as checks: the known failure that each indicates, or advice."""

from __future__ import annotations

from functools import cache

from msgspec import Struct

from warpline.doctor.failures import known_failure
from warpline.doctor.model import Check, State
from warpline.package_data import read_table
from warpline.sources.health import HealthEntry

_MAX_HIDDEN_PCT = 50.0


class HealthTable(Struct, frozen=True):
    """What is said about health codes."""

    harmless: frozenset[str]
    """Codes that question single figures only; the recording itself worked."""
    symptoms: frozenset[str]
    """Codes that are symptoms; their cause is determined separately."""
    failures: dict[str, str]
    """The known failure that a code indicates."""
    advice: dict[str, str]
    """What to do about codes that are not a known failure."""


@cache
def health_table() -> HealthTable:
    """The table of ``data/health.toml``."""
    return read_table("doctor", "health", HealthTable)


def check_of(entry: HealthEntry, codes: set[str], recorded_kernels: bool) -> Check:
    """One entry as a check; ``codes`` are those of the whole file."""
    state = _state(entry, codes, recorded_kernels)
    table = health_table()
    failure = table.failures.get(entry.code)
    if entry.code == "helper-processes":
        means = "Compilers and data workers use no CUDA. Harmless: another process has kernels."
        return known_failure("process-without-cuda").found(entry.message, "note", means, ("nothing",))
    if failure is not None:
        return known_failure(failure).found(entry.message, state)
    if entry.code == "cupti-failed" and "MULTIPLE_SUBSCRIBERS" in entry.message:
        return known_failure("two-cupti-clients").found(entry.message, state)
    advice = table.advice.get(entry.code, "")
    return Check(entry.code, state, entry.message, "", (advice,) if advice else ())


def _state(entry: HealthEntry, codes: set[str], recorded_kernels: bool) -> State:
    code = entry.code
    if code in health_table().harmless or (code == "work-without-launch" and "profiler-start-skew" in codes):
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
