"""Read an ``.ncu-rep`` with NVIDIA's ncu_report, in a process of its own: a damaged file can end it by a signal.

``python -P child.py FILE`` prints one line of JSON per kernel. It imports nothing of warpline.
"""

from __future__ import annotations

import json
import math
import sys
from contextlib import suppress
from importlib import import_module
from typing import Any

MISSING_MODULE = 3
"""Exit code: ncu_report is not installed."""
MEMORY_BYTES = 16 << 30
SECONDS = 600
_FUNCTION, _DEMANGLED = 0, 1
"""IAction.NameBase of ncu_report."""
_STRING, _NUMBERS = 2, (3, 4, 5, 6)
"""IMetric.ValueKind of ncu_report."""
_PER_INSTRUCTION = (
    *("inst_executed", "thread_inst_executed", "smsp__pcsamp_sample_count", "smsp__pcsamp_sample_buffer_full"),
    *(
        "smsp__pcsamp_warps_issue_stalled_selected",
        "memory_l1_tag_requests_global",
        "memory_l2_theoretical_sectors_global",
    ),
)
"""Metrics whose instances are instructions; others with the same addresses are found by them."""
_MOST_INSTANCES = 200_000
_WORKLOADS = {0: "kernel", 1: "range", 2: "cmdlist", 3: "graph", 4: "subgrid"}


def kernel_of(action: Any) -> dict[str, Any]:
    """Everything about one profiled launch, as plain values."""
    metrics: list[tuple[str, float | str, str]] = []
    instanced: dict[str, Any] = {}
    for name in action.metric_names():
        metric = action[name]
        value = _value(metric)
        if value is not None:
            metrics.append((name, value, metric.unit()))
        if metric.num_instances() > 1 and metric.has_correlation_ids():
            instanced[name] = metric
    addresses = _addresses(instanced)
    return {
        "function": action.name(_FUNCTION),
        "name": action.name(_DEMANGLED),
        "kind": _WORKLOADS.get(int(action.workload_type()), "kernel"),
        "metrics": metrics,
        "breakdowns": {name: _by_word(metric) for name, metric in instanced.items() if _words(metric)},
        "nvtx": _ranges(action),
        "instructions": _instructions(action, instanced, addresses),
        "files": {name: text for name, text in dict(action.source_files()).items() if text},
    }


def _value(metric: Any) -> float | str | None:
    if not metric.has_value():
        return None
    if metric.kind() == _STRING:
        return str(metric.as_string())
    if metric.kind() in _NUMBERS:
        number = float(metric.value())
        return number if math.isfinite(number) else None
    return None


def _words(metric: Any) -> bool:
    return bool(metric.correlation_ids().kind() == _STRING)


def _by_word(metric: Any) -> dict[str, float]:
    ids = metric.correlation_ids()
    return {ids.as_string(at): metric.as_double(at) for at in range(_count(metric, ids))}


def _count(metric: Any, ids: Any) -> int:
    return int(min(metric.num_instances(), ids.num_instances(), _MOST_INSTANCES))


def _addresses(instanced: dict[str, Any]) -> set[int]:
    """The addresses of all instructions that have a counter."""
    found: set[int] = set()
    for name in _PER_INSTRUCTION:
        metric = instanced.get(name)
        if metric is not None and not _words(metric):
            ids = metric.correlation_ids()
            found.update(ids.as_uint64(at) for at in range(_count(metric, ids)))
    return found


def _instructions(action: Any, instanced: dict[str, Any], addresses: set[int]) -> list[tuple[Any, ...]]:
    counters: dict[int, dict[str, float]] = {address: {} for address in sorted(addresses)}
    for name, metric in instanced.items():
        ids = metric.correlation_ids()
        if _words(metric) or not addresses or ids.as_uint64(0) not in addresses:
            continue
        for at in range(_count(metric, ids)):
            value = metric.as_double(at)
            if value and math.isfinite(value):
                counters.setdefault(ids.as_uint64(at), {})[name] = value
    rows = []
    for address, values in counters.items():
        if all(name.startswith("derived__") for name in values):  # never executed
            continue
        info = action.source_info(address)
        place = (info.file_name(), int(info.line())) if info is not None else ("", 0)
        rows.append((address, action.sass_by_pc(address).strip(), *place, values))
    return rows


def _ranges(action: Any) -> list[str]:
    state = action.nvtx_state()
    if state is None:
        return []
    return [str(name) for domain in state.domains() for name in state.domain_by_id(domain).push_pop_ranges()]


def _limit() -> None:
    """Bound memory and time, where the system can: a damaged file may ask for any amount."""
    with suppress(ImportError, ValueError, OSError):
        import resource  # noqa: PLC0415 - not on Windows

        for kind, most in (
            (resource.RLIMIT_AS, MEMORY_BYTES),
            (resource.RLIMIT_CPU, SECONDS),
            (resource.RLIMIT_CORE, 0),
        ):
            resource.setrlimit(kind, (most, most))


def main(path: str) -> int:
    """Print the kernels of the file."""
    _limit()
    try:
        ncu_report = import_module("ncu_report")  # optional, and only in this process
    except ImportError as error:
        sys.stderr.write(f"{error}\n")
        return MISSING_MODULE
    report = ncu_report.load_report(path)
    for group in report:
        for action in group:
            json.dump(kernel_of(action), sys.stdout, separators=(",", ":"))
            sys.stdout.write("\n")
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
