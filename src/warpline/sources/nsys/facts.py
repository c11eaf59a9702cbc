"""Facts about the export and the capture: versions, program, driver, system, options.

``META_DATA_CAPTURE`` and ``TARGET_INFO_SYSTEM_ENV`` also hold the whole environment of the profiled process, and user
and host names: only the facts named here are read.
"""

from __future__ import annotations

import re

import polars as pl
from msgspec import Struct, field

from warpline.quote import redacted
from warpline.sources.nsys.tables import Tables

NEWEST_SCHEMA = (3, 28)
OLDEST_SCHEMA = (2, 9)
MAX_COMMAND_CHARS = 500

_OPTIONS = {
    "graph_trace": "CUDA_GRAPH_TRACE_OPTIONS:MODE",
    "memory_usage": "COLLECT_GPU_MEMORY_USAGE",
    "um_cpu_faults": "COLLECT_UVM_CPU_PAGE_FAULTS",
    "um_gpu_faults": "COLLECT_UVM_GPU_PAGE_FAULTS",
}


class ProfileFacts(Struct):
    """What the export says about itself; empty or None if it does not."""

    exporter: str = ""
    """Version of the nsys that wrote the SQLite file; the capture may be older."""
    schema: str = ""
    epoch_ns: int | None = None
    started: str = ""
    duration_ns: int | None = None
    limit_ms: int | None = None
    """``RUN_DURATION_MS``: the time limit, or the duration rounded up if there was none."""
    collected: list[str] = field(default_factory=list)
    program: str = ""
    command: str = ""
    driver: str = ""
    cuda_driver: str = ""
    system: str = ""
    kernel: str = ""
    options: dict[str, str] = field(default_factory=dict)
    has_export_facts: bool = False

    @property
    def schema_number(self) -> tuple[int, int] | None:
        """Major and minor, if readable."""
        found = re.match(r"(\d{1,4})\.(\d{1,4})", self.schema)
        return (int(found[1]), int(found[2])) if found else None

    @property
    def platform(self) -> str:
        """``wsl2`` or ``gvisor`` if the kernel release shows it, otherwise empty."""
        if "microsoft" in self.kernel.lower():
            return "wsl2"
        # gVisor's sentry answers uname with a fixed, old release.
        return "gvisor" if self.kernel == "4.4.0" else ""

    @property
    def stopped_by_limit(self) -> bool:
        """Whether the capture reached its time limit: without one, nsys writes the duration rounded up."""
        if self.limit_ms is None or self.duration_ns is None or self.limit_ms <= 0:
            return False
        return self.limit_ms < self.duration_ns // 1_000_000

    def meta(self) -> dict[str, str]:
        """The facts as the trace's ``meta``."""
        known = {
            "producer": "nsys",
            "version": self.exporter,
            "schema_version": self.schema,
            "epoch_ns": _number(self.epoch_ns),
            "started_utc": self.started,
            "duration_ns": _number(self.duration_ns),
            "program": self.program,
            "command": self.command,
            "collected": ",".join(self.collected),
            "driver_version": self.driver,
            "cuda_driver_version": self.cuda_driver,
            "os": self.system,
            "kernel": self.kernel,
            "platform": self.platform,
            **self.options,
        }
        return {key: value for key, value in known.items() if value}


def _number(value: int | None) -> str:
    return "" if value is None else str(value)


def read_facts(database: Tables) -> ProfileFacts:
    """Read the facts of the export."""
    facts = ProfileFacts()
    export = _pairs(database, "META_DATA_EXPORT") or _pairs(database, "EXPORT_META_DATA")
    facts.has_export_facts = bool(export)
    facts.exporter = _first(export, "EXPORT_PRODUCT_VERSION")[:40]
    facts.schema = _first(export, "EXPORT_SCHEMA_VERSION")[:40]
    start = database.fetch("TARGET_INFO_SESSION_START_TIME", ["utcEpochNs"], ["utcTime"])
    if start.height:
        facts.epoch_ns, facts.started = start["utcEpochNs"][0], (start["utcTime"][0] or "")[:40]
    durations = database.fetch("ANALYSIS_DETAILS", ["duration"])["duration"].drop_nulls()
    facts.duration_ns = int(durations[0]) if len(durations) else None
    _capture(facts, _pairs(database, "META_DATA_CAPTURE"))
    _system(facts, _pairs(database, "TARGET_INFO_SYSTEM_ENV"))
    return facts


def _capture(facts: ProfileFacts, pairs: dict[str, list[str]]) -> None:
    facts.collected = sorted({value[:40] for value in pairs.get("CAPTURE_EVENT_TYPE", [])})[:40]
    limit = _first(pairs, "RUN_DURATION_MS")
    facts.limit_ms = int(limit) if limit.isdecimal() and len(limit) < 16 else None
    command = _first(pairs, "PROCESS_0:COMMAND")
    facts.program = redacted(command).rpartition("/")[2][:80]
    arguments = sorted(
        (int(name.rpartition("_")[2]), values[0])
        for name, values in pairs.items()
        if re.fullmatch(r"PROCESS_0:ARGUMENT_\d{1,6}", name)
    )
    facts.command = redacted(" ".join([command, *(value for _, value in arguments)])).strip()[:MAX_COMMAND_CHARS]
    for key, name in _OPTIONS.items():
        value = _first(pairs, f"PROCESS_0:{name}")
        if value:
            facts.options[key] = value.lower()[:40]


def _system(facts: ProfileFacts, pairs: dict[str, list[str]]) -> None:
    facts.driver = _first(pairs, "NvDriverVersion")[:40]
    number = _first(pairs, "CudaDriverVersion")
    if number.isdecimal() and len(number) < 8:
        # CUDA's own encoding: 1000 * major + 10 * minor.
        facts.cuda_driver = f"{int(number) // 1000}.{int(number) % 1000 // 10}"
    facts.system = _first(pairs, "OsDescription")[:80]
    facts.kernel = _first(pairs, "SoftwareReleaseVersion")[:80]


def _pairs(database: Tables, table: str) -> dict[str, list[str]]:
    """A name/value table; a name may occur more than once."""
    frame = database.fetch(table, texts=["name", "value"]).drop_nulls()
    # The environment is never read.
    frame = frame.filter(~pl.col("name").str.contains("(?i)environ"))
    pairs: dict[str, list[str]] = {}
    for name, value in frame.iter_rows():
        pairs.setdefault(name, []).append(value)
    return pairs


def _first(pairs: dict[str, list[str]], name: str) -> str:
    return pairs.get(name, [""])[0]
