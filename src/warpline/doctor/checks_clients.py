"""Checks for other users of CUPTI or the counters: injection paths, running profilers, DCGM, variables."""

from __future__ import annotations

import re
from collections.abc import Iterator

from warpline.doctor.failures import known_failure
from warpline.doctor.machine import Machine
from warpline.doctor.model import Check

INJECTIONS = ("CUDA_INJECTION64_PATH", "CUDA_INJECTION32_PATH", "NVTX_INJECTION64_PATH", "NVTX_INJECTION32_PATH")
_PRELOADED = re.compile(r"cupti|injection|nsys|nsight|sanitizer|nvbit|vtune|proton|tau|hpctoolkit", re.IGNORECASE)
_PROFILERS = {"nsys", "nsys-launcher", "ncu", "ncu-ui", "nv-nsight-cu-cli", "compute-sanitize", "cuda-gdb", "nvprof"}
"""Names as in /proc: at most fifteen characters."""
_DCGM = {"nv-hostengine", "dcgm-exporter", "dcgmi", "dcgmproftester"}
_SLOWING_VARIABLES = {
    "CUDA_LAUNCH_BLOCKING": "every launch waits for its kernel: nothing overlaps, and timings are not representative",
    "CUDA_DEVICE_WAITS_ON_EXCEPTION": "kernels run under the debugger",
    "CUDA_API_TRACE_LEVEL": "every CUDA call is logged",
}
_KINETO = re.compile(r"^(?:KINETO_|LIBKINETO_|TEARDOWN_CUPTI|DISABLE_CUPTI_LAZY_REINIT|VLLM_TORCH_PROFILER)")


def client_checks(machine: Machine) -> Iterator[Check]:
    """All checks about other clients."""
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
    failure = known_failure("two-cupti-clients")
    seen = f"{', '.join(found)} is set" if len(found) == 1 else f"{', '.join(found)} are set"
    means = "The injected library may subscribe to CUPTI first; torch.profiler or nsys then records no kernels."
    return Check("cupti-clients", "warning", seen, means, (f"unset {' '.join(found)}",), failure.number)


def _running(machine: Machine) -> Check:
    processes = machine.processes()
    if not processes:
        return Check("other-profilers", "unknown", "cannot tell, because running programs cannot be listed")
    found = sorted(_PROFILERS & set(processes))
    if not found:
        return Check("other-profilers", "ok", "no other profiler is running")
    failure = known_failure("two-cupti-clients")
    means = "Two profilers cannot profile one program, and only one at a time can use the counters."
    return Check(
        "other-profilers",
        "warning",
        f"running: {', '.join(found)}",
        means,
        ("wait until it has ended",),
        failure.number,
    )


def _dcgm(machine: Machine) -> Check:
    processes = machine.processes()
    found = sorted(_DCGM & set(processes))
    if found:
        failure = known_failure("counters-busy")
        means = "DCGM may use the counters; ncu then reports that a driver resource was unavailable."
        return Check("dcgm", "warning", f"running: {', '.join(found)}", means, failure.do[:1], failure.number)
    if not processes:
        return Check("dcgm", "unknown", "cannot tell, because running programs cannot be listed")
    return Check("dcgm", "ok", "no DCGM found; a DCGM outside the container is not visible from inside")


def _variables(machine: Machine) -> Check:
    environment = machine.environment
    slowing = [name for name in _SLOWING_VARIABLES if environment.get(name, "0") not in ("", "0")]
    if slowing:
        means = "; ".join(f"{name}: {_SLOWING_VARIABLES[name]}" for name in slowing) + "."
        return Check("variables", "warning", f"{', '.join(slowing)} is set", means, (f"unset {' '.join(slowing)}",))
    kineto = sorted(name for name in environment if _KINETO.match(name))
    if kineto:
        means = "They change what torch.profiler records, or when."
        return Check("variables", "note", f"{', '.join(kineto)} is set", means, (f"unset {' '.join(kineto)}",))
    return Check("variables", "ok", "no environment variable affects profiling")
