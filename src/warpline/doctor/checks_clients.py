"""Checks for others who use CUPTI or the counters: injection paths, running profilers, DCGM, variables."""

from __future__ import annotations

import re
from collections.abc import Iterator

from warpline.doctor import failures
from warpline.doctor.machine import Machine
from warpline.doctor.model import Check

INJECTIONS = ("CUDA_INJECTION64_PATH", "CUDA_INJECTION32_PATH", "NVTX_INJECTION64_PATH", "NVTX_INJECTION32_PATH")
_PRELOADED = re.compile(r"cupti|injection|nsys|nsight|sanitizer|nvbit|vtune|proton|tau|hpctoolkit", re.IGNORECASE)
_PROFILERS = {"nsys", "nsys-launcher", "ncu", "ncu-ui", "nv-nsight-cu-cli", "compute-sanitize", "cuda-gdb", "nvprof"}
"""As /proc names them: fifteen characters at most."""
_DCGM = {"nv-hostengine", "dcgm-exporter", "dcgmi", "dcgmproftester"}
_SLOWING = {
    "CUDA_LAUNCH_BLOCKING": "every launch waits for its kernel: nothing overlaps, and timings are of another program",
    "CUDA_DEVICE_WAITS_ON_EXCEPTION": "kernels are run for the debugger",
    "CUDA_API_TRACE_LEVEL": "every CUDA call is logged",
}
_KINETO = re.compile(r"^(?:KINETO_|LIBKINETO_|TEARDOWN_CUPTI|DISABLE_CUPTI_LAZY_REINIT|VLLM_TORCH_PROFILER)")


def client_checks(machine: Machine) -> Iterator[Check]:
    """Everything to be said about others."""
    yield _injections(machine)
    yield _running(machine)
    yield _dcgm(machine)
    yield _variables(machine)


def _injections(machine: Machine) -> Check:
    environment = machine.environment
    found = [name for name in INJECTIONS if environment.get(name)]
    if _PRELOADED.search(environment.get("LD_PRELOAD", "")):
        found.append("LD_PRELOAD")
    if not found:
        return Check("cupti-clients", "ok", "no injection path is set")
    failure = failures.TWO_CUPTI_CLIENTS
    seen = f"{', '.join(found)} is set" if len(found) == 1 else f"{', '.join(found)} are set"
    means = "What it loads may subscribe to CUPTI first; torch.profiler or nsys then records no kernels."
    return Check("cupti-clients", "warning", seen, means, (f"unset {' '.join(found)}",), failure.number)


def _running(machine: Machine) -> Check:
    processes = machine.processes()
    if not processes:
        return Check("other-profilers", "unknown", "cannot tell, because running programs cannot be listed")
    found = sorted(_PROFILERS & set(processes))
    if not found:
        return Check("other-profilers", "ok", "no other profiler is running")
    failure = failures.TWO_CUPTI_CLIENTS
    means = "Two profilers of one program exclude each other, and counters belong to one at a time."
    return Check(
        "other-profilers", "warning", f"running: {', '.join(found)}", means, ("let it end first",), failure.number
    )


def _dcgm(machine: Machine) -> Check:
    processes = machine.processes()
    found = sorted(_DCGM & set(processes))
    if found:
        failure = failures.COUNTERS_BUSY
        means = "DCGM may hold the counters, and ncu then finds a driver resource unavailable."
        return Check("dcgm", "warning", f"running: {', '.join(found)}", means, failure.do[:1], failure.number)
    if not processes:
        return Check("dcgm", "unknown", "cannot tell, because running programs cannot be listed")
    return Check("dcgm", "ok", "no DCGM here; one outside a container cannot be seen from within")


def _variables(machine: Machine) -> Check:
    environment = machine.environment
    slowing = [name for name in _SLOWING if environment.get(name, "0") not in ("", "0")]
    if slowing:
        means = "; ".join(f"{name}: {_SLOWING[name]}" for name in slowing) + "."
        return Check("variables", "warning", f"{', '.join(slowing)} is set", means, (f"unset {' '.join(slowing)}",))
    kineto = sorted(name for name in environment if _KINETO.match(name))
    if kineto:
        means = "They change what torch.profiler records, or when."
        return Check("variables", "note", f"{', '.join(kineto)} is set", means, (f"unset {' '.join(kineto)}",))
    return Check("variables", "ok", "nothing in the environment changes profiling")
