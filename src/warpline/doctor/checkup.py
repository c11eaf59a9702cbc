"""Whether programs can be profiled on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from warpline.doctor.checks_clients import client_checks
from warpline.doctor.checks_gpu import NO_GPU, gpu_checks, has_no_gpu, read_gpus
from warpline.doctor.checks_system import room_checks, system_checks
from warpline.doctor.checks_tools import tool_checks
from warpline.doctor.checks_torch import torch_checks
from warpline.doctor.machine import Machine
from warpline.doctor.model import Check, Examination


def examine_machine(machine: Machine, progress: Callable[[str], None] = lambda _: None) -> Examination:
    """Run every check."""
    progress("driver and GPUs")
    gpus = read_gpus(machine)
    parts: tuple[tuple[str, Callable[[], Iterator[Check]]], ...]
    if has_no_gpu(gpus, machine):
        parts = (
            ("driver and GPUs", lambda: iter((NO_GPU,))),
            ("torch", lambda: torch_checks(machine, gpus)),
            ("memory and disks", lambda: room_checks(machine)),
        )
    else:
        parts = (
            ("driver and GPUs", lambda: gpu_checks(gpus, machine)),
            ("torch", lambda: torch_checks(machine, gpus)),
            ("nsys and ncu", lambda: tool_checks(machine, gpus)),
            ("permissions and limits", lambda: system_checks(machine)),
            ("other profilers", lambda: client_checks(machine)),
        )
    checks: list[Check] = []
    for name, part in parts:
        progress(name)
        checks += part()
    named = [check.seen for check in checks if check.name == "gpu" and check.state == "ok"]
    return Examination("machine", f"this machine, {named[0]}" if named else "this machine", tuple(checks))
